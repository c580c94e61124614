"""What frees nodes of jobs before the cluster loses more than some of a node set: a whole set, or everything."""

from collections.abc import Sequence
from typing import TypeVar

import pulumi

from soperator_pulumi.cluster.options import Scope
from soperator_pulumi.lifecycle import AllNodeSets, Connection, DrainGate, RemovedNodeSets
from soperator_pulumi.spec.cluster import ClusterSpec

K = TypeVar("K", bound=AllNodeSets)


def create_removed_node_sets(name: str, scope: Scope, spec: ClusterSpec, connection: Connection) -> RemovedNodeSets:
    """Create what drains node sets that the spec no longer has.

    It stands before Slurm's files, which lose the node set's partition long before Pulumi deletes anything.
    """
    return _create(RemovedNodeSets, f"{name}-removed-node-sets", scope, spec, connection)


def create_drain_gate(
    name: str, scope: Scope, spec: ClusterSpec, connection: Connection, everything: Sequence[pulumi.Resource]
) -> DrainGate:
    """Create what is deleted before `everything`: it drains all node sets in one pass, or refuses.

    It waits for no nodes: where some never join, and the deployment fails, it is there all the same.
    """
    return _create(DrainGate, f"{name}-drain-gate", scope.following(*everything), spec, connection)


def _create(kind: type[K], name: str, scope: Scope, spec: ClusterSpec, connection: Connection) -> K:
    return kind(
        name,
        namespace=scope.namespace,
        namespace_uid=scope.namespace_uid,
        owner=scope.owner,
        component=scope.component,
        selector=scope.selector("worker"),
        policies={node_set.name: node_set.drain.model_dump(mode="json") for node_set in spec.node_sets},
        connection=connection,
        opts=scope.options(),
    )
