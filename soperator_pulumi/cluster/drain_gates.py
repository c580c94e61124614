"""What frees nodes of jobs before the cluster loses more than some of a node set: a whole set, or everything."""

from collections.abc import Sequence
from typing import Any

import pulumi

from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.lifecycle import Connection, DrainGate, RemovedNodeSets
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.spec.cluster import ClusterSpec


def create_removed_node_sets(name: str, scope: Scope, spec: ClusterSpec, connection: Connection) -> RemovedNodeSets:
    """Create what drains node sets that the spec no longer has.

    It stands before Slurm's files, which lose the node set's partition long before Pulumi deletes anything.
    """
    options = _about_all(scope, spec, connection)
    return RemovedNodeSets(f"{name}-removed-node-sets", **options, slurm_files=slurm_files(spec))


def create_drain_gate(
    name: str, scope: Scope, spec: ClusterSpec, connection: Connection, everything: Sequence[pulumi.Resource]
) -> DrainGate:
    """Create what is deleted before `everything`: it drains all node sets in one pass, or refuses.

    It waits for no nodes: where some never join, and the deployment fails, it is there all the same.
    """
    return DrainGate(f"{name}-drain-gate", **_about_all(scope.following(*everything), spec, connection))


def _about_all(scope: Scope, spec: ClusterSpec, connection: Connection) -> dict[str, Any]:
    """Return what the two have in common."""
    return {
        "namespace": scope.namespace,
        "namespace_uid": scope.namespace_uid,
        "owner": scope.owner,
        "component": scope.component,
        "selector": scope.selector("worker"),
        "policies": {node_set.name: node_set.drain.model_dump(mode="json") for node_set in spec.node_sets},
        "connection": connection,
        "opts": scope.options(),
    }
