"""Arguments of SlurmCluster: their types, and the spec and the access that they describe."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import get_root_resource

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.lifecycle import AccessArgs, KubernetesAccess
from soperator_pulumi.spec.args import ClusterArgs
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster

WHERE = "soperator:cluster"
"""Name of the spec in messages."""

REMOTE_PROGRAM: ContextVar[object | None] = ContextVar("remote_program", default=None)
"""Program in another language, for which a plugin creates components."""

_names: WeakKeyDictionary[object, dict[str, str]] = WeakKeyDictionary()
"""Component of each cluster's name, by the stack or the remote program that runs."""


class SlurmClusterArgs(ClusterArgs, AccessArgs, total=False):
    """Description of the cluster, and the Kubernetes that it goes to. Default of `name`: the component's."""


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
    if isinstance(args, ClusterSpec):
        besides = sorted(given.keys() - {"name"})
        if besides:
            raise refusal(component, *(Problem(key, "given beside a ClusterSpec. Put it there.") for key in besides))
        return args, access
    try:
        return parse_cluster(given if args is None or isinstance(args, Mapping) else args, where=WHERE), access
    except SpecError as error:
        raise InvalidClusterError(error.where, error.problems) from None


def reserve_name(cluster: str, component: str) -> None:
    """Reserve a cluster's name for a component, in the program that runs.

    SOPERATOR_CONTROLLER_LOST and SOPERATOR_DRAIN would act on both of two clusters of one name.

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
    """Return the error for arguments of a component."""
    return InvalidClusterError(f"SlurmCluster {component!r}", problems)
