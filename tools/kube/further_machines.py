"""Further machines n2, n3, ... of the cluster: namespaces on this machine's kernel, with their own servers.

The first process of a machine holds its namespaces for network, mounts, processes, name, and IPC. A pair of interfaces
connects it to n1, which routes between the machines. The disk is shared: every machine sees every volume.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tools import paths
from tools.console import UserError
from tools.kube import binaries, host_files, pod_network
from tools.kube.cgroups import Cgroup
from tools.kube.kube_node import KubeNode
from tools.kube.process import watched
from tools.kube.settings import Settings
from tools.kube.supervisor import Process, Server, Supervisor

MOST = 9
"""Largest number of machines: one takes about 100 MB of memory without pods (measured)."""

_NAMESPACES = ("--net", "--mount", "--uts", "--ipc")
_START_SECONDS = 300


class FurtherMachines:
    """All machines except the first, managed from the first."""

    def __init__(self, settings: Settings, supervisor: Supervisor) -> None:
        self._settings = settings
        self._supervisor = supervisor

    def numbers(self) -> list[int]:
        """Return the numbers of all created machines, running or not."""
        return [number for number in range(2, MOST + 1) if self._settings.further(number).state.exists()]

    def running(self) -> list[KubeNode]:
        """Return the running machines."""
        nodes = [KubeNode(self._settings.further(number)) for number in self.numbers()]
        return [node for node in nodes if self._supervisor.process(node.settings.node)]

    def wanted(self, machines: int | None) -> list[int]:
        """Return the numbers of the machines to run if the cluster should have `machines` (None: its current number).

        Raises:
            UserError: The number is out of range, or the cluster has more.
        """
        present = max(self.numbers(), default=1)
        machines = present if machines is None else machines
        if not 1 <= machines <= MOST:
            raise UserError(f"MACHINES={machines}: a cluster has 1 to {MOST} machines")
        if machines < present:
            raise UserError(
                f"MACHINES={machines}: the cluster has {present}, and none is taken away while pods may run on "
                "it. Leave MACHINES out, or run `make down` first"
            )
        return list(range(2, machines + 1))

    def up(self, number: int, report: Callable[[list[str]], None]) -> None:
        """Start a stopped machine, and its servers that have stopped or changed.

        `report` receives the lines that the start prints.
        """
        settings = self._settings.further(number)
        for name in ("ca.crt", "ca.key"):
            host_files.link(settings.pki / name, self._settings.pki / name)
        process = self._supervisor.process(settings.node) or self._switch_on(settings)
        pod_network.connect(settings, process.pid)
        watched(
            [*_inside(process), sys.executable, "-m", "tools.kube.boot", str(self._settings.state), str(number)],
            environment={},
            cwd=paths.ROOT,
            timeout_seconds=_START_SECONDS,
            what=f"starting machine {settings.node}",
            report=report,
        )

    def kill(self, number: int) -> int:
        """End a machine as a power loss does, and return the number of its processes.

        The network goes first, so that no connection is closed.

        Raises:
            UserError: The machine does not exist or does not run.
        """
        self.require(number)
        settings = self._settings.further(number)
        process = self._supervisor.process(settings.node)
        if process is None:
            raise UserError(f"{settings.node} does not run. Start it with `make machine-start N={number}`")
        pod_network.unplug(settings)
        cgroup = Cgroup(settings.cgroup)
        processes = len(cgroup.processes())
        self._supervisor.kill(settings.node)
        cgroup.kill()  # returns once the kernel has ended all
        return processes

    def require(self, number: int) -> None:
        """Raise a UserError unless the machine exists and is not the first."""
        if number in self.numbers():
            return
        made = ", ".join(str(made) for made in self.numbers())
        advice = f"choose one of {made}" if made else "`make up MACHINES=2` makes a second one"
        first = "n1 is this machine, with the control plane" if number == 1 else f"there is no machine n{number}"
        raise UserError(f"N={number}: {first}: {advice}")

    def remove(self) -> list[str]:
        """Remove what ended machines have left outside the state folder; return a line per kind."""
        removed = []
        for number in range(2, MOST + 1):
            settings = self._settings.further(number)
            cgroup = Cgroup(settings.cgroup)
            killed, connected = cgroup.kill(), pod_network.disconnect(settings)
            if killed or connected or any(folder.exists() for folder in cgroup.folders):
                removed.append(f"machine {settings.node} with {killed} processes and {cgroup.remove()} cgroups")
        return removed

    def _switch_on(self, settings: Settings) -> Process:
        """Create the machine's namespaces and return the process that holds them."""
        pod_network.disconnect(settings)  # of a machine that was ended by another than us
        cgroup = Cgroup(settings.cgroup)
        cgroup.kill()
        cgroup.remove()  # a machine that was switched off has no cgroups
        # A path of its own for each machine: the supervisor ends what runs the program of a server without its record.
        program = settings.state / "unshare"
        host_files.link(program, Path(shutil.which("unshare") or "/usr/bin/unshare"))
        server = Server(
            settings.node,
            [
                program,
                *(*_NAMESPACES, "--pid", "--fork", "--kill-child", "--mount-proc"),
                binaries.PAUSE.installed / "pause",
            ],
            well=lambda: _first_process_problem(self._supervisor.process(settings.node)),
        )
        self._supervisor.ensure(server)
        self._supervisor.wait(server)
        process = self._supervisor.process(settings.node)
        if process is None:
            raise UserError(f"{settings.node} ended. {self._supervisor.last_lines(settings.node)}")
        return process


def _inside(process: Process) -> list[str]:
    """Return the prefix of a command that runs in a machine's namespaces, and ends with this program."""
    children = f"--pid=/proc/{process.pid}/ns/pid_for_children"
    enter = ["nsenter", f"--target={process.pid}", *_NAMESPACES, children, f"--wdns={paths.ROOT}", "--"]
    return [*enter, "setpriv", "--pdeathsig", "KILL", "--"]


def _first_process_problem(process: Process | None) -> str | None:
    """Return None if the machine's first process runs, with its own /proc; otherwise the problem."""
    if process is None:
        return "it does not run"
    try:
        name = Path(f"/proc/{process.pid}/root/proc/1/comm").read_text().strip()
    except OSError as error:
        return str(error)
    return None if name == "pause" else f"its first process is {name}"
