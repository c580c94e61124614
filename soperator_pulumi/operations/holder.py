"""Holder of a cluster: the component named in a marker in the namespace, which drain gates check before they drain.

To Pulumi, a resource with a changed URN is another resource: it creates the new one and then deletes the old one,
although both are the same cluster. The marker shows the old resource that it was superseded.
"""

from collections.abc import Mapping

from soperator_pulumi.errors import DrainError
from soperator_pulumi.kube.verbs import Kube, config_map_path

MARK = "soperator-pulumi"
"""Name of the ConfigMap that serves as the marker: it only needs the right to write ConfigMaps in the namespace."""

_HOLDER = "holder"


def holder(kube: Kube, namespace: str) -> str:
    """Return the URN of the component that holds the cluster in a namespace; empty if none does."""
    found = kube.get(config_map_path(namespace, MARK)) or {}
    return str((found.get("data") or {}).get(_HOLDER, ""))


def hold(kube: Kube, namespace: str, component: str, labels: Mapping[str, str]) -> None:
    """Make a component the holder of the cluster, whoever held it before.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Existing namespace of the cluster.
        component: URN of the component.
        labels: Labels of the mark.
    """
    path = config_map_path(namespace, MARK)
    if holder(kube, namespace) != component:
        metadata = {"name": MARK, "namespace": namespace, "labels": {**labels}}
        kube.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_HOLDER: component}})


def release(kube: Kube, namespace: str, component: str) -> None:
    """Delete the marker, if this component holds the cluster."""
    if component and holder(kube, namespace) == component:
        kube.delete(config_map_path(namespace, MARK))


def require_held(kube: Kube, namespace: str, component: str, cluster: str) -> None:
    """Refuse if another component holds the cluster.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Namespace of the cluster.
        component: URN of the component that is about to drain the cluster; empty if none is recorded.
        cluster: Name of the cluster, for the message.

    Raises:
        DrainError: another component holds the cluster. Nothing may be drained, so nothing is deleted.
    """
    other = holder(kube, namespace) if component else ""
    if other and other != component:
        raise DrainError(
            f"{cluster}: nothing is drained and nothing deleted, as another component holds the cluster:\n"
            f"  {other}\n"
            "If that is the former name of this component, run `pulumi up` first.\n"
            "If it has taken over the cluster, delete this one only from Pulumi's state, not from Kubernetes: "
            f"pulumi state delete --target-dependents --force '{component}'"
        )


def problem(kube: Kube, namespace: str, component: str, before: str) -> str:
    """Return why a component may not take a cluster; empty if it may.

    Args:
        kube: Kubernetes of the cluster.
        namespace: Namespace of the cluster.
        component: URN of the component.
        before: Last recorded URN, which differs if Pulumi knows that the component was renamed; or empty.
    """
    found = holder(kube, namespace) if component else ""
    if not found or found in {component, before}:
        return ""
    return (
        f'got "{namespace}", but its cluster is {found}, not {component}. If the component was renamed or has '
        "another parent, give it an alias, or Pulumi would delete one and create the other: "
        "aliases=[pulumi.Alias(...)]. If the state of that component is lost for good, release the cluster: "
        f"kubectl --namespace {namespace} delete configmap {MARK}"
    )
