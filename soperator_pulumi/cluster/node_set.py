"""Node sets: worker pods that register themselves with slurmctld as dynamic nodes."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs, StatefulSetUpdateStrategyArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster.disruption import never_evicted
from soperator_pulumi.cluster.options import NOT_AWAITED, Scope
from soperator_pulumi.cluster.parts import Parts
from soperator_pulumi.cluster.pods import NODES_SERVICE, pod_template
from soperator_pulumi.cluster.worker import worker_role
from soperator_pulumi.lifecycle import NodesReady
from soperator_pulumi.spec import NodeSetSpec


class NodeSet(pulumi.ComponentResource):
    """Worker pods of one kind, one StatefulSet whatever their number. Pod = Slurm node = `<name>-<ordinal>`.

    A changed pod template restarts nothing by itself (`OnDelete`), as jobs run in the pods.
    """

    stateful_set: StatefulSet
    """The workers' StatefulSet."""

    ready: NodesReady
    """Waits until the nodes have joined Slurm, and says what each missing one lacks."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        node_set: NodeSetSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:NodeSet", name, {}, opts)
        own = scope.within(self)
        self.stateful_set = StatefulSet(
            name,
            # Pulumi would wait for every pod, also for those that cannot start now. `ready` waits, and says why.
            metadata=own.metadata(node_set.name, "worker", node_set.name, NOT_AWAITED),
            spec=StatefulSetSpecArgs(
                service_name=NODES_SERVICE,
                replicas=node_set.replicas,
                pod_management_policy="Parallel",
                update_strategy=StatefulSetUpdateStrategyArgs(type="OnDelete"),
                selector=LabelSelectorArgs(match_labels=own.selector("worker", node_set.name)),
                template=pod_template(own, parts, worker_role(parts, node_set, own.owner)),
            ),
            opts=own.options(),
        )
        self.disruption_budget = never_evicted(name, own, "worker", node_set.name)
        self.ready = NodesReady(
            f"{name}-ready",
            namespace=scope.namespace,
            node_set=node_set.name,
            replicas=node_set.replicas,
            selector=own.selector("worker", node_set.name),
            timeout_seconds=node_set.ready_timeout_seconds,
            connection=parts.connection,
            opts=own.options(depends_on=[self.stateful_set]),
        )
        self.register_outputs({})
