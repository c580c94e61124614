"""What servers leave at places that cannot be chosen: found and removed when the cluster ends."""

import json
from pathlib import Path

from tools.kube import cgroups, files
from tools.kube.settings import Settings

_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LOGS = Path("/var/log/containers")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
_CONTAINERD = Path("/run/containerd")


def remember(memory: Path) -> None:
    """Keep the names of Slurm's cgroups that were there before us: those are not ours to remove."""
    if not memory.exists():
        files.write(memory, json.dumps(sorted(map(str, _slurm_cgroups()))) + "\n")


def shim_sockets(settings: Settings) -> list[Path]:
    """Return the sockets of containers' shims; containerd has them below /run/containerd whatever it is told."""
    addresses = settings.containerd_state.glob("io.containerd.runtime.v2.task/*/*/address")
    return [Path(address.read_text().strip().removeprefix("unix://")) for address in addresses]


def remove(settings: Settings, memory: Path, sockets: list[Path]) -> list[str]:
    """Remove what the servers left outside the state folder; return what was removed."""
    logs = [
        link for link in _entries(_CONTAINER_LOGS) if link.is_symlink() and settings.pod_logs in link.readlink().parents
    ]
    results = [file for file in _entries(_CNI_RESULTS) if file.name.startswith(f"{settings.name}-")]
    plugins = [
        path
        for path in (_DEVICE_PLUGINS / "kubelet.sock", _DEVICE_PLUGINS / "kubelet_internal_checkpoint")
        if path.exists()
    ]
    removed = []
    for what, paths in {
        "sockets of shims": sockets,
        "links to logs": logs,
        "CNI results": results,
        "device plugin files": plugins,
    }.items():
        there = [path for path in paths if path.exists() or path.is_symlink()]
        for path in there:
            path.unlink()
        if there:
            removed.append(f"{len(there)} {what} in {there[0].parent}")
    for folder in (_CONTAINER_LOGS, _CNI_RESULTS, _CNI_RESULTS.parent, _DEVICE_PLUGINS, _DEVICE_PLUGINS.parent):
        _remove_if_empty(folder)
    for folder in (*(_CONTAINERD / name for name in ("s", "fifo", "runc/k8s.io", "runc")), _CONTAINERD):
        _remove_if_empty(folder)
    before = set(json.loads(memory.read_text())) if memory.exists() else None
    if before is not None:
        ours = [cgroup for cgroup in _slurm_cgroups() if str(cgroup) not in before and not cgroups.processes(cgroup)]
        gone = sum(cgroups.remove(cgroup) for cgroup in ours)
        if gone:
            removed.append(f"{gone} cgroups of Slurm nodes")
    return removed


def _slurm_cgroups() -> list[Path]:
    """Cgroups at the top that slurmd makes (`slurm_<node>`), outside its pod's own."""
    return [path for hierarchy in cgroups.layout().hierarchies for path in hierarchy.glob("slurm_*") if path.is_dir()]


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
