"""The resource after a node set's StatefulSet: it is up to date when the nodes have joined Slurm, all with new pods."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, UpdateResult
from pydantic import Field

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, Connection
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.draining import Draining, slurm_of
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.nodes.reconcile import Drift, Reconciliation
from soperator_pulumi.operations.nodes.registration import Registration
from soperator_pulumi.operations.nodes.rolling_update import RollingUpdate
from soperator_pulumi.operations.progress import MachineClock, say
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.spec.drain import RollingUpdateSpec
from soperator_pulumi.spec.types.int_or_percent import Share

_NOT_COMPARED = frozenset({KUBECONFIG, CONTEXT, "__provider"})


class Wanted(ClusterRef):
    """What a node set is to be. Numbers arrive as floats; what an older release recorded lacks the later fields."""

    owner: str = ""
    node_set: str
    replicas: int
    timeout_seconds: int
    template: str = ""
    max_unready: Share = Share(0)
    wait_until_ready: bool = True
    policy: dict[str, Any] = Field(default_factory=dict)
    rolling_update: RollingUpdateSpec = RollingUpdateSpec()


class NodesReadyProvider(LiveProvider):
    """Settle on create and update. Deleting removes nothing: the StatefulSet's pods go with it."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with who is there now."""
        if has_unknown(news.get("namespace_uid")):
            news = {**news, "namespace_uid": olds.get("namespace_uid")}
        if has_unknown(news):
            return DiffResult(changes=True)
        changed = any(olds.get(key) != news.get(key) for key in {*olds, *news} - _NOT_COMPARED)
        drift = self._drift(news, resized=olds.get("replicas") != news.get("replicas"))
        return DiffResult(changes=changed or drift.changes)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the nodes."""
        wanted = self._settle(props)
        return CreateResult(f"{wanted.namespace}/{wanted.node_set}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Remove records without pods, renew changed pods, wait for the nodes."""
        self._settle(news)
        return UpdateResult({**news})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Show how the live node set differs from what is recorded; its size becomes what is recorded."""
        if self._drift(props, resized=False).unseen:
            return ReadResult(id_, props)
        wanted = Wanted.model_validate(props)
        live = LiveNodeSet.read(self.kube(props), wanted, wanted.node_set)
        return ReadResult(id_, {**props, "replicas": live.replicas})

    def _settle(self, props: Mapping[str, Any]) -> Wanted:
        wanted = Wanted.model_validate(props)
        wanted.uid(self.kube(props))
        self._upkeep(props, wanted, slurm_of(self.kube(props), wanted, MachineClock())).settle()
        return wanted

    def _drift(self, props: Mapping[str, Any], *, resized: bool) -> Drift:
        """Return how the node set differs, and say it."""
        wanted = Wanted.model_validate(props)
        try:
            recent = self.recent(props)
            wanted.uid(recent)
            slurm = slurm_of(recent, wanted, MachineClock())
            drift = self._upkeep(props, wanted, slurm).drift(wanted.template, resized=resized)
        except KubernetesError as error:
            drift = Drift([f"{wanted.node_set}: its nodes cannot be looked at: {error}"], changes=True, unseen=True)
        for line in drift.lines:
            say(line)
        return drift

    def _upkeep(self, props: Mapping[str, Any], wanted: Wanted, slurm: SlurmClient) -> Reconciliation:
        kube, clock = self.kube(props), MachineClock()
        tolerated = wanted.max_unready.of(wanted.replicas)
        registration = Registration(kube, wanted, wanted.node_set, wanted.replicas, slurm, say, clock)
        return Reconciliation(
            registration,
            RollingUpdate(
                registration,
                Draining.at(kube, wanted, say, clock, slurm),
                policy_of(wanted.cluster, wanted.policy),
                wanted.rolling_update.max_unavailable,
                wanted.timeout_seconds,
                tolerated if wanted.wait_until_ready else wanted.replicas,
            ),
            NodeCleanup(kube, slurm, wanted.namespace, wanted.owner),
            wanted.timeout_seconds,
            tolerated,
            wanted.wait_until_ready,
        )


class NodesReady(LiveResource, module="soperator", name="NodesReady"):
    """The nodes of one node set, joined to Slurm."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str],
        owner: str,
        node_set: str,
        replicas: pulumi.Input[int],
        selector: Mapping[str, str],
        template: pulumi.Input[str],
        timeout_seconds: int,
        max_unready: int | str,
        wait_until_ready: bool,
        policy: Mapping[str, Any],
        rolling_update: Mapping[str, Any],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Describe what is waited for.

        Args:
            resource_name: Name of the resource.
            namespace: Where the node set is.
            namespace_uid: UID of that namespace, by which a cluster of the same names is told apart.
            owner: The cluster, as it stands in the reason of drains of ours.
            node_set: Name of the node set and of its StatefulSet.
            replicas: How many pods the StatefulSet has now.
            selector: Labels of the node set's pods.
            template: Digest of the pods' template: that it changes is seen in a preview.
            timeout_seconds: How long new nodes may take to join.
            max_unready: How many may be missing then: a number or a percentage.
            wait_until_ready: Whether nodes are waited for at all.
            policy: The node set's `drain`, as JSON.
            rolling_update: The node set's `rolling_update`, as JSON.
            connection: The cluster.
            opts: Options of the resource.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "node_set": node_set,
            "replicas": replicas,
            "selector": {**selector},
            "template": template,
            "timeout_seconds": timeout_seconds,
            "max_unready": max_unready,
            "wait_until_ready": wait_until_ready,
            "policy": {**policy},
            "rolling_update": {**rolling_update},
            **connection.inputs(),
        }
        super().__init__(NodesReadyProvider(), resource_name, inputs, opts)
