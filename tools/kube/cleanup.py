"""Leftovers of servers in fixed places, removed when the cluster ends."""

import json
from pathlib import Path

from tools.kube import cgroups, host_files
from tools.kube.health import socket_problem
from tools.kube.settings import Settings

_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LOGS = Path("/var/log/containers")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
_DEVICE_PLUGIN_FILES = ("kubelet.sock", "kubelet_internal_checkpoint")
_CONTAINERD = Path("/run/containerd")

_FOLDERS = (
    *(_CONTAINERD / name for name in ("s", "fifo", "runc/k8s.io", "runc")),
    *(_CONTAINERD, _CONTAINER_LOGS, _CNI_RESULTS, _CNI_RESULTS.parent, _DEVICE_PLUGINS, _DEVICE_PLUGINS.parent),
)
"""Folders that servers make. They are removed if empty, inner ones first."""


def remember(memory: Path) -> None:
    """Record the top-level cgroups that exist before the start, as they must not be removed."""
    if not memory.exists():
        host_files.write(memory, json.dumps(sorted(map(str, _top_level_cgroups()))) + "\n")


def remove(settings: Settings, memory: Path) -> list[str]:
    """Remove leftovers of ended servers outside the state folder; return a line per kind."""
    files_left = {
        # containerd keeps its shims' sockets here, whatever its settings; one without a listener is of no use.
        "sockets of shims": [path for path in _entries(_CONTAINERD / "s") if socket_problem(path)],
        "links to logs": [
            path
            for path in _entries(_CONTAINER_LOGS)
            if path.is_symlink() and settings.pod_logs in path.readlink().parents
        ],
        "CNI results": [path for path in _entries(_CNI_RESULTS) if str(settings.containerd_state) in path.read_text()],
        "device plugin files": [path for path in _entries(_DEVICE_PLUGINS) if path.name in _DEVICE_PLUGIN_FILES],
    }
    removed = []
    for what, paths in files_left.items():
        for path in paths:
            path.unlink(missing_ok=True)
        if paths:
            removed.append(f"{len(paths)} {what} in {paths[0].parent}")
    for folder in _FOLDERS:
        if folder.is_dir() and not _entries(folder):
            folder.rmdir()
    if memory.exists():
        before = set(json.loads(memory.read_text()))
        ours = [path for path in _top_level_cgroups() if str(path) not in before and not cgroups.processes(path)]
        if ours:
            removed.append(f"{sum(map(cgroups.remove, ours))} cgroups of Slurm nodes and of `ctr run`")
    return removed


def _top_level_cgroups() -> list[Path]:
    """Return the cgroups that slurmd (`slurm_<node>`) and `ctr run` (`k8s.io`) make outside any pod's."""
    patterns = ("slurm_*", "k8s.io")
    found = (path for hierarchy in cgroups.hierarchies().folders for name in patterns for path in hierarchy.glob(name))
    return [path for path in found if path.is_dir()]


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
