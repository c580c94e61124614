"""Accounting: slurmdbd, its secret files, and the database behind it."""

from collections.abc import Sequence
from functools import partial

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import ContainerArgs, ContainerPortArgs, EnvVarArgs, Secret
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.accounting_dumps import AccountingDumps
from soperator_pulumi.cluster.containers import (
    BURSTABLE,
    INIT,
    USERS_CONFIG_MAP,
    connects,
    hardened,
    jwt_key,
    key_version,
    merged_users,
    munge_socket,
    requirements,
    script_of_image,
    users_sidecar,
)
from soperator_pulumi.cluster.daemon import create_daemon, create_disruption_budget
from soperator_pulumi.cluster.database import Database, create_account
from soperator_pulumi.cluster.database_password import Password, create_password
from soperator_pulumi.cluster.mounts import Mount, SecretFile
from soperator_pulumi.cluster.operator_database import create_operator_database
from soperator_pulumi.cluster.pod_template import Parts, Role, pod_template
from soperator_pulumi.cluster.scope import FORCED, Scope
from soperator_pulumi.cluster.slurm_releases import version_mark, version_of_spec
from soperator_pulumi.lifecycle import AfterSync, Associations, DatabaseAccount, PodsReady, Reader, SecretFiles
from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import communication_lines
from soperator_pulumi.render.slurmdbd_conf import client_conf, slurmdbd_conf, tracks_wckeys
from soperator_pulumi.spec.accounting import AccountingSpec, UnknownUsers
from soperator_pulumi.spec.cluster import ClusterSpec

ACCOUNTING = "accounting"
"""Component and StatefulSet of slurmdbd."""

SLURMDBD_SECRET = "slurmdbd-config"  # noqa: S105 the name of a Secret
"""Secret with slurmdbd.conf."""

_FILES = "/etc/slurmdbd"

_CONNECTIONS = "80"
"""Most connections to slurmdbd. It has a hundred threads, one per connection (MAX_THREAD_COUNT in
src/common/persist_conn.c), and accepts no further one. The rest is for short requests."""


class Accounting(pulumi.ComponentResource):
    """slurmdbd: one pod, `accounting-0`. Jobs start and run while it is replaced; their records arrive later."""

    database: Database | None
    """The cluster's own MariaDB; None if another database is used."""

    accounts: tuple[DatabaseAccount, ...]
    """Passwords that the cluster's own MariaDB accepts, before and after slurmdbd changes to another one."""

    dumps: AccountingDumps | None
    """Dumps of the cluster's own MariaDB; None without `accounting.dump`."""

    secrets: tuple[Secret, ...]
    """Secrets with generated passwords."""

    files: SecretFiles
    """slurmdbd.conf, with the password of the database."""

    stateful_set: StatefulSet
    """The StatefulSet `accounting`, of one replica."""

    ready: PodsReady
    """Wait until slurmdbd answers."""

    associations: Associations
    """The cluster, the accounts and the users of the spec in the database."""

    disruption_budget: PodDisruptionBudget
    """Refuses every eviction."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        accounting: AccountingSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:Accounting", name, {}, opts)
        own = scope.within(self)
        spec = parts.spec
        password = create_password(name, own, accounting)
        self.secrets = password.created
        behind = self._create_database(name, own, spec, accounting, password)
        self.files = SecretFiles(
            f"{name}-{SLURMDBD_SECRET}",
            secret=SLURMDBD_SECRET,
            cluster=own.connection(),
            labels=own.object_labels(),
            annotations=own.annotations,
            files={
                "slurmdbd.conf": _slurmdbd_conf(spec, accounting, password.value),
                "slurm.conf": client_conf(spec),
            },
            readers=[Reader(component=ACCOUNTING, container="slurmdbd")],
            after_sync=AfterSync.SLURMDBD,
            opts=own.options(depends_on=behind),
        )
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            spec,
            ACCOUNTING,
            pod_template(own, parts, _role(parts, accounting)),
            annotations={**FORCED, **version_mark(spec)},
            depends_on=[*behind, self.files],
        )
        self._finish_database(name, own, spec, accounting, password)
        self.associations = Associations(
            f"{name}-associations",
            cluster=own.connection(),
            cluster_name=spec.name,
            accounts=[accounting.default_account],
            users=_recorded_users(spec, accounting),
            qos=spec.named_qos,
            opts=own.options(depends_on=[self.ready]),
        )
        self.disruption_budget = create_disruption_budget(name, own, ACCOUNTING)
        self.register_outputs({})

    def _create_database(
        self, name: str, own: Scope, spec: ClusterSpec, accounting: AccountingSpec, password: Password
    ) -> list[pulumi.Resource]:
        """Create the database that the cluster owns, and return what slurmdbd waits for: nothing for an external one.

        The database accepts the new password and the former one, until slurmdbd has changed to the new one.
        """
        self.database, self.accounts = None, ()
        created = own.behind(*password.created)
        if accounting.own is not None:
            self.database = Database(
                f"{name}-database",
                scope=created,
                spec=spec,
                database=accounting.own,
                password=password.file,
                opts=own.options(),
            )
            accepted = create_account(
                f"{name}-password-accepted",
                own.behind(self.database.ready),
                password.value,
                config_secret=SLURMDBD_SECRET,
                accepts_former=True,
            )
            self.accounts = (accepted,)
            return [self.database.ready, accepted]
        if accounting.database.mariadb_operator is not None:
            return [
                *create_operator_database(
                    f"{name}-database",
                    created,
                    accounting.database.mariadb_operator,
                    password.file,
                    keep=spec.storage.keep,
                )
            ]
        return []

    def _finish_database(
        self, name: str, own: Scope, spec: ClusterSpec, accounting: AccountingSpec, password: Password
    ) -> None:
        """Make the cluster's own database refuse the former password, once slurmdbd is ready, and dump the database."""
        self.dumps = None
        if self.database is None:
            return
        alone = create_account(
            f"{name}-password-alone",
            own.behind(self.ready),
            password.value,
            config_secret=SLURMDBD_SECRET,
            accepts_former=False,
        )
        self.accounts = (*self.accounts, alone)
        if accounting.dump is not None:
            self.dumps = AccountingDumps(
                f"{name}-dump",
                scope=own.behind(self.database.ready),
                spec=spec,
                dump=accounting.dump,
                password=password.file,
                opts=own.options(),
            )


