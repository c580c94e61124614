"""Programs that violate a policy: one for each, which violates no other in prod."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import IMAGES, a_node_set, a_spec, provided

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

    def deployed(self) -> tuple[Deployment, Deployment | None]:
        """Return its deployment, and the one before. Nothing may change them: other tests get the same."""
        return deployed(self.program), deployed(self.before) if self.before else None


@functools.cache
def deployed(program: Callable[[], object]) -> Deployment:
    return deploy(program, outputs=provided)


def a_cluster(**changes: Any) -> Callable[[], SlurmCluster]:
    """A cluster that prod takes as it is, with changes."""
    egress = {"egress": ["internet", "cluster", "10.20.0.0/16"]}
    kept: dict[str, Any] = {
        "accounting": {"dump": {}},
        "metrics": {"alerts": {}, "dashboards": True, "events": True, "node_conditions": True},
        "health": {"long_checks": {"memory_bandwidth": {}}},
    }
    spec = a_spec(**{"login": {"replicas": 2}, "network": egress, **kept, **changes})
    return lambda: SlurmCluster("hpc", spec)


TAKEN = a_cluster()
"""The cluster without a change."""


def with_node_set(**changes: Any) -> Callable[[], SlurmCluster]:
    return a_cluster(node_sets=[a_node_set(**changes)])


def of_sizes(**replicas: int) -> Callable[[], SlurmCluster]:
    return a_cluster(node_sets=[a_node_set(name=name, replicas=number) for name, number in replicas.items()])


def web(pod: Mapping[str, Any] | None = None, container: Mapping[str, Any] | None = None, replicas: int = 1) -> None:
    """Pods of a service next to the cluster, as prod takes them, with changes."""
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


def halves_of_the_internet() -> None:
    for name, cidr in {"low": "0.0.0.0/2", "high": "64.0.0.0/2"}.items():
        spec: Any = {
            "podSelector": {"matchLabels": {"app": "web"}},
            "ingress": [{"from": [{"ipBlock": {"cidr": cidr}}]}],
        }
        kubernetes.networking.v1.NetworkPolicy(name, metadata=named(name), spec=spec)


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


def claims_in_a_namespace() -> None:
    kept = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
    kubernetes.core.v1.Namespace("shop", metadata={"name": "shop", "labels": LABELS})
    kubernetes.core.v1.PersistentVolumeClaim("data", metadata=named("data"), opts=kept)


def a_class_that_deletes() -> None:
    kept = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
    kubernetes.storage.v1.StorageClass("fast", metadata={"name": "fast", "labels": LABELS}, provisioner="csi.example")
    spec: Any = {"storageClassName": "fast", "accessModes": ["ReadWriteMany"]}
    kubernetes.core.v1.PersistentVolumeClaim("data", metadata=named("data"), spec=spec, opts=kept)


GPUS = {"resources": {"limits": {"nvidia.com/gpu": "4", "memory": "8Gi"}}}


def a_patch() -> None:
    template = {"spec": {"initContainers": [{"name": "tool", "securityContext": {"privileged": True}}]}}
    spec: Any = {"template": template}
    kubernetes.apps.v1.DaemonSetPatch("agent", metadata={"name": "agent", "namespace": "shop"}, spec=spec)


def a_list() -> None:
    items: Any = [{"metadata": named("settings"), "data": {"munge.key": "bXVuZ2U="}}]
    kubernetes.core.v1.ConfigMapList("settings", items=items)


def a_group() -> None:
    metadata = named("agent")
    pods = {"spec": {"hostPID": True, "containers": [{"name": "a", "image": "a:1"}], "serviceAccountName": "a"}}
    kubernetes.yaml.v2.ConfigGroup("agent", objs=[{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **pods}])
    closed()


def a_manifest() -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("db"), "data": {"password": "x"}})
    kubernetes.yaml.v2.ConfigGroup("db", yaml=text)


def a_chart() -> None:
    values = {"auth": {"rootPassword": "hunter2"}}
    kubernetes.helm.v3.Release("db", kubernetes.helm.v3.ReleaseArgs(chart="mariadb", version="1.2.3", values=values))


def a_label_of_ours() -> None:
    labels = {**LABELS, "app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/component": "worker"}
    container = {"name": "a", "image": "a:1", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
    spec: Any = {"serviceAccountName": "a", "containers": [container]}
    kubernetes.core.v1.Pod("agent", metadata=named("agent", labels=labels), spec=spec)
    closed()


def a_child_of_ours() -> None:
    cluster = a_cluster()()
    spec: Any = {"serviceAccountName": "a", "containers": [{"name": "a", "image": "a:1", **PROFILE}]}
    options = pulumi.ResourceOptions(parent=cluster)
    kubernetes.core.v1.Pod("hpc", metadata=named("agent"), spec=spec, opts=options)
    closed()


def a_patch_that_opens() -> None:
    closed_web()()
    spec: Any = {"podSelector": {"matchLabels": {"app": "nothing"}}}
    kubernetes.networking.v1.NetworkPolicyPatch("open", metadata={"name": "web", "namespace": "shop"}, spec=spec)


def a_driver_that_upgrades() -> None:
    kubernetes.helm.v3.Release(
        "gpu-operator",
        name="gpu-operator",
        chart="gpu-operator",
        version="v26.7.0",
        values={"driver": {"upgradePolicy": {"autoUpgrade": True}}},
    )


def a_grafana_for_all() -> None:
    options = {"auth.anonymous": {"enabled": True, "org_role": "Admin"}}
    kubernetes.helm.v3.Release(
        "monitoring",
        name="monitoring",
        chart="kube-prometheus-stack",
        version="88.6.1",
        values={"grafana": {"grafana.ini": options}},
    )


def a_chart_of_any_version() -> None:
    chart = kubernetes.helm.v3.RepositoryOptsArgs(repo="https://charts.example")
    args = kubernetes.helm.v3.ReleaseArgs(chart="monitoring", repository_opts=chart, version=">=1.2")
    kubernetes.helm.v3.Release("monitoring", args)


def a_namespace_of_privileged_pods() -> None:
    labels = {**LABELS, "pod-security.kubernetes.io/enforce": "privileged"}
    kubernetes.core.v1.Namespace("agents", metadata={"name": "agents", "labels": labels})


def an_admin() -> None:
    """A ServiceAccount that reads all Secrets, by a wildcard."""
    rbac: Any = kubernetes.rbac.v1
    rules: Any = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]},
    ]
    metadata = {"name": "web", "labels": LABELS}
    kubernetes.core.v1.ServiceAccount("web", metadata=named("web"))
    rbac.ClusterRole("web", metadata=metadata, rules=rules)
    rbac.ClusterRoleBinding(
        "web",
        metadata=metadata,
        role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"},
        subjects=[{"kind": "ServiceAccount", "name": "web", "namespace": "shop"}],
    )


def an_open_route() -> None:
    a_cluster(rest={"tls": {"secret": "rest-certificate"}})()
    backend = {"service": {"name": "rest", "port": {"number": 6820}}}
    spec: Any = {"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}
    kubernetes.networking.v1.Ingress("rest", metadata=named("rest", namespace="hpc"), spec=spec)


PROFILE = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}

WAYS_ROUND: dict[str, tuple[str, Callable[[], object]]] = {
    "a patch": ("privileged-pods", a_patch),
    "a list": ("secrets-in-secrets", a_list),
    "a group of objects": ("privileged-pods", a_group),
    "a manifest in a text": ("secrets-in-secrets", a_manifest),
    "a chart's values": ("secrets-in-secrets", a_chart),
    "a label of ours": ("privileged-pods", a_label_of_ours),
    "a parent of ours": ("privileged-pods", a_child_of_ours),
    "a patch of another object": ("network-policies", a_patch_that_opens),
}
"""Policies, and programs that violate them by other ways than with objects of their own."""

VIOLATING: dict[str, Violating] = {
    "policy-configuration": Violating(TAKEN, policy={"settings": {"pinned-images": {"registry": ["r.example"]}}}),
    "named-runs": Violating(TAKEN, variables={"SOPERATOR_CONTROLLER_LOST": "hpc"}),
    "privileged-pods": Violating(closed_web(pod={"hostNetwork": True})),
    "host-paths": Violating(
        a_cluster(jail={"submounts": [{"path": "/mnt/local", "host_path": "/mnt/nvme", "roles": ["worker"]}]})
    ),
    "service-account-tokens": Violating(closed_web(pod={"serviceAccountName": None})),
    "admin-rights": Violating(an_admin),
    "pinned-images": Violating(a_cluster(images={**IMAGES, "worker": "registry.example/worker:latest"})),
    "pinned-charts": Violating(a_chart_of_any_version),
    "privileged-namespaces": Violating(a_namespace_of_privileged_pods),
    "secrets-in-secrets": Violating(a_config_map(named("settings"), **{"munge.key": "bXVuZ2U="})),
    "marked-secrets": Violating(lambda: kubernetes.Provider("other", kubeconfig=CREDENTIALS)),
    "kept-data": Violating(a_cluster(storage={"keep": False})),
    "kept-namespaces": Violating(claims_in_a_namespace),
    "kept-volumes": Violating(a_class_that_deletes),
    "encrypted-rest": Violating(a_cluster(rest={})),
    "accounting": Violating(a_cluster(accounting="none")),
    "accounting-dumps": Violating(a_cluster(accounting={})),
    "login-replicas": Violating(a_cluster(login={"replicas": 1})),
    "drain-policies": Violating(with_node_set(drain={"wait": False})),
    "cancelled-jobs": Violating(with_node_set(drain={"on_timeout": "cancel"})),
    "slurm-settings": Violating(a_cluster(slurm={"constrain": "none"})),
    "scale-down": Violating(of_sizes(cpu=2, large=40), before=of_sizes(cpu=8, large=40)),
    "cluster-scale-down": Violating(of_sizes(cpu=1, large=1), before=of_sizes(cpu=2, large=2)),
    "undrained-nodes": Violating(a_cluster_whose_nodes_leave_undrained),
    "nodes-in-service": Violating(with_node_set(max_unready="100%")),
    "driver-upgrades": Violating(a_driver_that_upgrades),
    "public-logins": Violating(
        a_cluster(login={"replicas": 2, "service": "LoadBalancer", "allowed_sources": ["0.0.0.0/0"]})
    ),
    "joint-ingress": Violating(halves_of_the_internet),
    "public-routes": Violating(an_open_route),
    "anonymous-grafana": Violating(a_grafana_for_all),
    "open-egress": Violating(a_cluster(network={})),
    "user-namespaces": Violating(a_cluster(jail={"isolation": {"user_namespaces": True}})),
    "names": Violating(a_config_map({"namespace": "shop", "labels": LABELS})),
    "labels": Violating(a_config_map(named("settings", labels={}))),
    "network-policies": Violating(web),
    "disruption-budgets": Violating(a_cluster_whose_budgets_select_nothing),
    "gpu-quota": Violating(closed_web(container=GPUS, replicas=3), policy={"settings": {"gpu-quota": {"limit": 8}}}),
    "alert-rules": Violating(a_cluster(metrics={"dashboards": True})),
    "health-checks": Violating(
        a_cluster(health={"enabled": False, "long_checks": {"memory_bandwidth": {}}}),
    ),
    "long-checks": Violating(a_cluster(health={})),
    "unused-exceptions": Violating(TAKEN, policy={"exceptions": {"host-paths": {"reason": "an old disk"}}}),
}

OF_THE_RUN = {"policy-configuration", "named-runs", "gpu-quota", "unused-exceptions"}
"""Those that the stack's file or a variable violates: another stack's pack does not see them."""
