"""Which component of which program holds a cluster: a mark in its namespace, known to all that could delete it.

Pulumi takes a resource whose URN has changed for another one: it creates the new one and then deletes the old one,
which is the same cluster. By the mark the old one knows that it was superseded.
"""

from collections.abc import Mapping

from soperator_pulumi.errors import DrainError
from soperator_pulumi.operations.kube import Kube, config_map_path

MARK = "soperator-pulumi"
"""Name of the ConfigMap that is the mark: who may write ConfigMaps may need no more than that in a namespace."""

_HOLDER = "holder"


def holder(kube: Kube, namespace: str) -> str:
    """Return the URN of the component that holds the cluster of a namespace; empty when none does."""
    found = kube.get(config_map_path(namespace, MARK)) or {}
    return str((found.get("data") or {}).get(_HOLDER, ""))


def hold(kube: Kube, namespace: str, component: str, labels: Mapping[str, str]) -> None:
    """Have a component hold the cluster, whoever held it before.

    Args:
        kube: Where the cluster is.
        namespace: Its namespace, which exists.
        component: URN of the component.
        labels: Labels of the mark.
    """
    path = config_map_path(namespace, MARK)
    if holder(kube, namespace) != component:
        metadata = {"name": MARK, "namespace": namespace, "labels": {**labels}}
        kube.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_HOLDER: component}})


def release(kube: Kube, namespace: str, component: str) -> None:
    """Take the mark away, if this component holds the cluster."""
    if component and holder(kube, namespace) == component:
        kube.delete(config_map_path(namespace, MARK))


def require_held(kube: Kube, namespace: str, component: str, cluster: str) -> None:
    """Go on where nobody else holds the cluster.

    Args:
        kube: Where the cluster is.
        namespace: Its namespace.
        component: URN of the component that is about to drain it; empty where an older release recorded none.
        cluster: The cluster's name, for the message.

    Raises:
        DrainError: somebody else does. Nothing may be drained, and so nothing is deleted.
    """
    other = holder(kube, namespace) if component else ""
    if other and other != component:
        raise DrainError(
            f"{cluster}: nothing is drained and nothing deleted, as another component holds the cluster:\n"
            f"  {other}\n"
            "If that one is this one before it was renamed, run `pulumi up` first.\n"
            "If it has taken the cluster over, have Pulumi forget this one, which touches nothing in Kubernetes: "
            f"pulumi state delete --target-dependents --force '{component}'"
        )


def problem(kube: Kube, namespace: str, component: str, before: str) -> str:
    """Return why a component may not take a cluster; empty when it may.

    Args:
        kube: Where the cluster is.
        namespace: Its namespace.
        component: URN of the component.
        before: Its URN as it was recorded last, another one where Pulumi knows that it was renamed; or empty.
    """
    found = holder(kube, namespace) if component else ""
    if not found or found in {component, before}:
        return ""
    return (
        f'got "{namespace}", whose cluster is {found}, and not {component}. If the component was renamed or has '
        "another parent, give it an alias, or Pulumi would delete the one and create the other: "
        "aliases=[pulumi.Alias(...)]. If the state that knew it is lost for good, let go of it: "
        f"kubectl --namespace {namespace} delete configmap {MARK}"
    )
