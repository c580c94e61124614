"""Databases of accounting that this package does not run: of mariadb-operator, and external ones."""

from typing import Annotated

from pydantic import StrictBool

from soperator_pulumi.spec.secrets import SecretKey, SecretRef
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Matches, Model, whole

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"

Host = Annotated[
    str,
    Matches(
        rf"{_LABEL}(\.{_LABEL})*|([0-9A-Fa-f]{{1,4}}:){{7}}[0-9A-Fa-f]{{1,4}}|(?=.*::)[0-9A-Fa-f:.]+",
        'needs a host name or an address, such as "db.example.com" or "10.0.0.5", without a port.',
        253,
    ),
]
"""A host, without a port."""

SqlName = Annotated[
    str, Matches(r"[A-Za-z_][A-Za-z0-9_]*", "needs letters, digits and '_', a letter or '_' first.", 64)
]
"""Name of a database or of its user."""


class DatabasePassword(SecretRef):
    """A Secret that holds the password of slurmdbd's database user."""

    key: SecretKey = "password"
    """Key in the Secret's data. Default: password."""


class DatabaseAuthority(SecretRef):
    """A Secret that holds the certificate of the authority that signed the database's certificate."""

    key: SecretKey = "ca.crt"
    """Key in the Secret's data. Default: ca.crt."""


class ExternalDatabaseSpec(Model):
    """An external MariaDB or MySQL, with a database and a user for slurmdbd."""

    host: Maybe[Host]
    """Host name or address of the database."""
    port: Annotated[int, whole(1, 65_535)] = 3306
    """Port of the database. Default: 3306."""
    database: SqlName = "slurm_acct_db"
    """Database of slurmdbd, on which its user has all privileges. Default: slurm_acct_db."""
    user: SqlName = "slurm"
    """User of slurmdbd. Default: slurm."""
    password: DatabasePassword
    """Password of the user."""
    authority: DatabaseAuthority | None = None
    """Authority of the database's certificate: slurmdbd then refuses a connection without TLS, but does not verify the
    certificate (Slurm has no setting for that). Default: no TLS."""


class OperatorDatabaseSpec(Model):
    """A MariaDB resource of mariadb-operator, which the platform installs, with Database, User and Grant."""

    size_gib: Annotated[int, whole(1, 1_048_576)] = 20
    """Size of its volume in GiB. Default: 20."""
    storage_class: Maybe[ObjectName] | None = None
    """StorageClass of its volume. Default: the Kubernetes cluster's default class."""
    protect: StrictBool = True
    """Refuse to delete the MariaDB from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the MariaDB leaves the stack. It stays in Kubernetes, with its data."""
    replicas: Annotated[int, whole(1, 9)] = 1
    """Pods of MariaDB; several replicate with Galera. Default: 1."""
    max_connections: Annotated[int, whole(10, 10_000)] = 100
    """Connections of slurmdbd's user; the operator's default of 10 is too few. Default: 100."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="250m", memory="1Gi"), limits=ResourceAmounts(memory="4Gi")
    )
    """Resources of MariaDB's container. Half of its memory limit is the buffer pool of InnoDB. Default: a quarter of a
    CPU and 1 GiB, at most 4 GiB of memory."""
