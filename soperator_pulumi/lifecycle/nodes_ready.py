"""The resource after a node set's StatefulSet: up to date when all nodes have joined Slurm and have new pods."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, UpdateResult
from pydantic import Field

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, ClusterConnection
from soperator_pulumi.lifecycle.provider import PROVIDER_KEY, LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.shown_lines import show_once
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.nodes.context import DrainContext, slurm_of
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.nodes.reconcile import Drift, Reconciliation
from soperator_pulumi.operations.nodes.registration import Registration
from soperator_pulumi.operations.nodes.rolling_update import RollingUpdate
from soperator_pulumi.operations.progress import MachineClock, report
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.models import NodeSize
from soperator_pulumi.spec.drain import RollingUpdateSpec
from soperator_pulumi.spec.types.int_or_percent import Share

_NOT_COMPARED = frozenset({KUBECONFIG, CONTEXT, PROVIDER_KEY, "memory_mib", "cpus"})


class NodesReadyInputs(ClusterRef):
    """The wanted state of a node set. Numbers arrive as floats."""

    node_set: str
    replicas: int
    template: str
    """Template of the pods, as JSON, in the form in which Pulumi registered it."""
    timeout_seconds: int
    max_unready: Share
    wait_until_ready: bool
    policy: dict[str, Any]
    rolling_update: RollingUpdateSpec
    memory_mib: dict[str, int] = Field(default_factory=dict)
    """Memory that Slurm schedules on a node, in MiB, by node set of the cluster. Only previews use it."""
    cpus: dict[str, int] = Field(default_factory=dict)
    """CPUs of a node that jobs get, by node set. Only previews use it. States of older versions don't have it."""

    @property
    def sizes(self) -> dict[str, NodeSize]:
        """Size of a node for jobs, by node set of the cluster."""
        return {name: NodeSize(mib, self.cpus.get(name)) for name, mib in self.memory_mib.items()}


class NodesReadyProvider(LiveProvider):
    """Reconcile on create and update. Delete removes nothing: deleting the StatefulSet deletes its pods."""

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node set."""
        if has_unknown(news.get("namespace_uid")):
            news = {**news, "namespace_uid": olds.get("namespace_uid")}
        if has_unknown({**news, "template": None}):
            return DiffResult(changes=True)
        if has_unknown(news["template"]):
            show_once(id_, self._look({**news, "template": ""}, Reconciliation.possible_drift).lines)
            return DiffResult(changes=True)
        changed = any(olds.get(key) != news.get(key) for key in {*olds, *news} - _NOT_COMPARED)
        template = None if olds.get("template") == news["template"] else json.loads(news["template"])
        resized = olds.get("replicas") != news["replicas"]
        drift = self._look(news, lambda node_set: node_set.drift(template, resized=resized))
        show_once(id_, drift.lines)
        return DiffResult(changes=changed or drift.changes)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the nodes."""
        inputs = self._reconcile(props)
        return CreateResult(f"{inputs.namespace}/{inputs.node_set}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Remove records without pods, recreate changed pods, and wait for the nodes."""
        self._reconcile(news)
        return UpdateResult({**news})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Report how the live node set differs from the recorded one, and record its size."""
        drift = self._look(props, lambda node_set: node_set.drift(refreshes=True))
        show_once(id_, drift.lines)
        if drift.unseen:
            return ReadResult(id_, props)
        inputs = NodesReadyInputs.model_validate(props)
        live = LiveNodeSet.read(self.kube(props), inputs, inputs.node_set)
        return ReadResult(id_, {**props, "replicas": live.replicas})

    def _reconcile(self, props: Mapping[str, Any]) -> NodesReadyInputs:
        inputs = NodesReadyInputs.model_validate(props)
        inputs.uid(self.kube(props))
        self._reconciliation(props, inputs, slurm_of(self.kube(props), inputs, MachineClock())).run()
        return inputs

    def _look(self, props: Mapping[str, Any], see: Callable[[Reconciliation], Drift]) -> Drift:
        """Return the result of `see`, or a drift that reports that the node set cannot be read."""
        inputs = NodesReadyInputs.model_validate(props)
        try:
            recent = self.recent(props)
            inputs.uid(recent)
            slurm = slurm_of(recent, inputs, MachineClock())
            return see(self._reconciliation(props, inputs, slurm))
        except KubernetesError as error:
            return Drift([f"{inputs.node_set}: cannot read its nodes: {error}"], changes=True, unseen=True)

    def _reconciliation(self, props: Mapping[str, Any], inputs: NodesReadyInputs, slurm: SlurmClient) -> Reconciliation:
        kube, clock = self.kube(props), MachineClock()
        tolerated = inputs.max_unready.of(inputs.replicas)
        context = DrainContext.at(kube, inputs, report, clock, slurm)
        registration = Registration(
            kube, inputs, inputs.node_set, inputs.replicas, slurm, report, clock, context.keep_alone
        )
        return Reconciliation(
            registration,
            RollingUpdate(
                registration,
                Draining(context),
                policy_of(inputs.cluster, inputs.policy),
                inputs.rolling_update.max_unavailable,
                inputs.timeout_seconds,
                tolerated if inputs.wait_until_ready else inputs.replicas,
                inputs.rolling_update.idle_wait.total_seconds(),
                inputs.sizes,
            ),
            NodeCleanup(kube, slurm, inputs.namespace, inputs.owner),
            inputs.timeout_seconds,
            tolerated,
            inputs.wait_until_ready,
        )


class NodesReady(LiveResource, module="soperator", name="NodesReady"):
    """The nodes of one node set, joined to Slurm."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        node_set: str,
        replicas: pulumi.Input[int],
        template: pulumi.Input[str],
        timeout_seconds: int,
        max_unready: int | str,
        wait_until_ready: bool,
        policy: Mapping[str, Any],
        rolling_update: Mapping[str, Any],
        memory_mib: Mapping[str, int],
        cpus: Mapping[str, int],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of the node set's pods.
            node_set: Name of the node set and of its StatefulSet.
            replicas: Number of pods that the StatefulSet has now.
            template: Template of the pods, as JSON, as Pulumi registered it after all transforms, so that previews see
                changes.
            timeout_seconds: Time for new nodes to join.
            max_unready: Number or percentage of nodes that may be missing then.
            wait_until_ready: False to skip waiting for nodes.
            policy: The node set's `drain`, as JSON.
            rolling_update: The node set's `rolling_update`, as JSON.
            memory_mib: Memory that Slurm schedules on a node, in MiB, by node set of the cluster. A preview names jobs
                that wait for more.
            cpus: CPUs of a node that jobs get, by node set of the cluster, for the same purpose.
            opts: Options of the resource.
        """
        inputs = {
            "node_set": node_set,
            "replicas": replicas,
            "template": template,
            "timeout_seconds": timeout_seconds,
            "max_unready": max_unready,
            "wait_until_ready": wait_until_ready,
            "policy": {**policy},
            "rolling_update": {**rolling_update},
            "memory_mib": {**memory_mib},
            "cpus": {**cpus},
        }
        super().__init__(NodesReadyProvider(), resource_name, cluster, inputs, opts)
