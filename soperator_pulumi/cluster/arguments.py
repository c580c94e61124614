"""Arguments of SlurmCluster: their types, and how they become a spec and an access."""

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import get_root_resource

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.lifecycle import AccessArgs, KubernetesAccess
from soperator_pulumi.spec.args import ClusterArgs, ProvidedArgs
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster
from soperator_pulumi.spec.platform.provided import ProvidedSpec

WHERE = "soperator:cluster"
"""Name of the spec in messages."""

REMOTE_PROGRAM: ContextVar[object | None] = ContextVar("remote_program", default=None)
"""Program in another language, for which a plugin creates components."""

_names: WeakKeyDictionary[object, dict[str, str]] = WeakKeyDictionary()
"""Components by cluster name, for the running stack or remote program."""


@runtime_checkable
class Provides(Protocol):
    """A component that offers names of resources and classes, such as `Platform`."""

    provided: ProvidedSpec
    """Names that the component offers."""

    access: KubernetesAccess
    """Access to its Kubernetes."""


class SlurmClusterArgs(ClusterArgs, AccessArgs, total=False):
    """Description of the cluster, and its Kubernetes. Default of `name`: the component's."""

    platform: Provides | ProvidedArgs
    """Platform of the cluster: its component, after which the cluster is created and before which it is destroyed, or
    the outputs of another stack's platform. They are defaults of the node sets and of the jail's volume."""


def platform_of(args: object, kwargs: Mapping[str, Any]) -> pulumi.Resource | None:
    """Return the platform component of a cluster, which must be created first."""
    given = kwargs.get("platform", args.get("platform") if isinstance(args, Mapping) else None)
    return given if isinstance(given, pulumi.Resource) else None


class InvalidClusterError(SpecError, pulumi.RunError):
    """Problems of a cluster's description or arguments, in one message. Pulumi prints it without a traceback."""


def understand(component: str, args: object, kwargs: Mapping[str, Any]) -> tuple[ClusterSpec, KubernetesAccess]:
    """Return the checked spec, and the access to its Kubernetes.

    Raises:
        InvalidClusterError: the description has problems.
    """
    described: dict[str, Any] = {"name": component, **args} if isinstance(args, Mapping) else {"name": component}
    given = {**described, **kwargs}
    access = KubernetesAccess(kubeconfig=given.pop("kubeconfig", None), context=given.pop("context", None))
    elsewhere: list[Problem] = []
    if isinstance(given.get("platform"), Provides):
        elsewhere = [*_elsewhere(access, given["platform"].access)]
        given["platform"] = given["platform"].provided
    if isinstance(args, ClusterSpec):
        # The offers of a platform are defaults of a description. A checked spec has them; the platform orders it.
        besides = sorted(given.keys() - {"name", *(["platform"] if platform_of(args, kwargs) else [])})
        elsewhere += [
            Problem(key, "given in addition to a ClusterSpec. Set it in the ClusterSpec instead.") for key in besides
        ]
        if elsewhere:
            raise refusal(component, *elsewhere)
        return args, access
    try:
        spec = parse_cluster(given if args is None or isinstance(args, Mapping) else args)
    except SpecError as error:
        raise refusal(component, *elsewhere, *error.problems) from None
    if elsewhere:
        raise refusal(component, *elsewhere)
    return spec, access


def _elsewhere(own: KubernetesAccess, of_platform: KubernetesAccess) -> Iterator[Problem]:
    """Yield the settings that would put a cluster and its platform into different Kubernetes clusters."""
    for name, ours, theirs in (
        ("kubeconfig", own.kubeconfig, of_platform.kubeconfig),
        ("context", own.context, of_platform.context),
    ):
        differs = isinstance(ours, str) and isinstance(theirs, str) and ours != theirs
        if theirs is not None and (ours is None or differs):
            found = "missing" if ours is None else "another"
            text = f"{found}, but the platform is given one: the cluster might go to another Kubernetes. Give the same."
            yield Problem(name, text)


def where_of(component: str) -> str:
    """Return the name of a component's spec in messages: its key, if a stack describes several clusters."""
    several = pulumi.Config("soperator").get("clusters") is not None
    return f"{WHERE}s.{component}" if several else WHERE


def reserve_name(cluster: str, component: str) -> None:
    """Reserve a cluster's name for a component in the running program.

    SOPERATOR_CONTROLLER_LOST and SOPERATOR_DRAIN would act on both clusters if two had the same name.

    Raises:
        InvalidClusterError: another component has the name.
    """
    program = get_root_resource() or REMOTE_PROGRAM.get()
    if program is None:
        return
    components = _names.setdefault(program, {})
    if cluster in components:
        raise refusal(
            component,
            Problem(
                "name",
                f'got "{cluster}", which is also the name of SlurmCluster {components[cluster]!r}. Clusters of one '
                "program need distinct names, as settings for one run name their cluster. Choose another name; the "
                "namespace may be any (namespace).",
            ),
        )
    components[cluster] = component


def refusal(component: str, *problems: Problem) -> InvalidClusterError:
    """Return an error about a component's arguments."""
    return InvalidClusterError(f"SlurmCluster {component!r}", problems)
