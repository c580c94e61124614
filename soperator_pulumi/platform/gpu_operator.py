"""NVIDIA's GPU Operator: the release, with values that prevent it from ending jobs."""

from typing import Any, ClassVar

from soperator_pulumi.platform.chart_component import GPU_TAINT, ChartComponent, PartScope, written_tolerations
from soperator_pulumi.spec.platform.gpu_operator import DriverSource, GpuOperatorSpec


class GpuOperator(ChartComponent):
    """NVIDIA's GPU Operator. It never replaces a driver under running jobs: docs/platform.md describes how."""

    PART: ClassVar[str] = "gpu_operator"

    def _install(self, spec: GpuOperatorSpec, scope: PartScope) -> None:
        self.release = self._release(spec, self._namespaced(spec, scope, _BECAUSE), gpu_operator_values(spec))


_BECAUSE = "driver, toolkit and device plugin load kernel modules and mount the machine's root"


def gpu_operator_values(spec: GpuOperatorSpec) -> dict[str, Any]:
    """Return the default values for the chart."""
    # A list replaces the chart's list, so both lists repeat the chart's own taint.
    tolerations = [GPU_TAINT, *written_tolerations(spec.tolerations)]
    place = spec.install_dir
    return {
        "operator": {"runtimeClass": spec.runtime_class},
        "driver": _driver(spec),
        **({"toolkit": {"installDir": place}, "hostPaths": {"driverInstallDir": place}} if place else {}),
        "mig": {"strategy": spec.mig_strategy.value},
        "gdrcopy": {"enabled": spec.gdrcopy},
        "dcgmExporter": {"hpcJobMapping": {"enabled": True, "directory": spec.job_mapping}},
        "daemonsets": {"tolerations": tolerations},
        "nfd": {"enabled": spec.node_feature_discovery},
        "node-feature-discovery": {"worker": {"tolerations": [*_OF_CONTROL_PLANE, *tolerations]}},
    }


_OF_CONTROL_PLANE = [
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "value": "", "effect": "NoSchedule"}
]


def _driver(spec: GpuOperatorSpec) -> dict[str, Any]:
    """Return the values of the driver. The chart's default `autoUpgrade: true` would evict pods with GPUs."""
    return {
        "enabled": spec.driver is DriverSource.OPERATOR,
        "upgradePolicy": {"autoUpgrade": False},
        **({} if spec.driver_version is None else {"version": spec.driver_version}),
        **({"rdma": {"enabled": True}} if spec.rdma else {}),
    }
