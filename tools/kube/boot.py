"""`python -m tools.kube.boot <state folder> <number>`: starts a further machine, inside its namespaces."""

import shutil
import socket
import sys
from pathlib import Path

from tools import console
from tools.kube import host_files, pod_network
from tools.kube.kube_node import KubeNode
from tools.kube.process import output
from tools.kube.settings import Settings

_OWN_FOLDERS = ("/run/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers")
"""Folders whose location servers do not let us choose. Every machine gets empty ones."""

_SYS = Path("/sys")


def main() -> None:
    """Mount this machine's file systems after it was switched on, and start its servers."""
    state, number = sys.argv[1:]
    first = Settings(state=Path(state))
    node = KubeNode(first.further(int(number)))
    if not pod_network.is_up(node.settings):
        node.cgroup.kill()  # of a machine whose bridge was removed
        _mount(node.settings, first)
        shutil.rmtree(node.settings.run, ignore_errors=True)  # as /run, it does not outlive a machine
        socket.sethostname(node.settings.node)
    node.up()


def _mount(settings: Settings, first: Settings) -> None:
    """Mount the machine's own file systems. The namespace begins with all mounts of the first machine and its pods.

    A call repairs what a killed one has left.
    """
    host_files.unmount_below(first.state)
    if not (_SYS / "class" / "net" / settings.uplink).exists():
        _mount_sys(first.state / ".sys")
    for folder in _OWN_FOLDERS:
        Path(folder).mkdir(parents=True, exist_ok=True)
        output(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder])


def _mount_sys(prepared: Path) -> None:
    """Replace /sys, which shows the network namespace of its mounter, in one step; keep cgroups and everything else."""
    prepared.mkdir(exist_ok=True)
    output(["mount", "-t", "sysfs", "sysfs", prepared])
    below = [point for point in host_files.mounts_below(_SYS) if point != _SYS]
    for point in below:
        if not any(other in point.parents for other in below):
            output(["mount", "--rbind", point, prepared / point.relative_to(_SYS)])
    output(["mount", "--rbind", prepared, _SYS])
    host_files.unmount_below(prepared)


if __name__ == "__main__":
    sys.exit(console.run(main))
