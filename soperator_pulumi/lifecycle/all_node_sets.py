"""What the resources that are about all node sets of a cluster are told."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pulumi

from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import LiveResource


class AllNodeSets(LiveResource):
    """All node sets of a cluster. Each kind says what becomes of them."""

    acts: ClassVar[type[LiveProvider]]
    """Its provider."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str] | None,
        owner: str,
        component: pulumi.Input[str],
        selector: Mapping[str, str],
        policies: Mapping[str, Mapping[str, Any]],
        connection: Connection,
        slurm_files: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the cluster is.
            namespace_uid: the namespace's UID; None to record the one that is found.
            owner: stack and component that the cluster belongs to, as on its objects.
            component: URN of the component that the cluster is.
            selector: labels of the worker pods of all node sets.
            policies: `drain` of each node set that is wanted, as JSON, by the node set's name.
            connection: which Kubernetes it is.
            slurm_files: Slurm's files as they are to be, where nothing is drained for a change of them that would be
                refused afterwards.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "component": component,
            "selector": {**selector},
            "policies": {name: {**policy} for name, policy in policies.items()},
            **({} if slurm_files is None else {"slurm_files": {**slurm_files}}),
            **connection.inputs(),
        }
        super().__init__(self.acts(), resource_name, inputs, opts)
