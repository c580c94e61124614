"""A live cluster for a command: its slurmctld, its pods, and the texts about its nodes."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.cli.any_command import access_in
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.reason import Marker
from soperator_pulumi.slurm.hostlist import expand, in_order
from soperator_pulumi.slurm.models import Job, Node, Snapshot
from soperator_pulumi.slurm.scontrol import ScontrolClient

_FAILED_CHECK = re.compile(r"health (\w+): (.*)", re.DOTALL)
_OWNER = re.compile(r"soperator-pulumi (.+?): [a-z-]+")


@dataclass(frozen=True)
class LiveCluster:
    """One Slurm cluster in Kubernetes."""

    kube: Kube
    namespace: str
    slurm: SlurmClient

    @classmethod
    def chosen(cls, given: argparse.Namespace) -> "LiveCluster":
        """Return the cluster that a command line chooses."""
        return cls.at(Cluster(access_in(given)), given.namespace)

    @classmethod
    def at(cls, kube: Kube, namespace: str) -> "LiveCluster":
        """Return the cluster in a namespace."""
        return cls(kube, namespace, ScontrolClient(kube.transport(namespace, CONTROLLER_POD, CONTROLLER_CONTAINER)))

    def why_not_ready(self, node: str) -> str | None:
        """Return why the pod of a node is not ready; None if it is."""
        body = self.kube.get(f"/api/v1/namespaces/{self.namespace}/pods/{node}")
        if body is None:
            return "there is no such pod"
        pod = Pod.of(body)
        return None if pod.ready else pod.why_not_ready(self.kube)


def named_nodes(snapshot: Snapshot, expressions: Iterable[str]) -> list[Node]:
    """Return the nodes of hostlist expressions, such as `gpu-[0-3]`, in the given order.

    Raises:
        SoperatorError: An expression is invalid, or names a node that slurmctld does not know.
    """
    try:
        names = [*dict.fromkeys(name for expression in expressions for name in expand(expression))]
    except ValueError as error:
        raise SoperatorError(f"nodes: {error} Name nodes as Slurm does: gpu-[0-3],cpu-7.") from None
    if unknown := [name for name in names if name not in snapshot.nodes]:
        known = ", ".join(in_order(snapshot.nodes)[:10])
        raise SoperatorError(f"nodes: slurmctld knows no {', '.join(unknown)}. Nothing was changed. It knows: {known}.")
    return [snapshot.nodes[name] for name in names]


def failed_check(node: Node) -> str:
    """Return the health check that drained a node; empty if none did."""
    found = _FAILED_CHECK.match(node.reason) if node.drained else None
    return found[1] if found else ""


def marker_of(node: Node) -> Marker | None:
    """Return the marker of a drain by a deployment or a pod, whichever cluster owns it; None for other drains."""
    owner = _OWNER.match(node.reason) if node.drained else None
    return Marker.read(node.reason, owner[1]) if owner else None


def is_down(node: Node) -> bool:
    """Return True for a node that accepts no job although it is not drained."""
    return not node.joined and not node.drained


def jobs_by_node(snapshot: Snapshot) -> Mapping[str, Sequence[Job]]:
    """Return the jobs of every node; a node without a job has an empty list."""
    found: dict[str, list[Job]] = {name: [] for name in snapshot.nodes}
    for job in snapshot.jobs:
        for name in job.node_names if job.active else ():
            found.setdefault(name, []).append(job)
    return found


def node_record(node: Node, jobs: Iterable[Job]) -> Mapping[str, object]:
    """Return a node as values for a program."""
    return {
        "name": node.name,
        "state": sorted(node.state),
        "drained": node.drained,
        "reason": node.reason,
        "failed_check": failed_check(node) or None,
        "findings": [*node.findings],
        "jobs": [job.reference for job in jobs],
    }
