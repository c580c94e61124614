"""The cluster's own MariaDB: one pod, its claim, its Service and the password of slurmdbd's user."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import (
    ContainerArgs,
    ContainerPortArgs,
    EnvVarArgs,
    PodTemplateSpecArgs,
    Service,
    ServicePortArgs,
    ServiceSpecArgs,
)
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import INIT, connects, hardened, prepare, requirements, script_of_image
from soperator_pulumi.cluster.daemon import create_daemon, create_disruption_budget
from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.pod_template import pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import SKIP_AWAIT, Scope
from soperator_pulumi.cluster.storage import Claim, create_claim
from soperator_pulumi.lifecycle import DatabaseAccount, PodsReady
from soperator_pulumi.render import layout
from soperator_pulumi.render.mariadb_settings import mariadb_arguments
from soperator_pulumi.spec.accounting import OwnDatabaseSpec
from soperator_pulumi.spec.cluster import ClusterSpec

DATABASE = "database"
"""Component label, StatefulSet, Service and claim of MariaDB."""

_DATA_IN_VOLUME = "mariadb"
_GRACE_SECONDS = 300  # MariaDB writes its changed pages on SIGTERM; killed, it recovers

_PREPARE = f"""\
if [ "$(stat -c %u {layout.DATABASE_DIR})" != {layout.MYSQL_UID} ]; then
    chmod 0700 {layout.DATABASE_DIR}
    chown {layout.MYSQL_UID}:{layout.MYSQL_UID} {layout.DATABASE_DIR}
fi
chown {layout.MYSQL_UID}:{layout.MYSQL_UID} /run/mysqld
"""


class Database(pulumi.ComponentResource):
    """MariaDB: one pod, `database-0`. Jobs start and run while it is replaced; their records arrive later."""

    claim: Claim
    """The claim with the data (ReadWriteOnce)."""

    service: Service
    """The address of MariaDB, for slurmdbd only."""

    stateful_set: StatefulSet
    """The StatefulSet `database`, of one replica."""

    ready: PodsReady
    """Waits until MariaDB answers."""

    disruption_budget: PodDisruptionBudget
    """Refuses every eviction."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        spec: ClusterSpec,
        database: OwnDatabaseSpec,
        password: SecretFile,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:Database", name, {}, opts)
        own = scope.within(self)
        self.claim = create_claim(
            f"{name}-claim", own, database.storage, layout.DATABASE_CLAIM, "ReadWriteOnce", keep=spec.storage.keep
        )
        self.service = Service(
            name,
            metadata=own.metadata(DATABASE, DATABASE, annotations=SKIP_AWAIT),
            spec=ServiceSpecArgs(
                selector=own.selector(DATABASE),
                ports=[ServicePortArgs(name="mariadb", port=layout.DATABASE_PORT)],
            ),
            opts=own.options(),
        )
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            spec,
            DATABASE,
            _template(own, spec, database, password, self.claim),
            service_name=DATABASE,
            depends_on=self.claim.created,
        )
        self.disruption_budget = create_disruption_budget(name, own, DATABASE)
        self.register_outputs({})


def create_account(
    name: str, scope: Scope, password: pulumi.Output[str], *, config_secret: str, accepts_former: bool
) -> DatabaseAccount:
    """Make the database accept the password, in addition to the former one, or alone after slurmdbd.conf has it."""
    return DatabaseAccount(
        name,
        cluster=scope.connection(),
        user=layout.DATABASE_USER,
        password=password,
        accepts_former=accepts_former,
        config_secret=config_secret,
        opts=scope.options(),
    )


def _template(
    scope: Scope, spec: ClusterSpec, database: OwnDatabaseSpec, password: SecretFile, claim: Claim
) -> PodTemplateSpecArgs:
    data = mounts.claim("data", claim.name, layout.DATABASE_DIR, _DATA_IN_VOLUME)
    run = mounts.memory("run", "/run/mysqld", "1Mi")
    own = [
        data,
        run,
        mounts.memory("tmp", layout.TEMPORARY_DIR, "64Mi"),
        # 0444, as no other container mounts it.
        mounts.secret_file("database-password", password, "/etc/database-password", "password", 0o444),
    ]
    image = spec.images.database or ""
    mariadb = ContainerArgs(
        name="mariadb",
        image=image,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, *script_of_image("database", "start-database"), *mariadb_arguments(database)],
        env=[
            EnvVarArgs(name="DATABASE_NAME", value=layout.DATABASE_NAME),
            EnvVarArgs(name="DATABASE_USER", value=layout.DATABASE_USER),
            EnvVarArgs(name="ANSWERS_PORT", value=str(layout.ANSWERS_PORT)),
        ],
        ports=[ContainerPortArgs(name="mariadb", container_port=layout.DATABASE_PORT)],
        security_context=hardened(uid=layout.MYSQL_UID),
        resources=requirements(database.pod_resources),
        # Recovery of a large log takes long; a data directory that is not MariaDB's ends the container at once.
        startup_probe=connects(layout.ANSWERS_PORT, period=1, failures=3600),
        readiness_probe=connects(layout.ANSWERS_PORT, period=2, failures=1),
        # None for life: a restart cures no MariaDB that is slow, and would undo its recovery.
        volume_mounts=[place.in_container() for place in own],
    )
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, DATABASE),
        spec=pod_spec(
            spec,
            database,
            containers=[mariadb],
            init_containers=[prepare(spec, image, _PREPARE, [data, run], capabilities=["CHOWN", "FOWNER"])],
            mounts=own,
            grace_seconds=_GRACE_SECONDS,
        ),
    )
