"""Pods that work on the jail's trees: the Job that fills a tree, and pods that switch trees and remove old ones.

All run the image jail_tools, which has its own interpreter. To copy an image, the Job's container runs that image,
unpacked by the container runtime from any registry, and an init container installs the interpreter of jail_tools in it.
A tarball is streamed.
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
from pulumi_kubernetes.core.v1 import (
    ConfigMapKeySelectorArgs,
    ContainerArgs,
    EnvVarArgs,
    EnvVarSourceArgs,
    PodTemplateSpecArgs,
)

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import BURSTABLE, hardened, requirements
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pod_template import pod_metadata, pod_spec
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.storage import Claim
from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import source_name, tree_id
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

POPULATE = "jail-populate"
"""Component label of pods that fill a tree. The Job's name is the label with the tree's id."""

SWITCH = "jail-switch"
"""Component label of pods that switch trees and remove old ones."""

_CONTAINER = "populate"

_REFUSED = 78
"""Exit code of failures that a retry cannot cure (EX_CONFIG of sysexits.h)."""

_ATTEMPTS = 6
"""Retries, within ten minutes with growing pauses: long enough for a file server's restart."""

_SWITCHING = PodResources(requests=ResourceAmounts(cpu="100m", memory="128Mi"), limits=ResourceAmounts(memory="1Gi"))
"""Resources of a switch, which holds the names of a tree's files, a few hundred thousand, in memory."""


_COPY = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP")
"""Capabilities for a tree whose files have any owner, mode and file capability."""


def populate_job(scope: Scope, spec: ClusterSpec, claim: Claim) -> JobSpecArgs:
    """Return the Job that fills the tree of `spec.jail.source`. A retry continues the last attempt."""
    main, before, places = _containers(spec, claim)
    refused = PodFailurePolicyOnExitCodesRequirementArgs(container_name=_CONTAINER, operator="In", values=[_REFUSED])
    final = PodFailurePolicyRuleArgs(action="FailJob", on_exit_codes=refused)
    return filling_job(
        scope, spec, POPULATE, main, places=places, attempts=_ATTEMPTS, rules=[final], init_containers=before
    )


def filling_job(
    scope: Scope,
    spec: ClusterSpec,
    component: str,
    container: ContainerArgs,
    *,
    places: Sequence[Mount],
    attempts: int,
    rules: Sequence[PodFailurePolicyRuleArgs] = (),
    init_containers: Sequence[ContainerArgs] = (),
) -> JobSpecArgs:
    """Return a Job that fills the jail's volume, placed by `spec.jail.populate`.

    Args:
        scope: Scope of the cluster's children.
        spec: The cluster.
        component: Component label of its pods.
        container: Container that does the work.
        places: Mounts of all containers.
        attempts: Attempts after the first. A pod that is evicted, or drained with its machine, is none of them.
        rules: Rules of the pods' failure policy that come first. Default: none.
        init_containers: Containers that run before. Default: none.
    """
    disrupted = PodFailurePolicyOnPodConditionsPatternArgs(type="DisruptionTarget", status="True")
    ignored = PodFailurePolicyRuleArgs(action="Ignore", on_pod_conditions=[disrupted])
    return JobSpecArgs(
        backoff_limit=attempts,
        pod_failure_policy=PodFailurePolicyArgs(rules=[*rules, ignored]),
        template=PodTemplateSpecArgs(
            metadata=pod_metadata(scope, component),
            spec=pod_spec(
                spec,
                spec.jail.populate,
                containers=[container],
                init_containers=init_containers,
                mounts=places,
                restart_policy="Never",  # a failure policy needs it
            ),
        ),
    )


def switch_template(scope: Scope, spec: ClusterSpec, claim: Claim) -> PodTemplateSpecArgs:
    """Return the template of pods with one container, `jail`, whose arguments follow when a pod is created."""
    jail = mounts.claim("jail", claim.name, layout.JAIL_DIR)
    return PodTemplateSpecArgs(
        metadata=pod_metadata(scope, SWITCH),
        spec=pod_spec(
            spec,
            spec.controller,
            containers=[_task(spec, "jail", [], [jail], resources=_SWITCHING)],
            mounts=[jail],
            restart_policy="Never",
        ),
    )


def _containers(spec: ClusterSpec, claim: Claim) -> tuple[ContainerArgs, list[ContainerArgs], list[Mount]]:
    """Return the container that fills the tree, its init containers, and all mounts."""
    jail = mounts.claim("jail", claim.name, layout.JAIL_BEING_FILLED)
    source = spec.jail.source
    resources = spec.jail.populate.pod_resources
    if source is not None and source.tarball is not None:
        arguments = _arguments(spec, ["--tarball", source.tarball.url, "--sha256", source.tarball.sha256])
        main = _task(spec, _CONTAINER, arguments, [jail], resources=resources, env=[_filled_before()])
        return main, [], [jail]
    brought = mounts.scratch("jail-tools", "/target")
    tools = mounts.scratch("jail-tools", layout.JAIL_TOOLS_DIR, read_only=True)
    install = _task(spec, "install", ["install", brought.path], [brought], resources=BURSTABLE, capabilities=())
    image = spec.images.jail if source is None else source.image
    arguments = _arguments(spec, ["--root", "/"])
    main = _task(spec, _CONTAINER, arguments, [jail, tools], resources=resources, image=image, env=[_filled_before()])
    return main, [install], [jail, tools]


def _filled_before() -> EnvVarArgs:
    """Return the variable with the record of the last filling. Its ConfigMap exists only after the first filling."""
    told = ConfigMapKeySelectorArgs(name=layout.JAIL_FILLED, key=layout.JAIL_FILLED, optional=True)
    return EnvVarArgs(name=layout.JAIL_FILLED_BEFORE, value_from=EnvVarSourceArgs(config_map_key_ref=told))


def _arguments(spec: ClusterSpec, source: Sequence[pulumi.Input[str]]) -> list[pulumi.Input[str]]:
    limit = spec.jail.populate.limit_mib_per_second
    return [
        *("populate", "--jail", layout.JAIL_BEING_FILLED),
        *("--tree", tree_id(spec), "--source", source_name(spec)),
        *source,
        *(["--limit-mib-per-second", str(limit)] if limit is not None else []),
        *(word for name, why in sorted(spec.jail.storage.accept.items()) for word in ("--accept", f"{name}={why}")),
    ]


def _task(
    spec: ClusterSpec,
    name: str,
    arguments: Sequence[pulumi.Input[str]],
    places: Sequence[Mount],
    *,
    resources: PodResources,
    capabilities: Sequence[str] = _COPY,
    image: pulumi.Input[str] | None = None,
    env: Sequence[EnvVarArgs] = (),
) -> ContainerArgs:
    """Return a container that runs one command, and reports a failure's reason in its last lines.

    Args:
        spec: The cluster.
        name: Name of the container.
        arguments: The command and its arguments.
        places: Mounts of the container.
        resources: Its requests and limits.
        capabilities: Its capabilities as root.
        image: Image in which the tools are installed for the command. Default: jail_tools.
        env: Its environment.
    """
    return ContainerArgs(
        name=name,
        image=image or spec.images.jail_tools,
        image_pull_policy=spec.images.pull_policy,
        command=[*layout.JAIL_TOOLS, *arguments],
        env=[*env] or None,
        security_context=hardened(capabilities=capabilities),
        resources=requirements(resources),
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[place.in_container() for place in places],
    )
