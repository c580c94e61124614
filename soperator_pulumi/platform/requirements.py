"""Requirements on parts that exist already: versions, definitions, and settings that jobs depend on."""

from collections.abc import Callable, Iterator

from soperator_pulumi.operations.installed import Definition, ObjectRule, Requirement, Workload
from soperator_pulumi.platform.charts import CHART_OF_PART
from soperator_pulumi.spec.platform.platform_spec import PARTS, PlatformSpec

ENFORCE = "pod-security.kubernetes.io/enforce"
"""Label of a namespace that sets the level of pod security that Kubernetes enforces."""

_OPERATOR_VERSION = "operator.prometheus.io/version"


def requirements(spec: PlatformSpec) -> Iterator[Requirement]:
    """Yield the requirements on the parts of a platform that exist already."""
    for name in PARTS:
        part = spec.part(name)
        if part is not None and part.exists:
            yield _OF_PART[name](spec)
    if isinstance(spec.storage_class, str):  # an Output is the name of a class that another resource creates
        yield _storage_class(spec.storage_class)
    if spec.shared_storage is not None and spec.shared_storage.existing_class is not None:
        yield _storage_class(spec.shared_storage.existing_class)


PRIVILEGED_PARTS = ("cilium", "gpu_operator", "kube_prometheus_stack", "network_operator")
"""Parts whose pods need a namespace with the pod security level `privileged`."""


def namespace_requirements(spec: PlatformSpec) -> Iterator[Requirement]:
    """Yield the requirements on existing namespaces (`create_namespace: false`).

    Without the label, the API server's default applies, which no client can read.
    """
    for name in PRIVILEGED_PARTS:
        part = spec.part(name)
        if part is None or part.create_namespace:  # which those that exist cannot change
            continue
        namespace = part.namespace or CHART_OF_PART[name].namespace
        if namespace == "kube-system":
            continue
        rule = ObjectRule(
            path=f"/api/v1/namespaces/{namespace}",
            collection=False,
            optional=True,
            called="Namespace",
            labels={ENFORCE: ("privileged",)},
            cure="Its pods would be refused. Label it: "
            f"kubectl label --overwrite namespace {namespace} {ENFORCE}=privileged",
        )
        yield Requirement(part=f"{name}.create_namespace", title="the namespace", minimum="0.0.0", rules=(rule,))


def _storage_class(name: str) -> Requirement:
    rule = ObjectRule(
        path=f"/apis/storage.k8s.io/v1/storageclasses/{name}",
        collection=False,
        called=f'StorageClass "{name}"',
        cure="Give the name of an existing class (kubectl get storageclasses), or create one with shared_storage.",
    )
    return Requirement(part="storage_class", title="the StorageClass", minimum="0.0.0", rules=(rule,))


def _cert_manager(_spec: PlatformSpec) -> Requirement:
    return Requirement(
        part="cert_manager",
        title="cert-manager",
        minimum="1.12.0",
        definitions=(Definition(name="certificates.cert-manager.io", version="v1"),),
        workload=Workload(
            kind="Deployment",
            labels={"app.kubernetes.io/name": "cert-manager", "app.kubernetes.io/component": "controller"},
            container="cert-manager-controller",
        ),
    )


def _cilium(spec: PlatformSpec) -> Requirement:
    assert spec.cilium is not None  # noqa: S101 - the part that exists
    exclusive = ObjectRule(
        path=f"/api/v1/namespaces/{spec.cilium.namespace or 'kube-system'}/configmaps/cilium-config",
        collection=False,
        called="ConfigMap",
        allowed={"data.cni-exclusive": ("false",)},
        cure="Set the value cni.exclusive=false of Cilium's chart: otherwise Cilium renames the configuration of "
        "Multus, "
        "which breaks secondary networks.",
    )
    multus = spec.network_operator is not None and bool(spec.network_operator.networks)
    return Requirement(
        part="cilium",
        title="Cilium",
        minimum="1.14.0",
        definitions=(Definition(name="ciliumnetworkpolicies.cilium.io", version="v2"),),
        workload=Workload(kind="DaemonSet", labels={"k8s-app": "cilium"}, container="cilium-agent"),
        rules=(exclusive,) if multus else (),
    )


