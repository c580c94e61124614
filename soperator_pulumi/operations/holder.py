"""Holder of a cluster: a component, named by a mark in the namespace that every drain gate checks before it drains.

Pulumi takes a resource with a changed URN for another one: it creates the new resource and then deletes the old one,
which is the same cluster. By the mark the old resource knows that it was superseded.
"""

from collections.abc import Mapping

from soperator_pulumi.errors import DrainError
from soperator_pulumi.operations.kube import Kube, config_map_path

MARK = "soperator-pulumi"
"""Name of the ConfigMap that is the mark: the right to write ConfigMaps in the namespace is enough."""

_HOLDER = "holder"


def holder(kube: Kube, namespace: str) -> str:
    """Return the URN of the component that holds the cluster of a namespace; empty when none holds it."""
    found = kube.get(config_map_path(namespace, MARK)) or {}
    return str((found.get("data") or {}).get(_HOLDER, ""))


def hold(kube: Kube, namespace: str, component: str, labels: Mapping[str, str]) -> None:
    """Have a component hold the cluster, whoever held it before.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Namespace of the cluster, which exists.
        component: URN of the component.
        labels: Labels of the mark.
    """
    path = config_map_path(namespace, MARK)
    if holder(kube, namespace) != component:
        metadata = {"name": MARK, "namespace": namespace, "labels": {**labels}}
        kube.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_HOLDER: component}})


def release(kube: Kube, namespace: str, component: str) -> None:
    """Delete the mark, if this component holds the cluster."""
    if component and holder(kube, namespace) == component:
        kube.delete(config_map_path(namespace, MARK))


def require_held(kube: Kube, namespace: str, component: str, cluster: str) -> None:
    """Refuse where another component holds the cluster.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Namespace of the cluster.
        component: URN of the component that is about to drain it; empty where none is recorded.
        cluster: Name of the cluster, for the message.

    Raises:
        DrainError: another component holds it. Nothing may be drained, and so nothing is deleted.
    """
    other = holder(kube, namespace) if component else ""
    if other and other != component:
        raise DrainError(
            f"{cluster}: nothing is drained and nothing deleted, as another component holds the cluster:\n"
            f"  {other}\n"
            "If that is the former name of this component, run `pulumi up` first.\n"
            "If it has taken over the cluster, delete this one from Pulumi's state alone, not from Kubernetes: "
            f"pulumi state delete --target-dependents --force '{component}'"
        )


def problem(kube: Kube, namespace: str, component: str, before: str) -> str:
    """Return why a component may not take a cluster; empty when it may.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Namespace of the cluster.
        component: URN of the component.
        before: URN recorded last, another one where Pulumi knows that the component was renamed; or empty.
    """
    found = holder(kube, namespace) if component else ""
    if not found or found in {component, before}:
        return ""
    return (
        f'got "{namespace}", whose cluster is {found}, and not {component}. If the component was renamed or has '
        "another parent, give it an alias, or Pulumi would delete the one and create the other: "
        "aliases=[pulumi.Alias(...)]. If the state of that component is lost for good, release the cluster: "
        f"kubectl --namespace {namespace} delete configmap {MARK}"
    )
