"""Base of all dynamic resources, as a program registers them."""

from collections.abc import Mapping
from typing import Any

import pulumi

from soperator_pulumi.lifecycle.connection import KUBECONFIG, ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider


class LiveResource(pulumi.dynamic.Resource):
    """A resource that acts on a live cluster. Pulumi encrypts a kubeconfig in its outputs, whatever its inputs are."""

    def __init__(
        self,
        provider: LiveProvider,
        name: str,
        cluster: ClusterConnection,
        props: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            provider: Provider that acts.
            name: Name of the resource.
            cluster: The cluster that it acts on.
            props: All other inputs.
            opts: Options of the resource.
        """
        secret = pulumi.ResourceOptions(additional_secret_outputs=[KUBECONFIG])
        super().__init__(provider, name, {**cluster.inputs(), **props}, pulumi.ResourceOptions.merge(opts, secret))
