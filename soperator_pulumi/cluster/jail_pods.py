"""The pods that work on the jail's trees: the Job that fills one, and what switches them and takes old ones away.

From an image: the Job's own container is that image, and an init container brings it our interpreter, so the tree is
what the container runtime unpacked, from whatever registry. From a tarball: it is streamed.
"""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.batch.v1 import (
    JobSpecArgs,
    PodFailurePolicyArgs,
    PodFailurePolicyOnExitCodesRequirementArgs,
    PodFailurePolicyOnPodConditionsPatternArgs,
    PodFailurePolicyRuleArgs,
)
from pulumi_kubernetes.core.v1 import ContainerArgs, PodTemplateSpecArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import BURSTABLE, hardened, requirements
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pods import pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.storage import Claim
from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import source_name, tree_id
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.jail import TarballSource
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

POPULATE = "jail-populate"
"""Component label of the pods that fill a tree, and with the tree's id the name of the Job."""

SWITCH = "jail-switch"
"""Component label of the pods that switch trees and take old ones away."""

_CONTAINER = "populate"

_REFUSED = 78
"""Exit code of what another attempt cannot cure (EX_CONFIG of sysexits.h)."""

_ATTEMPTS = 6
"""Attempts after the first. Kubernetes pauses longer after each, ten minutes in all: a file server is back by then."""

_SWITCHING = PodResources(requests=ResourceAmounts(cpu="100m", memory="128Mi"), limits=ResourceAmounts(memory="1Gi"))
"""What a switch asks for: it holds the names of a tree's files, a few hundred thousand, in memory."""


def populate_job(scope: Scope, spec: ClusterSpec, claim: Claim) -> JobSpecArgs:
    """Return the Job that fills the tree of `spec.jail.source`. Each attempt goes on where the last one ended."""
    main, before, places = _containers(spec, claim)
    return JobSpecArgs(
        backoff_limit=_ATTEMPTS,
        pod_failure_policy=PodFailurePolicyArgs(rules=_failure_rules()),
        template=PodTemplateSpecArgs(
            metadata=pod_metadata(scope, POPULATE),
            spec=pod_spec(
                spec,
                spec.jail.populate,
                containers=[main],
                init_containers=before,
                mounts=places,
                restart_policy="Never",  # a failure policy needs it
            ),
        ),
    )


def switch_template(scope: Scope, spec: ClusterSpec, claim: Claim) -> PodTemplateSpecArgs:
    """Return the template of pods with one container, `jail`, to which arguments are given when one is needed."""
    jail = mounts.claim("jail", claim.name, layout.JAIL_DIR)
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, SWITCH),
        spec=pod_spec(
            spec,
            spec.controller,
            containers=[task(spec, "jail", [], [jail], resources=_SWITCHING)],
            mounts=[jail],
            restart_policy="Never",
        ),
    )


def _containers(spec: ClusterSpec, claim: Claim) -> tuple[ContainerArgs, list[ContainerArgs], list[Mount]]:
    """Return the container that fills the tree, what comes before it, and all mounts."""
    jail = mounts.claim("jail", claim.name, layout.JAIL_BEING_FILLED)
    source = spec.jail.source
    resources = spec.jail.populate.pod_resources
    if source is not None and source.tarball is not None:
        main = task(spec, _CONTAINER, _arguments(spec, _tarball(source.tarball)), [jail], resources=resources)
        return main, [], [jail]
    brought = mounts.scratch("jail-tools", "/target")
    tools = mounts.scratch("jail-tools", layout.JAIL_TOOLS_DIR, read_only=True)
    install = task(spec, "install", ["install", brought.path], [brought], resources=BURSTABLE, capabilities=())
    image = spec.images.jail if source is None else source.image
    main = task(spec, _CONTAINER, _arguments(spec, ["--root", "/"]), [jail, tools], resources=resources, image=image)
    return main, [install], [jail, tools]


def _tarball(tarball: TarballSource) -> list[pulumi.Input[str]]:
    return ["--tarball", tarball.url, "--sha256", tarball.sha256]


def _arguments(spec: ClusterSpec, source: Sequence[pulumi.Input[str]]) -> list[pulumi.Input[str]]:
    limit = spec.jail.populate.limit_mib_per_second
    return [
        *("populate", "--jail", layout.JAIL_BEING_FILLED),
        *("--tree", tree_id(spec), "--source", source_name(spec)),
        *source,
        *(["--limit-mib-per-second", str(limit)] if limit is not None else []),
    ]


def _failure_rules() -> list[PodFailurePolicyRuleArgs]:
    refused = PodFailurePolicyOnExitCodesRequirementArgs(container_name=_CONTAINER, operator="In", values=[_REFUSED])
    disrupted = PodFailurePolicyOnPodConditionsPatternArgs(type="DisruptionTarget", status="True")
    return [
        PodFailurePolicyRuleArgs(action="FailJob", on_exit_codes=refused),
        # An eviction, or a machine that is drained, says nothing about the source.
        PodFailurePolicyRuleArgs(action="Ignore", on_pod_conditions=[disrupted]),
    ]


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