def _kube_prometheus_stack(_spec: PlatformSpec) -> Requirement:
    everything: dict[str, tuple[str, ...]] = {
        f"spec.{kind}{selector}": ("{}",)
        for kind in ("serviceMonitor", "podMonitor", "rule")
        for selector in ("Selector", "NamespaceSelector")
    }
    return Requirement(
        part="kube_prometheus_stack",
        title="the Prometheus operator",
        minimum="0.75.0",
        definitions=tuple(
            Definition(
                name=f"{plural}.monitoring.coreos.com",
                version="v1",
                release_annotation="operator.prometheus.io/version",
            )
            for plural in ("prometheuses", "servicemonitors", "podmonitors", "prometheusrules")
        ),
        rules=(
            ObjectRule(
                path="/apis/monitoring.coreos.com/v1/prometheuses",
                called="Prometheus",
                allowed=everything,
                every=False,
                cure="Without it, Slurm's monitors are silently ignored. In kube-prometheus-stack, set "
                "serviceMonitorSelectorNilUsesHelmValues, podMonitorSelectorNilUsesHelmValues and "
                "ruleSelectorNilUsesHelmValues of prometheus.prometheusSpec to false.",
            ),
        ),
    )


def _mariadb_operator(_spec: PlatformSpec) -> Requirement:
    return Requirement(
        part="mariadb_operator",
        title="mariadb-operator",
        minimum="25.8.0",
        definitions=tuple(
            Definition(name=f"{plural}.k8s.mariadb.com", version="v1alpha1")
            for plural in ("mariadbs", "databases", "users", "grants", "backups")
        ),
        workload=Workload(
            kind="Deployment", labels={"app.kubernetes.io/name": "mariadb-operator"}, container="controller"
        ),
    )


def _gpu_operator(spec: PlatformSpec) -> Requirement:
    policies = "/apis/nvidia.com/v1/clusterpolicies"
    assert spec.gpu_operator is not None  # noqa: S101 - the part that exists
    runtime_class = spec.gpu_operator.runtime_class
    return Requirement(
        part="gpu_operator",
        title="the GPU Operator",
        minimum="24.6.0",
        definitions=(Definition(name="clusterpolicies.nvidia.com", version="v1"),),
        workload=Workload(
            kind="Deployment", labels={"app.kubernetes.io/component": "gpu-operator"}, container="gpu-operator"
        ),
        rules=(
            ObjectRule(
                path=policies,
                called="ClusterPolicy",
                allowed={"status.state": ("ready",)},
                cure="To see why, run: kubectl describe clusterpolicies.nvidia.com",
            ),
            ObjectRule(
                path=policies,
                called="ClusterPolicy",
                allowed={"spec.driver.upgradePolicy.autoUpgrade": ("false", "unset")},
                unless={"spec.driver.enabled": ("false",)},
                cure="Set the value driver.upgradePolicy.autoUpgrade=false of its chart: otherwise an upgrade evicts "
                "slurmd "
                "while jobs run.",
            ),
            ObjectRule(
                path=f"/apis/node.k8s.io/v1/runtimeclasses/{runtime_class}",
                collection=False,
                called=f'RuntimeClass "{runtime_class}"',
                cure="Give the name of the existing one: gpu_operator.runtime_class.",
            ),
        ),
    )


def _network_operator(_spec: PlatformSpec) -> Requirement:
    policies = "/apis/mellanox.com/v1alpha1/nicclusterpolicies"
    return Requirement(
        part="network_operator",
        title="the Network Operator",
        minimum="24.7.0",
        definitions=(Definition(name="nicclusterpolicies.mellanox.com", version="v1alpha1"),),
        workload=Workload(
            kind="Deployment", labels={"app.kubernetes.io/name": "network-operator"}, container="network-operator"
        ),
        rules=(
            ObjectRule(
                path=policies,
                called="NicClusterPolicy",
                allowed={"status.state": ("ready",)},
                cure="To see why, run: kubectl describe nicclusterpolicies.mellanox.com",
            ),
            ObjectRule(
                path=policies,
                called="NicClusterPolicy",
                allowed={"spec.ofedDriver.upgradePolicy.autoUpgrade": ("false", "unset")},
                cure="Set it to false: otherwise a new driver restarts the network while jobs run.",
            ),
        ),
    )


_OF_PART: dict[str, Callable[[PlatformSpec], Requirement]] = {
    "cert_manager": _cert_manager,
    "cilium": _cilium,
    "kube_prometheus_stack": _kube_prometheus_stack,
    "mariadb_operator": _mariadb_operator,
    "gpu_operator": _gpu_operator,
    "network_operator": _network_operator,
}
