"""Base class of all resources that act on a live cluster, as a program registers them.

The same providers serve resources in two ways: as dynamic resources in the SDK's server, which uses the program's
Python environment, or as custom resources of this package's plugin, which programs in other languages need. A resource
of one way takes over that of the other, so that a cluster can change between them.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

import pulumi

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.lifecycle.connection import KUBECONFIG, ClusterConnection, KubernetesAccess
from soperator_pulumi.lifecycle.provider import LiveProvider

PACKAGE = "soperator-pulumi"
"""Name of the Pulumi package, in the types of its resources."""


class ServedBy(StrEnum):
    """Process that serves the resources of a program."""

    PROGRAM = "program"
    """The SDK's server of dynamic resources, started in the folder of the program."""
    PLUGIN = "plugin"
    """This package's plugin, listed under `plugins` or `packages` of the project."""


SERVED_BY: ContextVar[ServedBy | None] = ContextVar("served_by", default=None)
"""Process that serves the resources, unless the stack's `soperator:served_by` decides."""


class LiveResource(pulumi.dynamic.Resource):
    """A resource that acts on a live cluster. Pulumi always encrypts the kubeconfig in its outputs."""

    def __init__(
        self,
        provider: LiveProvider,
        name: str,
        cluster: ClusterConnection | KubernetesAccess,
        props: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            provider: Provider that serves the resource.
            name: Name of the resource.
            cluster: The Slurm cluster that it acts on, or its Kubernetes as a whole.
            props: All other inputs.
            opts: Options of the resource.
        """
        served_by = _served_by()
        former = next(other for other in ServedBy if other is not served_by)
        own = pulumi.ResourceOptions(
            additional_secret_outputs=[KUBECONFIG], aliases=[pulumi.Alias(type_=self.token(former))]
        )
        merged = pulumi.ResourceOptions.merge(opts, own)
        if served_by is ServedBy.PROGRAM:
            super().__init__(provider, name, {**cluster.inputs(), **props}, merged)
            return
        inputs = {**cluster.with_configured_access().inputs(), **props}
        pulumi.CustomResource.__init__(self, self.token(served_by), name, inputs, merged)

    @classmethod
    def token(cls, served_by: ServedBy) -> str:
        """Return the type of the resource in programs and states."""
        if served_by is ServedBy.PROGRAM:
            return f"pulumi-python:{cls._resource_type_name}"
        return f"{PACKAGE}:index:{cls.__name__}"


def acts_as(type_: str, kind: str) -> bool:
    """Return True for the type of a resource of a kind such as `NodeDrain`, whichever process serves it."""
    return type_ in {f"pulumi-python:dynamic/soperator:{kind}", f"{PACKAGE}:index:{kind}"}


def _served_by() -> ServedBy:
    """Return the process that serves the resources of the running program.

    Raises:
        RunError: the stack's configuration names no such process.
    """
    if (chosen := SERVED_BY.get()) is not None:
        return chosen
    given = pulumi.Config("soperator").get("served_by") or ServedBy.PROGRAM
    if given not in {*ServedBy}:
        allowed = " or ".join(f'"{server}"' for server in ServedBy)
        raise pulumi.RunError(str(SpecError("soperator:served_by", [Problem("", f'got "{given}", needs {allowed}.')])))
    return ServedBy(given)
