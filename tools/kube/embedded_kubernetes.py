"""The embedded Kubernetes as a whole: up, down, and its interface for other tools."""

import json
import shutil
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path

from tools import locks
from tools.console import UserError, say, step
from tools.kube import (
    addons,
    archives,
    binaries,
    cleanup,
    host_files,
    machine,
    machine_checks,
    nftables,
    pod_network,
)
from tools.kube.cgroups import Cgroup
from tools.kube.debs import PROGRAMS, cni_plugins, tool
from tools.kube.further_machines import FurtherMachines
from tools.kube.kube_node import KubeNode, Progress
from tools.kube.process import output
from tools.kube.settings import Settings

_LOCK_SECONDS = 3600
"""Time for another run to build everything on a slow machine."""


class EmbeddedKubernetes:
    """Kubernetes of real servers on this machine, which outlive the program that starts them.

    Further machines are namespaces on this machine's kernel.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._node = KubeNode(self.settings)
        self._cgroups_before = self.settings.state / "cgroups.json"

    @property
    def kubeconfig(self) -> Path:
        """File of the administrator's kubeconfig."""
        return self.settings.kubeconfig

    @property
    def bin_dir(self) -> Path:
        """Folder of `kubectl`, from the first `up` on."""
        return binaries.KUBERNETES.installed

    @property
    def _cgroup(self) -> Cgroup:
        return self._node.cgroup

    @cached_property
    def _machines(self) -> FurtherMachines:
        return FurtherMachines(self.settings, self._node.supervisor)

    @property
    def is_built(self) -> bool:
        """True if the cache has all binaries."""
        return not binaries.missing(binaries.ALL)

    def check_machine(self) -> None:
        """Raise a UserError that lists every obstacle on this machine, if there is one."""
        with self._lock("check_machine"):
            self._require_machine()

    def fetch(self) -> None:
        """Fetch and build everything that the cache lacks, so that a start needs no network.

        Raises:
            UserError: The machine does not meet the requirements, or a build failed.
        """
        with self._lock("fetch"):
            self._require_machine()
            binaries.build(*binaries.ALL)
            archives.pause_image()
            cni_plugins()
            for name in PROGRAMS:
                tool(name)

    def require_number(self, machines: int | None) -> None:
        """Raise a UserError if the cluster cannot have this number of machines; None means its current number."""
        self._machines.wanted(machines)

    def up(self, machines: int | None = None) -> None:
        """Start servers that do not run or have changed, and wait until all are healthy.

        Args:
            machines: Number of machines. Stopped ones are started. Default: the cluster's number, or 1 for a new
                cluster.

        Raises:
            UserError: The machine does not meet the requirements, the cluster has more machines, or a server did not
                become healthy in time.
        """
        with self._lock("up"):
            further = self._machines.wanted(machines)
            self._require_machine()
            binaries.build(*binaries.ALL)
            cleanup.remember(self._cgroups_before)
            started = self._node.up({"kube-apiserver": self._apply_objects})
            for number in further:
                self._start_machine(number)
        if not started:
            say(f"Kubernetes {binaries.KUBERNETES.version} is up")

    def kill_machine(self, number: int) -> None:
        """End a further machine abruptly, as a power loss does: its network, its servers, its pods.

        Raises:
            UserError: There is no such machine, or it does not run.
        """
        with self._lock("kill_machine"):
            name = self.settings.further(number).node
            say(f"{name} is gone, with {self._machines.kill(number)} processes")

    def start_machine(self, number: int) -> None:
        """Start a killed machine, as if it booted, with its disk but without its processes.

        Raises:
            UserError: There is no such machine, Kubernetes is not up, or a server was not well in its time.
        """
        with self._lock("start_machine"):
            self._machines.require(number)
            if not pod_network.is_up(self.settings):
                raise UserError("Kubernetes is not up. `make up` starts it, with all its machines")
            self._start_machine(number)

    def down(self) -> None:
        """Remove the cluster: every process, mount, link, rule, cgroup and all data. Builds and packages stay."""
        with self._lock("down"):
            if not self.settings.state.exists() and not pod_network.is_up(self.settings):
                say("Kubernetes is not up, and there is nothing to remove")
                return
            with step("Stopping Kubernetes") as progress:
                self._remove(progress)

    def status(self) -> dict[str, str | None]:
        """Return the problems of servers and further machines by name; None for healthy ones."""
        running = {node.settings.number: node for node in self._machines.running()}
        problems = {
            server.name: server.well() if self._node.supervisor.process(server.name) else "does not run"
            for wave in self._node.listed
            for server in wave
        }
        for number in self._machines.numbers():
            node = running.get(number)
            problems[self.settings.further(number).node] = node.problem() if node else "does not run"
        return problems

    def kubectl(self, *arguments: str, stdin: str = "", timeout_seconds: float = 90) -> str:
        """Run kubectl as administrator and return its output."""
        program: list[str | Path] = [self.bin_dir / "kubectl", "--kubeconfig", self.kubeconfig]
        return output(
            [*program, *arguments], stdin=stdin, timeout_seconds=timeout_seconds, what=f"kubectl {arguments[0]}"
        )

    def ctr(self, *arguments: str | Path, timeout_seconds: float = 60) -> str:
        """Run containerd's client on the first machine, in the namespace of Kubernetes, and return its output."""
        return self._node.ctr(*arguments, timeout_seconds=timeout_seconds)

    def images(self) -> set[str]:
        """Return the names of the images that all machines have."""
        return set.intersection(*(node.images() for node in self._nodes()))

    def import_image(self, archive: Path) -> None:
        """Load an image archive (Docker or OCI) for pods, on all running machines."""
        for node in self._nodes():
            node.import_image(archive)

    def _nodes(self) -> list[KubeNode]:
        return [self._node, *self._machines.running()]

    def _lock(self, doing: str) -> AbstractContextManager[int]:
        path = self.settings.state.with_name(f"{self.settings.state.name}.lock")
        return locks.held(path, f"kube {doing}", wait_seconds=_LOCK_SECONDS)

    def _require_machine(self) -> None:
        ours = self._cgroup.processes()
        machine_checks.require(machine.facts(self.settings, ours=ours, builds=not self.is_built), self.settings)

    def _start_machine(self, number: int) -> None:
        with step(f"Starting machine {self.settings.further(number).node}") as progress:
            shown: list[str] = []

            def report(lines: list[str]) -> None:
                for line in lines[len(shown) :]:
                    progress(line.strip())
                shown[:] = lines

            self._machines.up(number, report)
            further = KubeNode(self.settings.further(number))
            if copied := further.copy_images(self._node):
                progress(f"copied {copied} images from {self.settings.node}")

    def _apply_objects(self) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": addons.objects()}
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(listed))

    def _remove(self, progress: Progress) -> None:
        state = self.settings.state
        progress(f"ended {self._cgroup.kill()} processes")
        progress(f"unmounted {host_files.unmount_below(state)} mounts")
        if still := host_files.mounts_below(state):
            raise UserError(f"{still[0]} is still mounted. Unmount it, then rerun")
        nftables.close_for_pods(self.settings)
        gone = [
            *self._machines.remove(),
            *pod_network.down(self.settings),
            *cleanup.remove(self.settings, self._cgroups_before),
            f"{self._cgroup.remove()} cgroups",
        ]
        for what in gone:
            progress(f"removed {what}")
        for what in self._node.sysctls.restore():
            progress(f"restored {what}")
        volumes = len(list(self.settings.volumes.iterdir())) if self.settings.volumes.exists() else 0
        progress(f"removing the cluster's data with {volumes} volumes from {state}")
        if state.exists():  # a person may have removed it
            shutil.rmtree(state)
