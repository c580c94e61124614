"""Lists of known keys: made of a chart's default values, of its inner charts, and of what its templates read."""

import subprocess
import sys
from pathlib import Path

import pytest

from soperator_pulumi.platform.chart_values import parse_keys
from tools.chart_keys import known_keys_of, text

VALUES = """\
enabled: true
image: {repository: a, tag: ""}
nodeSelector: {kubernetes.io/os: linux}
podAnnotations: {}
tolerations: []
resources: {limits: {cpu: 1}, note: x}
inner: {size: 2}
priority:
"""

TEMPLATE = """\
{{ .Values.enabled }} {{ .Values.image.digest }} {{ .Values.extra.name }}
{{ toYaml .Values.volumes }} {{ with .Values.security.context }}{{ end }} {{ .Values.podAnnotations.anything }}
"""

LIST = """\
enabled
extra
 name
image
 digest
 repository
 tag
inner
 colour
 size
nodeSelector *
podAnnotations *
priority *
resources
 limits *
 note
security
 context *
tolerations
volumes *
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    made = tmp_path / "outer"
    inner = made / "charts" / "packed-inner"
    for folder in (made / "templates", inner):
        folder.mkdir(parents=True)
    (made / "values.yaml").write_text(VALUES)
    (made / "templates" / "all.yaml").write_text(TEMPLATE)
    (made / "templates" / "README").write_text("{{ .Values.notRead }}")
    (inner / "Chart.yaml").write_text("name: inner\n")
    (inner / "values.yaml").write_text("size: 1\ncolour: red\n")
    return made


def test_a_list_has_the_keys_of_the_defaults_of_inner_charts_and_of_templates(chart: Path) -> None:
    assert text(known_keys_of(chart)) == LIST


def test_a_list_is_read_as_it_is_written(chart: Path) -> None:
    known = known_keys_of(chart)
    assert [*parse_keys(text(known)).paths()] == sorted(known.paths(), key=lambda path: path.split("."))


def test_the_command_prints_the_list(chart: Path) -> None:
    command = [sys.executable, "-m", "tools.chart_keys", str(chart)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == LIST
