"""Node sets: worker pods that register with slurmctld as dynamic nodes."""

import json
from pathlib import PurePosixPath
from typing import Any

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs, StatefulSetUpdateStrategyArgs
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from soperator_pulumi.cluster.daemon import create_disruption_budget
from soperator_pulumi.cluster.identity import create_service_account
from soperator_pulumi.cluster.pod_template import NODES_SERVICE, Parts, pod_template
from soperator_pulumi.cluster.scope import DELETE_BEFORE_REPLACE, FORCED, NOT_AWAITED, Scope
from soperator_pulumi.cluster.slurm_releases import version_mark
from soperator_pulumi.cluster.worker import topology_config_map, worker_role
from soperator_pulumi.lifecycle import (
    IDENTITY_ANNOTATION,
    POLICY_ANNOTATION,
    DrainGate,
    NodeDrain,
    NodesReady,
)
from soperator_pulumi.spec.node_set import NCCL_TOPOLOGY_PATH, NodeSetSpec

_ALL_AT_ONCE = "Parallel"


class NodeSet(pulumi.ComponentResource):
    """Worker pods of one kind in one StatefulSet. Pod = Slurm node = `<name>-<ordinal>`.

    The StatefulSet stands between resources that know of jobs: `drain` drains surplus nodes before it shrinks;
    `drain_gate` drains all nodes before it is deleted; `ready` waits for new nodes and recreates those whose pods
    changed, as a changed pod template restarts nothing by itself (`OnDelete`).
    """

    topology: ConfigMap | None
    """NCCL topology file, if the spec has its text. A change reaches jobs without a new pod."""

    drain: NodeDrain
    """Drain of surplus nodes. It outputs the replicas that the StatefulSet may have."""

    stateful_set: StatefulSet
    """The StatefulSet of the workers, named after the node set."""

    disruption_budget: PodDisruptionBudget
    """Refuses every eviction."""

    drain_gate: DrainGate
    """Drain of all nodes, before the StatefulSet is deleted."""

    ready: NodesReady
    """Waits until the nodes have joined Slurm, and reports why nodes are missing."""

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
        cluster = own.connection("worker", node_set.name)
        identity = _identity(own, node_set)
        policy = node_set.drain.model_dump(mode="json")
        self.topology = _topology(name, own, node_set)
        accounts = create_service_account(name, own, "worker", node_set, node_set.name)
        self.drain = NodeDrain(
            f"{name}-drain",
            cluster=cluster,
            node_set=node_set.name,
            replicas=node_set.replicas,
            identity=identity,
            policy=policy,
            opts=own.options(),
        )
        self.stateful_set = StatefulSet(
            name,
            # Pulumi would wait for pods that cannot start now as well. `ready` waits, and reports why.
            metadata=own.metadata(
                node_set.name,
                "worker",
                node_set.name,
                {
                    **NOT_AWAITED,
                    **FORCED,
                    **version_mark(parts.spec),
                    IDENTITY_ANNOTATION: identity,
                    POLICY_ANNOTATION: json.dumps(policy, sort_keys=True),
                },
            ),
            spec=_workers(own, parts, node_set, self.drain.replicas),
            opts=own.options(DELETE_BEFORE_REPLACE, depends_on=[self.drain, *filter(None, [self.topology]), *accounts]),
        )
        self.disruption_budget = create_disruption_budget(name, own, "worker", node_set.name)
        recorded = cluster.pinned(self.drain.namespace_uid)
        self.drain_gate = DrainGate(
            f"{name}-drain-gate",
            cluster=recorded,
            node_set=node_set.name,
            policies={node_set.name: policy},
            guards=self.stateful_set.id,
            opts=own.options(depends_on=[self.stateful_set]),
        )
        self.ready = NodesReady(
            f"{name}-ready",
            cluster=recorded,
            node_set=node_set.name,
            replicas=self.drain.replicas,
            # As Pulumi registered it, after all transforms.
            template=self.stateful_set.spec.apply(lambda spec: json.dumps(_plain(spec.template), sort_keys=True)),
            timeout_seconds=node_set.ready_timeout_seconds,
            max_unready=node_set.max_unready.written(),
            wait_until_ready=node_set.wait_until_ready,
            policy=policy,
            rolling_update=node_set.rolling_update.model_dump(mode="json"),
            memory_mib={member.name: member.scheduled_memory_mib for member in parts.spec.node_sets},
            cpus={member.name: member.job_cpus for member in parts.spec.node_sets},
            opts=own.options(depends_on=[self.stateful_set, self.drain_gate]),
        )
        self.register_outputs({})

    @property
    def until_ready(self) -> tuple[pulumi.Resource, ...]:
        """Last children other than `ready`, which fails if nodes never join."""
        return self.drain_gate, self.disruption_budget


def _workers(scope: Scope, parts: Parts, node_set: NodeSetSpec, replicas: pulumi.Output[int]) -> StatefulSetSpecArgs:
    return StatefulSetSpecArgs(
        service_name=NODES_SERVICE,
        replicas=replicas,
        pod_management_policy=_ALL_AT_ONCE,
        update_strategy=StatefulSetUpdateStrategyArgs(type="OnDelete"),
        selector=LabelSelectorArgs(match_labels=scope.selector("worker", node_set.name)),
        template=pod_template(scope, parts, worker_role(parts, node_set, scope.owner)),
    )


def _topology(name: str, scope: Scope, node_set: NodeSetSpec) -> ConfigMap | None:
    if node_set.nccl_topology is None:
        return None
    return ConfigMap(
        f"{name}-nccl-topology",
        metadata=scope.metadata(topology_config_map(node_set), "worker", node_set.name, FORCED),
        data={PurePosixPath(NCCL_TOPOLOGY_PATH).name: node_set.nccl_topology},
        opts=scope.options(),
    )


def _identity(scope: Scope, node_set: NodeSetSpec) -> str:
    """Return the fields, as text, whose change would replace the StatefulSet and its pods."""
    fixed = {
        "namespace": scope.namespace,
        "name": node_set.name,
        "serviceName": NODES_SERVICE,
        "podManagementPolicy": _ALL_AT_ONCE,
        "selector": scope.selector("worker", node_set.name),
    }
    return json.dumps(fixed, sort_keys=True)


def _plain(value: Any) -> Any:  # noqa: ANN401 any tree of outputs
    """Return outputs as plain dictionaries and lists, which JSON can represent."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in dict.items(value)}
    return [*map(_plain, value)] if isinstance(value, list) else value
