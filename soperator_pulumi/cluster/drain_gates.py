"""Drains before a deployment removes a whole node set, or all of them."""

from collections.abc import Sequence
from typing import Any

import pulumi

from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import DrainGate, RemovedNodeSets
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.spec.cluster import ClusterSpec


def create_removed_node_sets(name: str, scope: Scope, spec: ClusterSpec) -> RemovedNodeSets:
    """Create the drain of node sets that left the spec.

    It comes before Slurm's files, which lose the node set's partition long before Pulumi deletes anything.
    """
    return RemovedNodeSets(
        f"{name}-removed-node-sets",
        cluster=scope.connection("worker"),
        policies=_policies(spec),
        replicas={node_set.name: node_set.replicas for node_set in spec.node_sets},
        slurm_files=slurm_files(spec),
        opts=scope.options(),
    )


def create_drain_gate(name: str, scope: Scope, spec: ClusterSpec, everything: Sequence[pulumi.Resource]) -> DrainGate:
    """Create the gate of a destroy, deleted before `everything`: it drains all node sets in one pass, or refuses.

    Created even if nodes never join and the deployment fails: it does not wait for them.
    """
    return DrainGate(
        f"{name}-drain-gate",
        cluster=scope.connection("worker"),
        policies=_policies(spec),
        guards=scope.namespace_uid,
        opts=scope.following(*everything).options(),
    )


def _policies(spec: ClusterSpec) -> dict[str, dict[str, Any]]:
    return {node_set.name: node_set.drain.model_dump(mode="json") for node_set in spec.node_sets}
