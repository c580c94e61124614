"""Table of the platform's charts: repositories, tested versions, and the origin of their definitions."""

from dataclasses import dataclass
from enum import StrEnum


class Definitions(StrEnum):
    """Origin of a chart's CustomResourceDefinitions (CRDs), and how upgrades and removals treat them."""

    NONE = "none"
    """The chart has none."""
    FOLDER = "folder"
    """Helm creates the CRDs in the folder `crds/` only at the installation, and never removes them. A hook Job of the
    chart applies newer ones before an upgrade."""
    OWN_RELEASE = "own release"
    """A separate chart, which upgrades apply. A removal keeps the CRDs: deleting them would make Kubernetes delete
    every object of their kinds."""
    KEPT = "kept"
    """Templates of the chart, upgraded with it. `helm.sh/resource-policy: keep` keeps them after a removal."""
    OPERATOR = "operator"
    """The operator creates and upgrades the CRDs when it runs. They stay after a removal."""


@dataclass(frozen=True)
class Chart:
    """A chart of another project."""

    name: str
    """Name of the chart."""
    version: str
    """Tested version. `keys/` lists the keys of its values."""
    repository: str
    """Address of the project's own repository, `https://` or `oci://`."""
    namespace: str
    """Usual namespace."""
    release: str
    """Name of Helm's release. It is fixed: Helm identifies the owner of definitions by release name and namespace."""
    definitions: Definitions
    """Origin of the CRDs."""

    @property
    def known_keys(self) -> str:
        """Name of the list of keys for the tested version."""
        return f"{self.name}-{self.version.removeprefix('v')}"


NVIDIA = "https://helm.ngc.nvidia.com/nvidia"
PROMETHEUS = "https://prometheus-community.github.io/helm-charts"
MARIADB = "oci://ghcr.io/mariadb-operator/charts"

CERT_MANAGER = Chart(
    name="cert-manager",
    version="v1.21.2",
    repository="https://charts.jetstack.io",
    namespace="cert-manager",
    release="cert-manager",
    definitions=Definitions.KEPT,
)
CILIUM = Chart(
    name="cilium",
    version="1.20.2",
    repository="https://helm.cilium.io",
    namespace="kube-system",
    release="cilium",
    definitions=Definitions.OPERATOR,
)
PROMETHEUS_OPERATOR_CRDS = Chart(
    name="prometheus-operator-crds",
    version="31.0.1",
    repository=PROMETHEUS,
    namespace="monitoring",
    release="prometheus-operator-crds",
    definitions=Definitions.KEPT,
)
KUBE_PROMETHEUS_STACK = Chart(
    name="kube-prometheus-stack",
    version="88.6.1",
    repository=PROMETHEUS,
    namespace="monitoring",
    release="kube-prometheus-stack",
    definitions=Definitions.OWN_RELEASE,
)
MARIADB_OPERATOR_CRDS = Chart(
    name="mariadb-operator-crds",
    version="26.6.0",
    repository=MARIADB,
    namespace="mariadb-operator",
    release="mariadb-operator-crds",
    definitions=Definitions.OWN_RELEASE,
)
MARIADB_OPERATOR = Chart(
    name="mariadb-operator",
    version="26.6.0",
    repository=MARIADB,
    namespace="mariadb-operator",
    release="mariadb-operator",
    definitions=Definitions.OWN_RELEASE,
)
GPU_OPERATOR = Chart(
    name="gpu-operator",
    version="v26.7.0",
    repository=NVIDIA,
    namespace="gpu-operator",
    release="gpu-operator",
    definitions=Definitions.FOLDER,
)
NETWORK_OPERATOR = Chart(
    name="network-operator",
    version="26.4.1",
    repository=NVIDIA,
    namespace="network-operator",
    release="network-operator",
    definitions=Definitions.FOLDER,
)

CHARTS = (
    CERT_MANAGER,
    CILIUM,
    PROMETHEUS_OPERATOR_CRDS,
    KUBE_PROMETHEUS_STACK,
    MARIADB_OPERATOR_CRDS,
    MARIADB_OPERATOR,
    GPU_OPERATOR,
    NETWORK_OPERATOR,
)
"""All charts, in the order of their installation."""

CHART_OF_PART = {
    "cert_manager": CERT_MANAGER,
    "cilium": CILIUM,
    "kube_prometheus_stack": KUBE_PROMETHEUS_STACK,
    "mariadb_operator": MARIADB_OPERATOR,
    "gpu_operator": GPU_OPERATOR,
    "network_operator": NETWORK_OPERATOR,
}
"""Main chart of every part of the spec, to which its `values` and `version` apply."""
