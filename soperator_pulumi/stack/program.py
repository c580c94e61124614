"""The Pulumi program of every stack: it creates the platform and the clusters that the configuration describes."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pulumi

from soperator_pulumi import ClusterSpec, SlurmCluster, parse_cluster
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.stack import stack_config
from soperator_pulumi.stack.stack_config import CONTEXT, KUBECONFIG, LOCAL, PLATFORM, SEVERAL
from soperator_pulumi.stack.stack_outputs import LiveStacks, StackOutputs, as_text, is_reference, unread

if TYPE_CHECKING:
    from soperator_pulumi.platform import Platform
    from soperator_pulumi.spec.platform.platform_spec import PlatformSpec

Complete: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
"""Function that completes the description of a cluster on this machine, from the stack and its `soperator:local`."""


@dataclass
class _Specs:
    """Checked configuration of a stack."""

    platform: "PlatformSpec | None" = None
    """The platform; None if the stack has none."""
    clusters: dict[str, ClusterSpec] = field(default_factory=dict)
    """Clusters by their components' names."""
    problems: list[Problem] = field(default_factory=list)
    """Problems of the whole configuration."""


def run(complete: Complete | None = None) -> None:
    """Create the platform and the clusters of a stack, and export how to reach them.

    `soperator:platform` describes the platform, `soperator:cluster` or `soperator:clusters` the clusters.
    `soperator:kubeconfig` and `soperator:context` choose the Kubernetes; the default is the ambient one, as for every
    Kubernetes tool. A `__main__.py` needs nothing but this call.

    Args:
        complete: Completes the clusters of a stack with `soperator:local`. Default: such a stack is refused.

    Raises:
        StackConfigError: The configuration has problems. All of them are in one message.
    """
    gc.freeze()  # modules stay: a last collection of them all, before the end, would take a third of a second
    values = stack_config.in_runtime()
    specs, kubeconfig = _checked(values, complete)
    access: Any = {"kubeconfig": kubeconfig, "context": values.get(CONTEXT)}
    platform = _create_platform(specs.platform, access)
    on_platform: Any = access if platform is None else {**access, "platform": platform}
    clusters = {name: SlurmCluster(name, spec, **on_platform) for name, spec in specs.clusters.items()}
    local = {"login_user": values[LOCAL]["user"]} if LOCAL in values else {}
    exports = {name: {**_exports(cluster), **local} for name, cluster in clusters.items()}
    for key, value in ({"clusters": exports} if SEVERAL in values else next(iter(exports.values()), {})).items():
        pulumi.export(key, value)


def _create_platform(spec: "PlatformSpec | None", access: Any) -> "Platform | None":  # noqa: ANN401 - keywords
    """Create the platform of the stack, if it has one, and export its outputs for clusters of other stacks."""
    if spec is None:
        return None
    from soperator_pulumi.platform import Platform  # noqa: PLC0415 - no other stack waits for it

    platform = Platform("platform", spec, **access)
    for name, value in platform.provided.model_dump().items():
        pulumi.export(name, value)
    return platform


def _checked(values: Mapping[str, Any], complete: Complete | None) -> tuple[_Specs, pulumi.Output[str] | None]:
    """Return the specs of the stack, and their kubeconfig.

    Other stacks are only read if the configuration is valid, so that a missing one hides no problem of it.
    """
    unknown = StackOutputs(unread)
    kubeconfig = _kubeconfig(values, unknown)
    specs = _specs(values, unknown, complete)
    if specs.problems:
        raise stack_config.error(specs.problems)
    if unknown.found:
        outputs = StackOutputs(LiveStacks())
        kubeconfig = _kubeconfig(values, outputs)
        specs = _specs(values, outputs, complete)
    return specs, kubeconfig


def _kubeconfig(values: Mapping[str, Any], outputs: StackOutputs) -> pulumi.Output[str] | None:
    """Return the kubeconfig in the stack's configuration, or in another stack's outputs."""
    given = values.get(KUBECONFIG)
    if is_reference(given):
        found = outputs.output(given, KUBECONFIG)
        return None if found is None else found.apply(as_text)
    return pulumi.Config("soperator").get_secret("kubeconfig")


def _specs(values: Mapping[str, Any], outputs: StackOutputs, complete: Complete | None) -> _Specs:
    """Return the valid specs, and the problems of the whole configuration."""
    described, problems = stack_config.read(values)
    specs = _Specs(problems=problems)
    if LOCAL in values and complete is None:
        text = "is for a cluster on this machine, which the program of a checkout deploys: make up. Remove it here."
        problems.append(Problem(LOCAL, text))
    offers = _read_platform(values, outputs, specs)
    for item in described:
        description = outputs.resolve(_completed(item.merged, values.get(LOCAL), complete), item.place)
        named = {"name": item.component, **offers, **description} if isinstance(description, Mapping) else description
        try:
            specs.clusters[item.component] = parse_cluster(named, item.path)
        except SpecError as error:
            problems += [Problem(item.place(problem.path), problem.text) for problem in error.problems]
    problems += stack_config.clashes({f"{SEVERAL}.{name}": spec for name, spec in specs.clusters.items()})
    malformed = {problem.path for problem in outputs.problems}
    specs.problems = [*outputs.problems, *(problem for problem in problems if problem.path not in malformed)]
    return specs


def _read_platform(values: Mapping[str, Any], outputs: StackOutputs, specs: _Specs) -> dict[str, Any]:
    """Read the platform of the stack into `specs`, and return what it offers to the stack's clusters."""
    if PLATFORM not in values:
        return {}
    # No other stack waits for it.
    from soperator_pulumi.platform.description import parse_platform, provided_by  # noqa: PLC0415

    description = outputs.resolve(values[PLATFORM], _place_in_platform)
    try:
        specs.platform = parse_platform(description, PLATFORM)
    except SpecError as error:
        specs.problems += [Problem(_place_in_platform(problem.path), problem.text) for problem in error.problems]
        return {}
    return {"platform": provided_by(specs.platform)}


def _place_in_platform(path: str) -> str:
    return f"{PLATFORM}.{path}" if path else PLATFORM


def _completed(description: object, settings: object, complete: Complete | None) -> object:
    if complete and isinstance(description, Mapping) and isinstance(settings, Mapping) and "user" in settings:
        return complete(description, settings)
    return description


def _exports(cluster: SlurmCluster) -> dict[str, Any]:
    return {
        "namespace": cluster.namespace_name,
        "jail_tree": cluster.jail_tree,
        "login_host_key": cluster.login.host_public_key,
        "login_host_key_fingerprint": cluster.login.host_key_fingerprint,
        "login_endpoint": cluster.login.endpoint,
        **({"login_pool_endpoints": cluster.login_pool_endpoints} if cluster.login_pools else {}),
    }
