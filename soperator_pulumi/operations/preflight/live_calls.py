"""Calls that the package's resources make on a live cluster, in addition to applying the program's objects.

`tests/unit/operations/preflight/test_access_rights.py` compares the table with the sources.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class LiveCall:
    """Verbs on one resource of Kubernetes."""

    resource: str
    """Resource, with its subresource: `pods/exec`."""
    verbs: tuple[str, ...]
    purpose: str
    group: str = ""
    namespace: str | None = None
    """Namespace, if it is not the cluster's; empty for a cluster-scoped resource."""


LIVE_CALLS = (
    LiveCall("namespaces", ("get",), "pin a cluster to its namespace", namespace=""),
    LiveCall("pods", ("get", "list", "patch", "delete"), "wait for pods, and recreate them"),
    LiveCall("pods/exec", ("get", "create"), "ask Slurm, and drain its nodes"),
    LiveCall("pods/log", ("get",), "report the reason of a failure"),
    LiveCall("events", ("list",), "report the reason of a pod that does not start"),
    LiveCall("configmaps", ("get", "create", "patch", "delete"), "apply files of Slurm, and restore them"),
    LiveCall("secrets", ("get", "create", "patch", "delete"), "check keys of the spec, apply files of slurmdbd"),
    LiveCall("persistentvolumeclaims", ("get", "list"), "find claims of other clusters"),
    LiveCall("statefulsets", ("get", "list", "patch"), "drain the nodes of a node set", group="apps"),
    LiveCall("controllerrevisions", ("get",), "refuse a downgrade after an upgrade has begun", group="apps"),
    LiveCall("jobs", ("get", "list", "create", "patch", "delete"), "fill, switch and remove trees", group="batch"),
    LiveCall("cronjobs", ("get",), "list, make and restore dumps of accounting", group="batch"),
    LiveCall("leases", ("get", "create", "patch"), "let one planner drain at a time", group="coordination.k8s.io"),
    LiveCall("services", ("get",), "close the Kubernetes API to jobs", namespace="default"),
    LiveCall(
        "endpointslices",
        ("list",),
        "close the Kubernetes API to jobs",
        group="discovery.k8s.io",
        namespace="default",
    ),
    LiveCall("storageclasses", ("get", "list"), "check the classes of the spec", "storage.k8s.io", ""),
    LiveCall("priorityclasses", ("get",), "check the classes of the spec", "scheduling.k8s.io", ""),
    LiveCall("persistentvolumes", ("get",), "check the volumes of the spec", namespace=""),
)
