"""MariaDB's operator, and the release of its definitions, which a removal keeps."""

from typing import Any, ClassVar

import pulumi

from soperator_pulumi.platform.chart_component import ChartComponent, PartScope
from soperator_pulumi.platform.charts import MARIADB_OPERATOR_CRDS
from soperator_pulumi.spec.platform.mariadb_operator import MariadbOperatorSpec


class MariadbOperator(ChartComponent):
    """MariaDB's operator. Its definitions stay after a removal: without them Kubernetes would delete every database."""

    PART: ClassVar[str] = "mariadb_operator"

    def _install(self, spec: MariadbOperatorSpec, scope: PartScope) -> None:
        scope = self._namespaced(spec, scope)
        # The chart of the definitions has no value that keeps them, so Helm never removes its release. Deleting the
        # namespace deletes Helm's record of it; the next installation adopts the definitions by their labels.
        definitions = self._release(
            spec,
            scope,
            {},
            definitions=MARIADB_OPERATOR_CRDS,
            definitions_version=spec.version,  # both charts have the same releases
            extra=pulumi.ResourceOptions(retain_on_delete=True),
        )
        self.release = self._release(spec, scope.following(definitions), mariadb_operator_values(spec))


def mariadb_operator_values(spec: MariadbOperatorSpec) -> dict[str, Any]:
    """Return the default values for the chart."""
    return {
        "crds": {"enabled": False},
        "ha": {"enabled": spec.highly_available},
        "metrics": {"enabled": bool(spec.monitors)},
        "webhook": {"cert": {"certManager": {"enabled": False}}},  # its own cert-controller suffices
    }
