"""Inputs that name the cluster of a resource of ours, and the way by which its provider finds it again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import pulumi
from pulumi.dynamic import Config

from soperator_pulumi.operations.access import Access

KUBECONFIG = "kubeconfig"
CONTEXT = "context"

_NAMESPACES = ("soperator", "kubernetes")
"""Namespaces of the stack's configuration that may have an access: ours, then that of Pulumi's Kubernetes resources."""


class AccessArgs(TypedDict, total=False):
    """Access to a Kubernetes, as arguments of a component."""

    kubeconfig: pulumi.Input[str] | None
    """Content or path of a kubeconfig file. Default: the ambient KUBECONFIG."""
    context: pulumi.Input[str] | None
    """Context in the kubeconfig. Default: its current one."""


@dataclass(frozen=True)
class KubernetesAccess:
    """Access to a Kubernetes as the program gives it: none, to use the ambient KUBECONFIG."""

    kubeconfig: pulumi.Input[str] | None = field(default=None, repr=False)
    """Content of a kubeconfig file, or the path of one. It holds credentials: a printed handle leaves it out."""
    context: pulumi.Input[str] | None = None
    """A context in it."""

    def __bool__(self) -> bool:
        """Return True where anything is given."""
        return self.kubeconfig is not None or self.context is not None

    def inputs(self) -> dict[str, pulumi.Input[str] | None]:
        """Return the inputs of a resource."""
        return {KUBECONFIG: self.secret_kubeconfig(), CONTEXT: self.context}

    def secret_kubeconfig(self) -> pulumi.Output[str] | None:
        """Return the kubeconfig as a secret, which Pulumi encrypts in its state, whichever resource it is given to."""
        return None if self.kubeconfig is None else pulumi.Output.secret(self.kubeconfig)

    def with_configured_access(self) -> "KubernetesAccess":
        """Return the access in the stack's configuration, where the program gives none.

        A plugin sees no configuration of the stack; the SDK's server of dynamic resources does, in `access`.
        """
        return self or _configured_access()


@dataclass(frozen=True)
class ClusterConnection:
    """Handle of one Slurm cluster in a Kubernetes, for every resource that acts on it while it lives.

    `SlurmCluster.connection` is the handle of that cluster, for resources of other programs as well.
    """

    access: KubernetesAccess
    namespace: str
    owner: str
    """Stack and component that the cluster belongs to, as on its objects and in the reasons of its drains."""
    component: pulumi.Input[str]
    """URN of the cluster's component."""
    selector: Mapping[str, str]
    """Labels of the pods that a resource is about: all of the cluster, unless narrowed by `pods`."""
    namespace_uid: pulumi.Input[str] | None = None
    """UID of the namespace: another one of the same name is not acted on. None to record the one that is found."""

    def pods(self, selector: Mapping[str, str]) -> "ClusterConnection":
        """Return the handle for the pods with these labels."""
        return replace(self, selector=selector)

    def pinned(self, namespace_uid: pulumi.Input[str] | None) -> "ClusterConnection":
        """Return the handle for the namespace with this UID."""
        return replace(self, namespace_uid=namespace_uid)

    def with_configured_access(self) -> "ClusterConnection":
        """Return the handle with the access in the stack's configuration, where the program gives none."""
        return replace(self, access=self.access.with_configured_access())

    def inputs(self) -> dict[str, Any]:
        """Return the inputs of a resource, as `ClusterRef` reads them."""
        return {
            "namespace": self.namespace,
            "namespace_uid": self.namespace_uid,
            "owner": self.owner,
            "component": self.component,
            "selector": {**self.selector},
            **self.access.inputs(),
        }


def _configured_access() -> KubernetesAccess:
    """Return the access in the configuration of the stack whose program runs, in the order of `access`."""
    for namespace in _NAMESPACES:
        config = pulumi.Config(namespace)
        if found := KubernetesAccess(config.get_secret(KUBECONFIG), config.get(CONTEXT)):
            return found
    return KubernetesAccess()


def access(props: Mapping[str, Any], config: Config | None) -> Access:
    """Return how to reach the cluster of a resource with these inputs or outputs.

    Where they give none, the stack's `soperator:kubeconfig` and `soperator:context` hold; then
    `kubernetes:kubeconfig` and `kubernetes:context`, which choose the cluster of Pulumi's own Kubernetes resources as
    well; and else the ambient KUBECONFIG.
    """
    order = [_given(props), *(_configured(config, namespace) for namespace in _NAMESPACES)]
    return next((each for each in order if each != Access()), Access())


def with_newest_access(recorded: Mapping[str, Any], config: Config | None) -> dict[str, Any]:
    """Return outputs as they were recorded, with the newest access to the same cluster that is known.

    Credentials that were recorded may have expired: those in the stack's `soperator:kubeconfig` take their place where
    that names the same API server. A cluster that was given access to another one keeps it: a program may have several.
    """
    configured, known = _configured(config, _NAMESPACES[0]), _given(recorded)
    server = configured.server()
    if not server or server != known.server():
        return {**recorded}
    return {**recorded, KUBECONFIG: configured.kubeconfig, CONTEXT: configured.context}


def _given(values: Mapping[str, Any]) -> Access:
    return Access(_text(values, KUBECONFIG), _text(values, CONTEXT))


def _configured(config: Config | None, namespace: str) -> Access:
    if config is None:
        return Access()
    return _given({key: config.get(f"{namespace}:{key}") for key in (KUBECONFIG, CONTEXT)})


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value if isinstance(value, str) and value else None
