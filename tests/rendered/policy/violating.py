"""Programs that violate a policy: one for each, which violates no other in prod."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from soperator_pulumi import SlurmCluster
from tests.rendered.cluster.clusters import IMAGES, a_node_set, a_spec

LABELS = {"app.kubernetes.io/part-of": "shop", "app": "web"}
CREDENTIALS = "apiVersion: v1\nkind: Config\nusers: [{name: me, user: {client-key-data: LS0tLS1CRUdJTg==}}]\n"


@dataclass(frozen=True)
class Violating:
    """A program, and the run in which it violates a policy."""

    program: Callable[[], object]
    policy: Mapping[str, Any] = field(default_factory=dict)
    """`soperator:policy` of the stack."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the run."""
    before: Callable[[], object] | None = None
    """The program that was deployed before."""


def a_cluster(**changes: Any) -> Callable[[], SlurmCluster]:
    """A cluster that prod takes as it is, with changes."""
    egress = {"egress": ["internet", "cluster", "10.20.0.0/16"]}
    spec = a_spec(**{"login": {"replicas": 2}, "network": egress, **changes})
    return lambda: SlurmCluster("hpc", spec)


def with_node_set(**changes: Any) -> Callable[[], SlurmCluster]:
    return a_cluster(node_sets=[a_node_set(**changes)])


def web(pod: Mapping[str, Any] | None = None, container: Mapping[str, Any] | None = None, replicas: int = 1) -> None:
    """Pods of a service beside the cluster, as prod takes them, with changes."""
    spec = {
        "serviceAccountName": "web",
        "containers": [{"name": "web", "image": "registry.example/web:1.2", **(container or {})}],
        **(pod or {}),
    }
    template = {"metadata": {"labels": LABELS}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}
    of_deployment: Any = {"replicas": replicas, "selector": selector, "template": template}
    kubernetes.apps.v1.Deployment("web", metadata=named("web"), spec=of_deployment)


def closed() -> None:
    """A NetworkPolicy that closes these pods."""
    spec: Any = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    kubernetes.networking.v1.NetworkPolicy("web", metadata=named("web"), spec=spec)


def named(name: str, **changes: Any) -> Any:
    return {"name": name, "namespace": "shop", "labels": LABELS, **changes}


def a_config_map(metadata: Any, **data: str) -> Callable[[], object]:
    return lambda: kubernetes.core.v1.ConfigMap("settings", metadata=metadata, data=data or {"a": "b"})


def closed_web(**changes: Any) -> Callable[[], None]:
    def program() -> None:
        web(**changes)
        closed()

    return program


def a_cluster_whose_budgets_select_nothing() -> None:
    def change(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not isinstance(args.resource, kubernetes.policy.v1.PodDisruptionBudget):
            return None
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "nothing"}}}
        return pulumi.ResourceTransformationResult({**args.props, "spec": spec}, args.opts)

    pulumi.runtime.register_stack_transformation(change)
    a_cluster()()


def a_cluster_whose_nodes_leave_undrained() -> None:
    def change(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ != "kubernetes:apps/v1:StatefulSet" or "cpu" not in args.name:
            return None
        spec: Any = args.props["spec"]
        spec.replicas = 1
        return pulumi.ResourceTransformationResult(args.props, args.opts)

    pulumi.runtime.register_stack_transformation(change)
    with_node_set(replicas=8)()


GPUS = {"resources": {"limits": {"nvidia.com/gpu": "4", "memory": "8Gi"}}}


def a_patch() -> None:
    template = {"spec": {"initContainers": [{"name": "tool", "securityContext": {"privileged": True}}]}}
    spec: Any = {"template": template}
    kubernetes.apps.v1.DaemonSetPatch("agent", metadata={"name": "agent", "namespace": "shop"}, spec=spec)


def a_list() -> None:
    items: Any = [{"metadata": named("settings"), "data": {"munge.key": "bXVuZ2U="}}]
    kubernetes.core.v1.ConfigMapList("settings", items=items)


WAYS_ROUND: dict[str, Callable[[], object]] = {"privileged-pods": a_patch, "secrets-in-secrets": a_list}
"""Programs that violate a policy with other resources than objects of their own."""

VIOLATING: dict[str, Violating] = {
    "policy-configuration": Violating(a_cluster(), policy={"settings": {"pinned-images": {"registry": ["r.example"]}}}),
    "named-runs": Violating(a_cluster(), variables={"SOPERATOR_CONTROLLER_LOST": "hpc"}),
    "privileged-pods": Violating(closed_web(pod={"hostNetwork": True})),
    "host-paths": Violating(
        a_cluster(jail={"submounts": [{"path": "/mnt/local", "host_path": "/mnt/nvme", "roles": ["worker"]}]})
    ),
    "service-account-tokens": Violating(closed_web(pod={"serviceAccountName": None})),
    "pinned-images": Violating(a_cluster(images={**IMAGES, "worker": "registry.example/worker:latest"})),
    "secrets-in-secrets": Violating(a_config_map(named("settings"), **{"munge.key": "bXVuZ2U="})),
    "marked-secrets": Violating(lambda: kubernetes.Provider("other", kubeconfig=CREDENTIALS)),
    "kept-data": Violating(a_cluster(storage={"keep": False})),
    "login-replicas": Violating(a_cluster(login={"replicas": 1})),
    "drain-policies": Violating(with_node_set(drain={"wait": False})),
    "cancelled-jobs": Violating(with_node_set(drain={"on_timeout": "cancel"})),
    "scale-down": Violating(with_node_set(replicas=2), before=with_node_set(replicas=8)),
    "undrained-nodes": Violating(a_cluster_whose_nodes_leave_undrained),
    "public-logins": Violating(
        a_cluster(login={"replicas": 2, "service": "LoadBalancer", "allowed_sources": ["0.0.0.0/0"]})
    ),
    "open-egress": Violating(a_cluster(network={})),
    "user-namespaces": Violating(a_cluster(jail={"isolation": {"user_namespaces": True}})),
    "names": Violating(a_config_map({"namespace": "shop", "labels": LABELS})),
    "labels": Violating(a_config_map(named("settings", labels={}))),
    "network-policies": Violating(web),
    "disruption-budgets": Violating(a_cluster_whose_budgets_select_nothing),
    "gpu-quota": Violating(closed_web(container=GPUS, replicas=3), policy={"settings": {"gpu-quota": {"limit": 8}}}),
    "unused-exceptions": Violating(a_cluster(), policy={"exceptions": {"host-paths": {"reason": "an old disk"}}}),
}
