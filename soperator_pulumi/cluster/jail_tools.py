"""Containers of the image jail_tools, which brings an interpreter of its own into whatever filesystem it works on."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.core.v1 import ContainerArgs

from soperator_pulumi.cluster.containers import hardened, requirements
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.types.quantity import PodResources

COPYING = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP")
"""What root needs to make a tree whose files have any owner, mode and file capability."""


def task(
    spec: ClusterSpec,
    name: str,
    arguments: Sequence[pulumi.Input[str]],
    places: Sequence[Mount],
    *,
    resources: PodResources,
    capabilities: Sequence[str] = COPYING,
    image: pulumi.Input[str] | None = None,
) -> ContainerArgs:
    """Return a container that runs one command to its end, and whose last words tell why it failed.

    Args:
        spec: The cluster's.
        name: Name of the container.
        arguments: The command and its arguments.
        places: What the container sees.
        resources: What it asks for.
        capabilities: What it may do as root.
        image: Image in which the command runs, when the tools are brought there. Default: their own.
    """
    return ContainerArgs(
        name=name,
        image=image or spec.images.jail_tools,
        image_pull_policy=spec.images.pull_policy,
        command=[*layout.JAIL_TOOLS, *arguments],
        security_context=hardened(capabilities=capabilities),
        resources=requirements(resources),
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[place.in_container() for place in places],
    )
