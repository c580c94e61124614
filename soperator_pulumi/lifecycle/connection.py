"""Inputs that identify the cluster of a resource, and access to it for the resource's provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import pulumi
from pulumi.dynamic import Config

from soperator_pulumi.kube.access import Access

KUBECONFIG = "kubeconfig"
CONTEXT = "context"

_NAMESPACES = ("soperator", "kubernetes")
"""Namespaces of the stack's configuration that may set the access: `soperator` comes before `kubernetes`."""


class AccessArgs(TypedDict, total=False):
    """Access to a Kubernetes cluster, as arguments of a component."""

    kubeconfig: pulumi.Input[str] | None
    """Content or path of a kubeconfig file. Default: the ambient KUBECONFIG."""
    context: pulumi.Input[str] | None
    """Context in the kubeconfig. Default: its current one."""


@dataclass(frozen=True)
class KubernetesAccess:
    """Access to a Kubernetes cluster as given by the program; empty to use the ambient KUBECONFIG."""

    kubeconfig: pulumi.Input[str] | None = field(default=None, repr=False)
    """Content or path of a kubeconfig file. As it holds credentials, the repr leaves it out."""
    context: pulumi.Input[str] | None = None
    """A context in the kubeconfig."""

    def __bool__(self) -> bool:
        """Return True if anything is given."""
        return self.kubeconfig is not None or self.context is not None

    def inputs(self) -> dict[str, pulumi.Input[str] | None]:
        """Return the inputs of a resource."""
        return {KUBECONFIG: self.secret_kubeconfig(), CONTEXT: self.context}

    def secret_kubeconfig(self) -> pulumi.Output[str] | None:
        """Return the kubeconfig as a secret, so that Pulumi encrypts it in the state of any resource."""
        return None if self.kubeconfig is None else pulumi.Output.secret(self.kubeconfig)

    def with_configured_access(self) -> "KubernetesAccess":
        """Return this access, or the one in the stack's configuration if the program gives none.

        A plugin cannot read the stack's configuration. The SDK's server of dynamic resources can; see `access`.
        """
        return self or _configured_access()


@dataclass(frozen=True)
class ClusterConnection:
    """Handle of a Slurm cluster, for resources that act on the running cluster.

    `SlurmCluster.connection` returns it, also for resources of other programs.
    """

    access: KubernetesAccess
    namespace: str
    owner: str
    """Stack and component that own the cluster, as written on its objects and in the reasons of its drains."""
    component: pulumi.Input[str]
    """URN of the cluster's component."""
    selector: Mapping[str, str]
    """Labels of the pods that a resource is about: the whole cluster, unless `pods` narrows them."""
    namespace_uid: pulumi.Input[str] | None = None
    """UID of the namespace: no resource acts on another namespace of the same name. None to record the current one."""

    def pods(self, selector: Mapping[str, str]) -> "ClusterConnection":
        """Return the handle for the pods with these labels."""
        return replace(self, selector=selector)

    def pinned(self, namespace_uid: pulumi.Input[str] | None) -> "ClusterConnection":
        """Return the handle for the namespace with this UID."""
        return replace(self, namespace_uid=namespace_uid)

    def with_configured_access(self) -> "ClusterConnection":
        """Return the handle with the access in the stack's configuration, if the program gives none."""
        return replace(self, access=self.access.with_configured_access())

    def inputs(self) -> dict[str, Any]:
        """Return the inputs of a resource, in the form that `ClusterRef` reads."""
        return {
            "namespace": self.namespace,
            "namespace_uid": self.namespace_uid,
            "owner": self.owner,
            "component": self.component,
            "selector": {**self.selector},
            **self.access.inputs(),
        }


def _configured_access() -> KubernetesAccess:
    """Return the access in the running program's stack configuration, in the order that `access` uses."""
    for namespace in _NAMESPACES:
        config = pulumi.Config(namespace)
        if found := KubernetesAccess(config.get_secret(KUBECONFIG), config.get(CONTEXT)):
            return found
    return KubernetesAccess()


def access(props: Mapping[str, Any], config: Config | None) -> Access:
    """Return the access to the cluster of a resource with these inputs or outputs.

    The first of these that is set applies: the inputs, the stack's `soperator:kubeconfig` and `soperator:context`, its
    `kubernetes:kubeconfig` and `kubernetes:context`, which also apply to Pulumi's own Kubernetes resources, and the
    ambient KUBECONFIG.
    """
    order = [_given(props), *(_configured(config, namespace) for namespace in _NAMESPACES)]
    return next((access for access in order if access != Access()), Access())


def with_newest_access(recorded: Mapping[str, Any], config: Config | None) -> dict[str, Any]:
    """Return recorded outputs with the newest known access to the same cluster.

    Recorded credentials may have expired: those in the stack's `soperator:kubeconfig` replace them if they are for the
    same API server. A cluster with access to another server keeps it, as a program may have several clusters.
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
