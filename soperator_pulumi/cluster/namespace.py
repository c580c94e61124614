"""The namespace of a cluster, and the Service by which the pods in it find each other."""

from pulumi_kubernetes.core.v1 import Namespace, Service, ServiceSpecArgs
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from soperator_pulumi.cluster.pods import NODES_SERVICE
from soperator_pulumi.cluster.scope import SKIP_AWAIT, SLURM_LABEL, Scope
from soperator_pulumi.cluster.storage import kept
from soperator_pulumi.spec.cluster import ClusterSpec


def create_namespace(name: str, scope: Scope, spec: ClusterSpec) -> Scope:
    """Create the namespace, unless it exists, and return the surroundings of what stands in it."""
    if not spec.create_namespace:
        return scope
    # SYS_ADMIN, to move jobs into the jail, is what the baseline level forbids; no container of ours is privileged.
    labels = {**scope.object_labels(), "pod-security.kubernetes.io/enforce": "privileged"}
    namespace = Namespace(
        f"{name}-namespace",
        metadata=ObjectMetaArgs(name=spec.namespace, labels=labels, annotations={**spec.annotations} or None),
        opts=scope.options(kept(keep=spec.storage.keep)),
    )
    return scope.inside(namespace)


def create_nodes_service(name: str, scope: Scope) -> Service:
    """Create the headless Service of the pods in which Slurm runs."""
    return Service(
        f"{name}-nodes",
        # It has no port to wait for, and the pods wait for it.
        metadata=scope.metadata(NODES_SERVICE, annotations=SKIP_AWAIT),
        spec=ServiceSpecArgs(
            cluster_ip="None", publish_not_ready_addresses=True, selector={**scope.selector(), **SLURM_LABEL}
        ),
        opts=scope.options(),
    )
