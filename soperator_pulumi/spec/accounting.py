"""Accounting: slurmdbd, and the database that holds the records of jobs and the limits of accounts."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.accounting_database import DatabasePassword, ExternalDatabaseSpec, OperatorDatabaseSpec
from soperator_pulumi.spec.images import ImagesSpec
from soperator_pulumi.spec.long_checks import LongCheck, LongCheckSpec
from soperator_pulumi.spec.partition import PartitionSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.storage import MAX_GIB, VolumeSpec
from soperator_pulumi.spec.types.names import SlurmAccount
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.types.schedule import Schedule
from soperator_pulumi.spec.user import UserSpec
from soperator_pulumi.spec.validation.base import Matches, Model, refused, whole
from soperator_pulumi.spec.validation.partial import known


class DumpVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with the dumps."""

    size_gib: Annotated[int, whole(1, MAX_GIB)] = 20
    """Size in GiB. Default: 20. A compressed dump takes a tenth of the database's size."""


class DumpSpec(Scheduled):
    """Dumps of the database by a CronJob."""

    schedule: Schedule = "30 1 * * *"
    """Schedule in cron's syntax, in UTC. Default: every day at 01:30."""
    keep: Annotated[int, whole(1, 1000)] = 14
    """Number of dumps to keep. An old one is removed when a new one is complete and checked. Default: 14."""
    storage: DumpVolume = DumpVolume()
    """The volume (ReadWriteOnce) with the dumps, kept in a `destroy` like those of `storage`."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="100m", memory="128Mi"), limits=ResourceAmounts(memory="1Gi")
    )
    """Resources of the container that dumps. Default: a tenth of a CPU and 128 MiB, at most 1 GiB of memory."""


NONE = "none"
"""Value of the key `accounting` that turns accounting off."""

GENERATED_PASSWORD = "database-password"  # noqa: S105 the name of a Secret
"""Secret with the generated password of the database."""

Age = Annotated[
    str,
    Matches(
        r"[1-9][0-9]{0,4} (hours|days|months)",
        'needs a number and a unit of slurmdbd.conf, such as "24 months", "90 days" or "72 hours".',
    ),
]
"""Age of records: `"24 months"`."""


class Enforce(StrEnum):
    """A rule of AccountingStorageEnforce, by which slurmctld refuses or holds jobs."""

    ASSOCIATIONS = "associations"
    """Refuse jobs of users without an association."""
    LIMITS = "limits"
    """Hold jobs beyond a limit of their association. It includes associations."""
    QOS = "qos"
    """Refuse jobs that request a QoS that their association does not have. Includes associations."""
    SAFE = "safe"
    """Start a job only if its whole run fits into the limits of its association. Includes limits."""
    WCKEYS = "wckeys"
    """Refuse jobs without a workload characterization key that their user has. Includes associations."""


class StoredPart(StrEnum):
    """A part of jobs that AccountingStoreFlags adds to their records."""

    JOB_SCRIPT = "job_script"
    JOB_ENV = "job_env"
    JOB_COMMENT = "job_comment"
    JOB_EXTRA = "job_extra"


class UnknownUsers(StrEnum):
    """Treatment of users that are not in the spec because they were added inside the jail."""

    ADD = "add"
    """Give them an association with the default account."""
    REFUSE = "refuse"
    """Give them none: if associations are enforced, their jobs are refused until an administrator adds them."""


class DatabaseVolume(VolumeSpec):
    """The volume (ReadWriteOnce) with the data of MariaDB."""

    size_gib: Annotated[int, whole(1, 1_048_576)] = 20
    """Size in GiB. Default: 20, room for some ten million jobs."""


class OwnDatabaseSpec(Scheduled):
    """A MariaDB in the cluster's namespace."""

    storage: DatabaseVolume = DatabaseVolume()
    """The volume (ReadWriteOnce) with its data, kept in a `destroy` like those of `storage`."""
    password: DatabasePassword | None = None
    """Password of slurmdbd's user. Default: generated."""
    password_version: Annotated[int, whole(1, 1_000_000)] = 1
    """Number of the generated password. Another number generates another password, which replaces the former one
    without losing records. Default: 1."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="250m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """Resources of MariaDB's container. Half of its memory limit is the buffer pool of InnoDB. Default: a quarter of a
    CPU and 1 GiB, at most 4 GiB of memory."""


class DatabaseSpec(Model):
    """The database of accounting, given by at most one key. Default: the cluster's own MariaDB."""

    own: OwnDatabaseSpec | None = None
    """A MariaDB in the cluster's namespace, from this project's image."""
    mariadb_operator: OperatorDatabaseSpec | None = None
    """A MariaDB of mariadb-operator in the cluster's namespace."""
    external: ExternalDatabaseSpec | None = None
    """An external MariaDB or MySQL."""


