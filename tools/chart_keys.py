"""`python -m tools.chart_keys <folder of a chart>`: prints the known keys of a chart's values.

The output is a file for `soperator_pulumi/platform/keys/`, in the format of the module `chart_values`. It is made from
the default values of the chart and its subcharts, and from the values that templates read in addition. Any key is
accepted below an empty default, and below a value that only templates name and write as a whole.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from soperator_pulumi.platform.chart_values import FREE, KnownKeys

_FREE_NAMES = re.compile(r".*([aA]nnotations|[lL]abels|[nN]odeSelector|[aA]ffinity|limits|requests)")
"""Names of mappings with user-defined keys, even if the chart has some by default."""

_READ = re.compile(r"(?P<whole>(?:toYaml|tpl|with|range)\b[^}|]*?)?\.Values\.(?P<path>[A-Za-z0-9_.]*[A-Za-z0-9_])")
"""Expression that reads a value in a template, whole or as text. Keys with '-', which `index` reads, have defaults."""


def known_keys_of(chart: Path) -> KnownKeys:
    """Return the keys of an unpacked chart, with those of subcharts below their names."""
    keys = _of_values(yaml.safe_load((chart / "values.yaml").read_text()) or {})
    for path, as_a_whole in sorted(_read_by_templates(chart).items()):
        _add(keys, path.split("."), free=as_a_whole)
    for inner in sorted((chart / "charts").glob("*/Chart.yaml")):
        described = yaml.safe_load(inner.read_text())
        _merge(keys.below.setdefault(str(described["name"]), KnownKeys()), known_keys_of(inner.parent))
    return keys


def text(keys: KnownKeys, depth: int = 0) -> str:
    """Return the list: one key per line, indented by level, and `*` where any key below is accepted."""
    return "".join(
        f"{' ' * depth}{name}{f' {FREE}' if below.free else ''}\n{text(below, depth + 1)}"
        for name, below in sorted(keys.below.items())
    )


def _of_values(values: Mapping[str, Any]) -> KnownKeys:
    found = KnownKeys()
    for name, value in values.items():
        below = _of_values(value) if isinstance(value, Mapping) else KnownKeys()
        is_free = value is None or value == {} or (isinstance(value, Mapping) and bool(_FREE_NAMES.fullmatch(name)))
        found.below[name] = KnownKeys(is_free, {} if is_free else below.below)
    return found


def _read_by_templates(chart: Path) -> dict[str, bool]:
    """Return the paths that templates read: True for a value that a template writes as a whole."""
    found: dict[str, bool] = {}
    for template in (chart / "templates").rglob("*"):
        if template.suffix in {".yaml", ".yml", ".tpl", ".txt"}:
            for item in _READ.finditer(template.read_text()):
                found[item["path"]] = found.get(item["path"], False) or item["whole"] is not None
    return found


def _add(keys: KnownKeys, path: list[str], *, free: bool) -> None:
    """Add the path of a value that a template reads, if the defaults lack it."""
    parent_is_new = True
    for depth, name in enumerate(path):
        is_new = name not in keys.below
        if keys.free or (is_new and not keys.below and not parent_is_new):
            return  # below a free value, or a part of a text or a list, which has no keys
        keys = keys.below.setdefault(name, KnownKeys(free=free and is_new and depth == len(path) - 1))
        parent_is_new = is_new


def _merge(keys: KnownKeys, more: KnownKeys) -> None:
    """Merge the keys of a subchart, whose parent's defaults may have some of them."""
    keys.free = False
    for name, below in more.below.items():
        if name in keys.below and not keys.below[name].free:
            _merge(keys.below[name], below) if below.below else None
        else:
            keys.below[name] = below


if __name__ == "__main__":
    sys.stdout.write(text(known_keys_of(Path(sys.argv[1]))))
