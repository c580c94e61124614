"""`python -m tools.kube.boot <state folder> <number>`: start of a further machine, run in its namespaces."""

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
"""Folders whose place servers do not let us choose: empty ones of its own for each machine."""

_SYS = Path("/sys")


def main() -> None:
    """Make this machine's mounts, if it has just been switched on, and start its servers."""
    state, number = sys.argv[1:]
    first = Settings(state=Path(state))
    node = KubeNode(first.further(int(number)))
    if not pod_network.is_up(node.settings):
        _mount(first)
        shutil.rmtree(node.settings.run, ignore_errors=True)  # as /run, it does not outlive a machine
        socket.sethostname(node.settings.node)
    node.up()


def _mount(first: Settings) -> None:
    """Mount what a machine has for itself. The namespace begins with all mounts of the first machine and its pods."""
    host_files.unmount_below(first.state)
    below = [point for point in reversed(host_files.mounts_below(_SYS)) if point != _SYS]
    before = first.state / "machines" / ".sys"
    before.mkdir(exist_ok=True)
    # /sys shows the network of whoever mounts it.
    output(["mount", "--rbind", _SYS, before])
    output(["mount", "-t", "sysfs", "sysfs", _SYS])
    for point in below:
        if not any(other in point.parents for other in below):
            output(["mount", "--rbind", before / point.relative_to(_SYS), point])
    host_files.unmount_below(before)
    for folder in _OWN_FOLDERS:
        Path(folder).mkdir(parents=True, exist_ok=True)
        output(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder])


if __name__ == "__main__":
    sys.exit(console.run(main))