class SlurmdbdSpec(Scheduled):
    """The pod that runs slurmdbd."""

    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="100m", memory="256Mi"), limits=ResourceAmounts(memory="2Gi")
    )
    """Resources of slurmdbd's container. Default: a tenth of a CPU and 256 MiB, at most 2 GiB of memory."""


class PurgeSpec(Model):
    """Ages at which slurmdbd deletes records, by kind. Default: never."""

    jobs: Age | None = None
    """Age of jobs."""
    steps: Age | None = None
    """Age of steps."""
    events: Age | None = None
    """Age of node events."""
    reservations: Age | None = None
    """Age of reservations."""
    suspends: Age | None = None
    """Age of job suspensions."""
    transactions: Age | None = None
    """Age of changes to accounts, users and limits."""
    usage: Age | None = None
    """Age of the usage totals that sreport reads."""


class AccountingSpec(Model):
    """Accounting by slurmdbd."""

    database: DatabaseSpec = DatabaseSpec()
    """The database. Default: the cluster's own MariaDB."""
    enforce: tuple[Enforce, ...] = ()
    """Rules by which slurmctld refuses or holds jobs (AccountingStorageEnforce). Default: none; jobs of all users run
    and are recorded."""
    store: tuple[StoredPart, ...] = ()
    """Parts of jobs to record in addition to their resources (AccountingStoreFlags). Default: none."""
    default_account: SlurmAccount = "default"
    """Account of users for whom neither the spec nor an administrator names another one. Default: "default"."""
    unknown_users: UnknownUsers = UnknownUsers.ADD
    """Treatment of users that were added inside the jail. Default: add."""
    purge: PurgeSpec = PurgeSpec()
    """Ages at which records are deleted. Default: never."""
    dump: DumpSpec | None = None
    """Scheduled dumps of the cluster's own database to a volume. Default: none."""
    cluster_id: Annotated[int, whole(1, 65_535)] | None = None
    """Id of this cluster in a database that already has records of its jobs, as given in slurmctld's message CLUSTER ID
    MISMATCH. It confirms that the records are this cluster's, for example after a restore. Default: slurmctld does not
    start on such a database."""
    slurmdbd: SlurmdbdSpec = SlurmdbdSpec()
    """The pod that runs slurmdbd."""

    @property
    def own(self) -> OwnDatabaseSpec | None:
        """The cluster's own MariaDB; None with another database."""
        if known(self.database.mariadb_operator, self.database.external) and (
            self.database.mariadb_operator is not None or self.database.external is not None
        ):
            return None
        return self.database.own or OwnDatabaseSpec()


def _word(value: object) -> object:
    """Accept the word for no accounting, and refuse an empty key, which would not be a choice."""
    if value == NONE:
        return None
    if value is None:
        raise refused('needs "none", or a mapping that describes accounting; remove the key for the defaults.')
    return value


Accounting = Annotated[
    AccountingSpec | None, BeforeValidator(_word, json_schema_input_type=AccountingSpec | Literal["none"])
]
"""Accounting, or `none`."""


_ABOUT_QOS = ("allowqos", "denyqos", "qos")
"""Options of a partition, in lower case."""


