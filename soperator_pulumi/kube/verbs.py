"""Protocol for the Kubernetes API: a few verbs on JSON objects."""

from collections.abc import Mapping
from typing import Any, Protocol

from soperator_pulumi.slurm.transport import Transport

FIELD_MANAGER = "soperator-pulumi"
"""Name under which Kubernetes records the fields that this package sets."""

Json = dict[str, Any]

LOG_LINES = 50
"""Number of log lines that are read by default."""


class Kube(Protocol):
    """A Kubernetes cluster. Paths are those of the API, without the server: `/api/v1/namespaces/hpc`."""

    def __str__(self) -> str:
        """Return the address of its API server, for messages."""
        ...

    def get(self, path: str) -> Json | None:
        """Return an object; None if it does not exist."""
        ...

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        """Return the objects of a collection that have these labels and fields."""
        ...

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        """Create an object; with `dry_run` the server only checks that it would admit the object."""
        ...

    def apply(self, path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        """Apply `body` to an object, and remove fields that `manager` applied before and that `body` leaves out."""
        ...

    def merge(self, path: str, body: Json) -> Json | None:
        """Change the given fields of an object; None if it does not exist."""
        ...

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        """Delete an object, if it exists; with `dependents_first`, after all objects that it owns."""
        ...

    def log(
        self,
        path: str,
        container: str,
        *,
        previous: bool = False,
        since_seconds: int | None = None,
        lines: int = LOG_LINES,
    ) -> str:
        """Return the last lines of a container's log, at most `since_seconds` old; empty without a log."""
        ...

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> Transport:
        """Return a transport to a container; `coreutils` says that the container has the usual small programs."""
        ...


def config_map_path(namespace: str, name: str) -> str:
    """Return the path of a ConfigMap."""
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def secret_path(namespace: str, name: str) -> str:
    """Return the path of a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def pods_path(namespace: str) -> str:
    """Return the path of a namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


def stateful_sets_path(namespace: str) -> str:
    """Return the path of a namespace's StatefulSets."""
    return f"/apis/apps/v1/namespaces/{namespace}/statefulsets"


def revisions_path(namespace: str) -> str:
    """Return the path of all revisions of StatefulSet templates."""
    return f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"


def cron_jobs_path(namespace: str) -> str:
    """Return the path of a namespace's CronJobs."""
    return f"/apis/batch/v1/namespaces/{namespace}/cronjobs"
