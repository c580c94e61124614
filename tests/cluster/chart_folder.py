"""Real charts for tests, from the Go module proxy: modules are whole trees of other projects' sources."""

import json
import shutil
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import yaml

from tools import locks
from tools.console import UserError, step
from tools.kube import binaries, golang
from tools.paths import cache_dir

_LOCK_SECONDS = 600


@dataclass(frozen=True)
class Module:
    """A Go module with charts; `checksum` is that of Go's `go.sum`."""

    path: str
    version: str
    checksum: str
    charts: str
    """Folder of the charts."""
    names: tuple[str, ...]


_MODULES = (
    Module(
        "github.com/prometheus-community/helm-charts",
        "v0.0.0-20260828105119-ed5d7d9b5933",
        "h1:5+f9HcKpurn9DWdl0b8PsT7TkEzfCDwcx2KbWYnrnPU=",
        "charts",
        (
            "kube-prometheus-stack",
            "kube-state-metrics",
            "prometheus-node-exporter",
            "prometheus-operator-crds",
            "prometheus-windows-exporter",
        ),
    ),
    Module(
        "github.com/cilium/cilium",
        "v1.20.2",
        "h1:dqiEGIcXc+gqCLYG/l7VCFJ8GHyb4HUrwbZOpkX5dL8=",
        "install/kubernetes",
        ("cilium",),
    ),
    Module(
        "github.com/cert-manager/cert-manager",
        "v1.21.2",
        "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        "deploy/charts",
        ("cert-manager",),
    ),
)
_STACK = "kube-prometheus-stack"
_INSIDE = ("kube-state-metrics", "prometheus-node-exporter", "prometheus-windows-exporter")
"""Charts that kube-prometheus-stack depends on, in the same module."""


def chart_folder() -> Path:
    """Return a folder with the charts, unpacked by their names; fetch them where the cache does not have them."""
    digest = sha256(repr(_MODULES).encode() + Path(__file__).read_bytes()).hexdigest()[:12]
    folder = cache_dir() / "charts" / digest
    if not folder.exists():
        with locks.held(folder.with_suffix(".lock"), "fetching charts", wait_seconds=_LOCK_SECONDS):
            if not folder.exists():  # another program may have made it meanwhile
                _make(folder)
    return folder


def _make(folder: Path) -> None:
    building = folder.with_suffix(".new")
    shutil.rmtree(building, ignore_errors=True)  # of a run that was killed
    building.mkdir(parents=True)
    for module in _MODULES:
        with step(f"Fetching the charts of {module.path} {module.version}"):
            for name in module.names:
                _copy(fetched(module) / module.charts / name, building / name)
    for name in _INSIDE:
        _copy(building / name, building / _STACK / "charts" / name)
    _stand_in(building / _STACK, "grafana")
    building.rename(folder)


def fetched(module: Module) -> Path:
    """Return the module's folder in Go's cache.

    Raises:
        UserError: The module differs from the one that was pinned.
    """
    wanted = f"{module.path}@{module.version}"
    lines = golang.run(binaries.GO, "mod", "download", "-json", wanted, what=f"fetching {wanted}")
    answer = json.loads("\n".join(lines[lines.index("{") :]))
    if answer["Sum"] != module.checksum:
        raise UserError(f"{wanted} has the checksum {answer['Sum']}, but {module.checksum} is pinned in {__file__}")
    return Path(answer["Dir"])


def _copy(source: Path, target: Path) -> None:
    """Copy a folder; files in Go's cache are read-only, and copies keep only their content."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _stand_in(chart: Path, name: str) -> None:
    """Add an empty chart for a dependency that no module has: helm renders nothing while one is missing."""
    dependencies = yaml.safe_load((chart / "Chart.yaml").read_text())["dependencies"]
    (version,) = (dependency["version"] for dependency in dependencies if dependency["name"] == name)
    folder = chart / "charts" / name
    folder.mkdir()
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: {version}\n")
