"""The base of all our dynamic resources, as a program registers them."""

from collections.abc import Mapping
from typing import Any

import pulumi

from soperator_pulumi.lifecycle.connection import KUBECONFIG
from soperator_pulumi.lifecycle.provider import LiveProvider


class LiveResource(pulumi.dynamic.Resource):
    """A resource that acts on a live cluster. Pulumi encrypts a kubeconfig in its outputs, whatever its inputs are."""

    def __init__(
        self, provider: LiveProvider, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register it.

        Args:
            provider: What acts.
            name: The resource's name.
            props: Its inputs.
            opts: Its options.
        """
        secret = pulumi.ResourceOptions(additional_secret_outputs=[KUBECONFIG])
        super().__init__(provider, name, {**props}, pulumi.ResourceOptions.merge(opts, secret))