def problems(accounting: AccountingSpec | None, images: ImagesSpec, users: tuple[UserSpec, ...]) -> Iterator[Problem]:
    """Yield problems between the fields of accounting, and with the images and users of the cluster."""
    if not known(accounting):
        return
    if accounting is None:
        for index, user in enumerate(users):
            if known(user.accounts) and user.accounts:
                yield Problem(f"users[{index}].accounts", f'given with accounting: "{NONE}". Remove one.')
        return
    images_needed = ("accounting", "database") if accounting.own is not None else ("accounting",)
    for name in images_needed:
        if known(images) and getattr(images, name) is None:
            text = f'missing: accounting needs it. Give it, as `make images` prints it, or set accounting: "{NONE}".'
            yield Problem(f"images.{name}", text)
    yield from _database_problems(accounting)


def qos_problems(extra: Mapping[str, object], partitions: Sequence[PartitionSpec]) -> Iterator[Problem]:
    """Yield the settings about QOS, which does not exist without accounting. Slurm ignores case."""
    none = f'but there is no QOS with accounting: "{NONE}"'
    for name, value in extra.items() if known(extra) else ():
        if name.lower() == "preempttype" and str(value).lower() == "preempt/qos":
            yield Problem(f"slurm.extra.{name}", f'got "{value}", {none}. Use preempt/partition_prio.')
    for index, partition in enumerate(partitions if known(partitions) else ()):
        options = partition.options if known(partition) and known(partition.options) else {}
        for name, value in options.items():
            if name.lower() in _ABOUT_QOS and str(value).upper() != "ALL":
                yield Problem(f"partitions[{index}].options.{name}", f'got "{value}", {none}. Remove one.')


def named_qos(partitions: Sequence[PartitionSpec], checks: Mapping[LongCheck, LongCheckSpec]) -> dict[str, list[str]]:
    """Return the names of QoS in a spec, by the path of their field."""
    found = {
        f"partitions[{index}].options.{name}": [one.strip() for one in value.split(",") if one.strip()]
        for index, partition in enumerate(partitions)
        for name, value in partition.options.items()
        if name.lower() in _ABOUT_QOS and value.upper() != "ALL"
    }
    return found | {f"health.long_checks.{name}.qos": [check.qos] for name, check in checks.items() if check.qos}


def _database_problems(accounting: AccountingSpec) -> Iterator[Problem]:
    database = accounting.database
    kinds = {"own": database.own, "mariadb_operator": database.mariadb_operator, "external": database.external}
    if known(*kinds.values()) and len(given := [kind for kind, value in kinds.items() if value is not None]) > 1:
        yield Problem("accounting.database", f"has {' and '.join(given)}. Give one of them.")
    own = accounting.database.own
    if own is not None:
        if known(own.password) and own.password is not None and own.password.secret == GENERATED_PASSWORD:
            text = f'got "{GENERATED_PASSWORD}", which is the Secret of a generated password. Use another name.'
            yield Problem("accounting.database.own.password.secret", text)
        if known(own.password, own.password_version) and own.password is not None and own.password_version != 1:
            text = "given together with password, whose Secret has the password. Remove one, or change the Secret."
            yield Problem("accounting.database.own.password_version", text)
    if known(accounting.dump) and accounting.dump is not None and accounting.own is None:
        text = "given, but the database is external. Remove it; dump the database where it runs."
        yield Problem("accounting.dump", text)


def roles(accounting: AccountingSpec | None) -> Iterator[tuple[str, DumpSpec | OwnDatabaseSpec | SlurmdbdSpec]]:
    """Yield the pods' roles, with the paths of their fields."""
    if not known(accounting) or accounting is None:
        return
    yield "accounting.slurmdbd", accounting.slurmdbd
    if accounting.own is not None:
        yield "accounting.database.own", accounting.own
    if known(accounting.dump) and accounting.dump is not None:
        yield "accounting.dump", accounting.dump


def volumes(accounting: AccountingSpec | None) -> Iterator[tuple[str, VolumeSpec]]:
    """Yield the volumes of the database and of its dumps, with the paths of their fields."""
    if not known(accounting) or accounting is None:
        return
    if accounting.own is not None:
        yield "accounting.database.own.storage", accounting.own.storage
    if known(accounting.dump) and accounting.dump is not None:
        yield "accounting.dump.storage", accounting.dump.storage
