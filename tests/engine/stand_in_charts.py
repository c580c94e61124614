"""Charts with the names of those of a platform, which need no images: a ConfigMap with the values of each."""

from pathlib import Path

import yaml

from soperator_pulumi.platform.charts import CHARTS

_VERSIONS = {chart.name: chart.version for chart in CHARTS}

_VALUES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: values
data:
  values: {{ .Values | toJson | quote }}
"""

_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: databases.{{ .Release.Namespace }}.example.com
spec:
  group: {{ .Release.Namespace }}.example.com
  names: {kind: Database, plural: databases}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
"""


def write(folder: Path) -> Path:
    """Write the charts of cert-manager and of MariaDB's operator into a folder, as `helm pull --untar` would."""
    for name, template in (
        ("cert-manager", _VALUES),
        ("mariadb-operator", _VALUES),
        ("mariadb-operator-crds", _DEFINITION),
    ):
        chart = folder / name
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text(
            yaml.safe_dump({"apiVersion": "v2", "name": name, "version": _VERSIONS[name]})
        )
        (chart / "templates" / "objects.yaml").write_text(template)
    return folder
