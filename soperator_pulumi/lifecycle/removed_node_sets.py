"""The resource before Slurm's files: node sets that are no longer wanted are free before their partitions go."""

from collections.abc import Mapping
from typing import Any

import pulumi

from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider


class RemovedNodeSetsProvider(LiveProvider):
    """Drain on update the live node sets that are not wanted. Create and delete do nothing."""


class RemovedNodeSets(pulumi.dynamic.Resource, module="soperator", name="RemovedNodeSets"):
    """The node sets that were taken out of the spec, drained and free of jobs."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str] | None,
        owner: str,
        selector: Mapping[str, str],
        policies: Mapping[str, Mapping[str, Any]],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the cluster is.
            namespace_uid: the namespace's UID; None to record the one that is found.
            owner: stack and component that the cluster belongs to, as on its objects.
            selector: labels of the worker pods of all node sets.
            policies: `drain` of each node set that is wanted, as JSON, by the node set's name.
            connection: which Kubernetes it is.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "selector": {**selector},
            "policies": {name: {**policy} for name, policy in policies.items()},
            **connection.inputs(),
        }
        super().__init__(RemovedNodeSetsProvider(), resource_name, inputs, opts)