def create_accounting(name: str, scope: Scope, parts: Parts) -> Accounting | None:
    """Create slurmdbd and its database, unless the spec has `accounting: none`."""
    accounting = parts.spec.accounting
    if accounting is None:
        return None
    return Accounting(f"{name}-accounting", scope=scope, parts=parts, accounting=accounting, opts=scope.options())


def _recorded_users(spec: ClusterSpec, accounting: AccountingSpec) -> dict[str, tuple[str, ...]]:
    """Return the accounts of each user. With enforced associations, long checks could not run without one."""
    default = (accounting.default_account,)
    users = {user.name: user.accounts or default for user in spec.users}
    return {**users, **({layout.HEALTH_USER: default} if spec.health.long_checks else {})}


def _slurmdbd_conf(spec: ClusterSpec, accounting: AccountingSpec, password: pulumi.Output[str]) -> pulumi.Output[str]:
    """Return slurmdbd.conf. It waits for the host of an external database."""
    external = accounting.database.external
    rendered = partial(
        slurmdbd_conf, rest=spec.rest, wckeys=tracks_wckeys(spec), communication=communication_lines(spec)
    )
    if external is None:
        return password.apply(lambda text: rendered(accounting, text))

    def text(known: Sequence[str]) -> str:
        host, found = known
        there = accounting.database.model_copy(update={"external": external.model_copy(update={"host": host})})
        return rendered(accounting.model_copy(update={"database": there}), found)

    return pulumi.Output.all(external.host, password).apply(text)


def _role(parts: Parts, accounting: AccountingSpec) -> Role:
    spec = parts.spec
    own = [
        munge_socket(),
        # 0444, as no other container mounts it. slurmdbd gets a copy in the mode that it demands.
        mounts.secret_files(SLURMDBD_SECRET, _FILES, 0o444),
        mounts.memory("slurmdbd-run", layout.SLURMDBD_DIR, "1Mi"),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
        merged_users(),
        *jwt_key(parts.keys, 0o444),
    ]
    external = accounting.database.external
    if external is not None and external.authority is not None:
        authority = SecretFile(external.authority.secret, external.authority.key)
        folder, _, file = layout.DATABASE_AUTHORITY.rpartition("/")
        own.append(mounts.secret_file("database-authority", authority, folder, file, 0o444))
    # slurmdbd knows an administrator or a coordinator by the uid of the name in its records.
    users, users_mounts = users_sidecar(spec, parts.jail.name)
    sidecars = [users]
    if accounting.unknown_users is UnknownUsers.ADD:
        adder, adder_mounts = _adder(spec, accounting)
        sidecars.append(adder)
        users_mounts = [*users_mounts, *adder_mounts]
    daemon = ContainerArgs(
        name="slurmdbd",
        image=spec.images.accounting or "",
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, *script_of_image("accounting", "start-slurmdbd")],
        env=[
            EnvVarArgs(name="SLURM_CONF", value=f"{layout.SLURMDBD_DIR}/slurm.conf"),
            version_of_spec(spec),
            EnvVarArgs(name="ANSWERS_PORT", value=str(layout.ANSWERS_PORT)),
            EnvVarArgs(name="CONNECTIONS_MAX", value=_CONNECTIONS),
        ],
        ports=[ContainerPortArgs(name="slurmdbd", container_port=layout.SLURMDBD_PORT)],
        security_context=hardened(uid=layout.SLURM_UID),
        resources=requirements(accounting.slurmdbd.pod_resources),
        # The conversion of a large database after an upgrade takes hours.
        startup_probe=connects(layout.ANSWERS_PORT, period=1, failures=24 * 3600),
        readiness_probe=connects(layout.ANSWERS_PORT, period=2, failures=1),
        volume_mounts=[place.in_container() for place in own],
    )
    return Role(
        component=ACCOUNTING,
        daemon=daemon,
        mounts=[*own, *users_mounts],
        scheduling=accounting.slurmdbd,
        sidecars=sidecars,
        annotations=key_version(spec),
        grace_seconds=60,  # slurmdbd ends its transactions on SIGTERM
    )


def _adder(spec: ClusterSpec, accounting: AccountingSpec) -> tuple[ContainerArgs, list[Mount]]:
    """Return the sidecar that gives jail users without an association one with the default account."""
    own = [
        munge_socket(),
        merged_users(),
        mounts.config_files(USERS_CONFIG_MAP, layout.DECLARED_USERS),
        # slurm.conf alone: slurmdbd's file has the password of the database.
        mounts.secret_file(
            "slurm-client", SecretFile(SLURMDBD_SECRET, "slurm.conf"), "/etc/slurm", "slurm.conf", 0o444
        ),
    ]
    container = ContainerArgs(
        name="unknown-users",
        image=spec.images.accounting or "",
        image_pull_policy=spec.images.pull_policy,
        restart_policy="Always",
        command=[*INIT, "add-unknown-users", spec.name, accounting.default_account],
        security_context=hardened(uid=layout.SLURM_UID),
        resources=requirements(BURSTABLE),
        volume_mounts=[mount.in_container() for mount in own],
    )
    return container, own
