"""Processor time of worker pods, and of the kubelet and the runtime of their machine, which is this one."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.kube.cgroups import hierarchies

_RUNTIME = ("kubelet", "containerd", "containerd-shim")
"""Names of the kernel for the programs that keep pods; it cuts them to 15 characters."""


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds of a processor since an unknown moment: two readings have a difference."""

    pods: float
    """Of the pods' containers."""
    kubelet: float
    containerd: float
    shims: float
    """Of the processes between containerd and the containers, one for every pod."""

    def since(self, earlier: "ProcessorTime") -> "ProcessorTime":
        """Return the time between two readings."""
        return ProcessorTime(*(now - before for now, before in zip(self._all(), earlier._all(), strict=True)))

    def millicores(self, pods: int, seconds: float) -> "ProcessorTime":
        """Return the time as millicores of a pod, the kubelet's and containerd's shared out among all."""
        return ProcessorTime(*(value / seconds / pods * 1000 for value in self._all()))

    @property
    def total(self) -> float:
        """Sum of all."""
        return sum(self._all())

    def _all(self) -> tuple[float, float, float, float]:
        return self.pods, self.kubelet, self.containerd, self.shims


def processor_time(pods: Collection[str]) -> ProcessorTime:
    """Return the time of all pods with these uids, and of the kubelet and the runtime with what they have started."""
    folders = [path for uid, path in _pod_cgroups() if uid in pods]
    assert len(folders) == len(pods), f"{len(folders)} of {len(pods)} pods have a cgroup"
    return ProcessorTime(sum(map(_used, folders)), *(_of_programs(name) for name in _RUNTIME))


def _pod_cgroups() -> Iterator[tuple[str, Path]]:
    machine = hierarchies()
    root = next(path for path in machine.folders if machine.unified or (path / "cpuacct.usage").exists())
    for folder, names, _ in os.walk(root):
        for name in [name for name in names if "pod" in name and name.count("-") + name.count("_") >= 4]:
            names.remove(name)
            uid = name.removesuffix(".slice").rpartition("pod")[2].replace("_", "-")
            yield uid, Path(folder) / name


def _used(cgroup: Path) -> float:
    usage = cgroup / "cpuacct.usage"
    if usage.exists():
        return int(usage.read_text()) / 1e9
    (line,) = (line for line in (cgroup / "cpu.stat").read_text().splitlines() if line.startswith("usage_usec "))
    return int(line.split()[1]) / 1e6


def _of_programs(name: str) -> float:
    """Return the time of all processes of a name, and of their children that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            start, _, rest = stat.read_text().rpartition(")")
            if start.partition("(")[2] == name:
                ticks += sum(map(int, rest.split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
