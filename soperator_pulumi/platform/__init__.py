"""The platform below Slurm: components over charts of other projects."""

from soperator_pulumi.platform.cert_manager import CertManager
from soperator_pulumi.platform.chart_component import ChartComponent
from soperator_pulumi.platform.charts import CHARTS
from soperator_pulumi.platform.cilium import Cilium
from soperator_pulumi.platform.description import InvalidPlatformError, parse_platform
from soperator_pulumi.platform.gpu_operator import GpuOperator
from soperator_pulumi.platform.kube_prometheus_stack import KubePrometheusStack, PrometheusDefinitions
from soperator_pulumi.platform.mariadb_operator import MariadbOperator
from soperator_pulumi.platform.network_operator import NetworkOperator
from soperator_pulumi.platform.platform_component import Platform, SlurmPlatformArgs
from soperator_pulumi.platform.shared_storage import SharedStorage
from soperator_pulumi.spec.platform.platform_spec import PlatformSpec

__all__ = [
    "CHARTS",
    "CertManager",
    "ChartComponent",
    "Cilium",
    "GpuOperator",
    "InvalidPlatformError",
    "KubePrometheusStack",
    "MariadbOperator",
    "NetworkOperator",
    "Platform",
    "PlatformSpec",
    "PrometheusDefinitions",
    "SharedStorage",
    "SlurmPlatformArgs",
    "parse_platform",
]
