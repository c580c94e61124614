"""cert-manager."""

from typing import Any, ClassVar

from soperator_pulumi.platform.chart_component import ChartComponent, PartScope
from soperator_pulumi.spec.platform.cert_manager import CertManagerSpec


class CertManager(ChartComponent):
    """cert-manager. Its definitions, and with them all certificates, stay when the component is removed."""

    PART: ClassVar[str] = "cert_manager"

    def _install(self, spec: CertManagerSpec, scope: PartScope) -> None:
        self.release = self._release(spec, self._namespaced(spec, scope), cert_manager_values(spec))


def cert_manager_values(spec: CertManagerSpec) -> dict[str, Any]:
    """Return the default values for the chart."""
    values: dict[str, Any] = {"crds": {"enabled": True, "keep": True}}
    if spec.highly_available:  # replicas as recommended on cert-manager's page on best practice
        values |= {"replicaCount": 2, "webhook": {"replicaCount": 3}, "cainjector": {"replicaCount": 2}}
    return values
