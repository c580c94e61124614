"""Context of an operation on a cluster's nodes, created once and passed on unchanged."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.errors import SpecError
from soperator_pulumi.kube.pods import find_pods
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_CONTAINER, CONTROLLER_POD
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.lease import ClusterLease
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet, find_node_sets, find_policies
from soperator_pulumi.operations.progress import Clock, Report
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.spec.drain import DrainSpec


@dataclass(frozen=True)
class DrainContext:
    """The cluster's slurmctld, and everything else that operations on its nodes read or report."""

    slurm: SlurmClient
    owner: str
    """Stack and component that own the cluster, as written in the reasons of its drains."""
    cluster: str
    """The cluster's name, for messages."""
    show: Report
    clock: Clock
    standing: Callable[[], Collection[str]] = tuple
    """Returns the nodes whose pods exist and are not being stopped. Default: nothing is known about pods."""
    live: Callable[[], Mapping[str, LiveNodeSet]] = dict
    """Returns the cluster's node sets as Kubernetes has them now, by name. Default: nothing is known about them."""
    policies: Callable[[], Mapping[str, DrainSpec]] = dict
    """Returns the drain policies of the cluster's node sets, by name, which apply to jobs on nodes of several node
    sets.
    Default: none is known, and no such job is requeued or cancelled."""

    lease: ClusterLease | None = None
    """Lease that keeps other planners away from the nodes. Default: there is no other planner."""

    @classmethod
    def at(
        cls, kube: Kube, ref: ClusterRef, report: Report, clock: Clock, slurm: SlurmClient | None = None
    ) -> "DrainContext":
        """Return the context of the cluster at `ref`, with the given `slurm` or its own client."""

        def standing() -> list[str]:
            return [pod.name for pod in find_pods(kube, ref.namespace, ref.selector) if not pod.going]

        def live() -> dict[str, LiveNodeSet]:
            return find_node_sets(kube, ref)

        def policies() -> dict[str, DrainSpec]:
            return {name: _policy(ref.cluster, recorded) for name, recorded in find_policies(kube, ref).items()}

        client = slurm or slurm_of(kube, ref, clock)
        lease = ClusterLease(kube, ref.namespace, ref.cluster, report, clock)
        return cls(client, ref.owner, ref.cluster, report, clock, standing, live, policies, lease)

    def alone(self) -> AbstractContextManager[None]:
        """Keep other planners away from the cluster's nodes; wait while another one drains.

        Raises:
            DrainError: another planner still drains after ten minutes.
            KubernetesError: the cluster's Lease cannot be read or written.
        """
        return nullcontext() if self.lease is None else self.lease.held()

    def keep_alone(self) -> None:
        """Renew the cluster's Lease during a wait, if it is held.

        Raises:
            AnotherPlannerError: another planner holds it now.
        """
        if self.lease is not None:
            self.lease.keep()

    def report(self, text: str) -> None:
        """Report a line about the cluster."""
        self.show(f"{self.cluster}: {text}")


def slurm_of(kube: Kube, ref: ClusterRef, clock: Clock) -> SlurmClient:
    """Return the slurmctld of the cluster at `ref`."""
    return ScontrolClient(kube.transport(ref.namespace, CONTROLLER_POD, CONTROLLER_CONTAINER), pause=clock.sleep)


def _policy(cluster: str, recorded: Mapping[str, Any]) -> DrainSpec:
    """Return the policy of a node set that loses no node; the default policy if the recorded one is unreadable."""
    try:
        return policy_of(cluster, recorded)
    except SpecError:
        return policy_of(cluster, None)
