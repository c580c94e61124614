"""A database managed by mariadb-operator: the resources MariaDB, Database, User and Grant.

Fields are those of k8s.mariadb.com/v1alpha1. `make soak` checks them by the definitions of release v0.38.1, the newest
that the Go module proxy has. Nothing checks them by those of 26.6, which the platform installs. The operator names
Service and pods after the MariaDB. Its resources keep their data when they are deleted (`cleanupPolicy: Skip`).
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from soperator_pulumi.cluster.mounts import SecretFile
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.storage import kept_data
from soperator_pulumi.render import layout
from soperator_pulumi.render.mariadb_settings import my_cnf
from soperator_pulumi.spec.accounting_database import OperatorDatabaseSpec

OPERATOR_PODS = {"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": layout.OPERATOR_DATABASE_HOST}
"""Labels of the pods that the operator makes for the MariaDB."""


def create_operator_database(
    name: str, scope: Scope, database: OperatorDatabaseSpec, password: SecretFile, *, keep: bool
) -> tuple[CustomResource, ...]:
    """Create the MariaDB, and the database, the user and the grant of slurmdbd in it."""
    kept = kept_data(keep=keep, protect=database.protect)
    mariadb = _resource(name, scope, "MariaDB", layout.OPERATOR_DATABASE_HOST, _mariadb(database), extra=kept)
    inside = scope.behind(mariadb)
    of_mariadb = {"mariaDbRef": {"name": layout.OPERATOR_DATABASE_HOST}, "cleanupPolicy": "Skip"}
    described: Mapping[str, tuple[str, Mapping[str, Any]]] = {
        "Database": (
            "slurm-accounting",
            {"name": layout.DATABASE_NAME, "characterSet": "utf8mb4", "collate": "utf8mb4_unicode_ci"},
        ),
        "User": (
            "slurm-accounting",
            {
                "name": layout.DATABASE_USER,
                "host": "%",
                "passwordSecretKeyRef": {"name": password.secret, "key": password.key},
                "maxUserConnections": database.max_connections,
            },
        ),
        "Grant": (
            "slurm-accounting",
            {
                "privileges": ["ALL PRIVILEGES"],
                "database": layout.DATABASE_NAME,
                "table": "*",
                "username": layout.DATABASE_USER,
                "host": "%",
            },
        ),
    }
    parts = [
        _resource(f"{name}-{kind.lower()}", inside, kind, object_name, {**of_mariadb, **fields})
        for kind, (object_name, fields) in described.items()
    ]
    return (mariadb, *parts)


def _mariadb(database: OperatorDatabaseSpec) -> dict[str, Any]:
    storage: dict[str, Any] = {"size": f"{database.size_gib}Gi"}
    if database.storage_class is not None:
        storage["storageClassName"] = database.storage_class
    described = database.pod_resources.model_dump(exclude_none=True)
    return {
        "rootPasswordSecretKeyRef": {"name": "database-root", "key": "password", "generate": True},
        "replicas": database.replicas,
        **({"galera": {"enabled": True}} if database.replicas > 1 else {}),
        "storage": storage,
        "resources": {kind: amounts for kind, amounts in described.items() if amounts},
        "myCnf": my_cnf(database.pod_resources.limits.memory),
    }


def _resource(
    name: str,
    scope: Scope,
    kind: str,
    object_name: str,
    spec: Mapping[str, Any],
    *,
    extra: pulumi.ResourceOptions | None = None,
) -> CustomResource:
    return CustomResource(
        name,
        api_version="k8s.mariadb.com/v1alpha1",
        kind=kind,
        metadata=scope.metadata(object_name),
        spec={**spec},
        opts=scope.options(extra),
    )
