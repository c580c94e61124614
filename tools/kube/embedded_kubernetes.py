"""Embedded Kubernetes as a whole: up, down, and its interface for others."""

import base64
import json
import shutil
from collections.abc import Callable
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
    configs,
    host_files,
    kernel,
    machine,
    machine_checks,
    nftables,
    pod_network,
    resolver,
)
from tools.kube.cgroups import Cgroup
from tools.kube.debs import CNI_PLUGINS, PROGRAMS, cni_plugins, tool
from tools.kube.pki import Pki
from tools.kube.process import output
from tools.kube.services import KUBECONFIGS, ProgramFolders, identities, waves
from tools.kube.settings import Settings
from tools.kube.supervisor import Server, Supervisor
from tools.kube.sysctls import FORWARDING, Sysctls

_LOCK_SECONDS = 3600
"""Time in which another run builds everything on a slow machine."""

_IMPORT_SECONDS = 600

Progress = Callable[[str], None]


class EmbeddedKubernetes:
    """Single-machine Kubernetes of real servers, which outlive the program that starts them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._sysctls = Sysctls(self.settings.state / "sysctls.json")
        self._cgroups_before = self.settings.state / "cgroups.json"

    @property
    def kubeconfig(self) -> Path:
        """File of the administrator's kubeconfig."""
        return self.settings.kubeconfig

    @property
    def bin_dir(self) -> Path:
        """Folder of `kubectl`, from the first `up` on."""
        return binaries.KUBERNETES.installed

    @cached_property
    def _cgroup(self) -> Cgroup:
        return Cgroup(self.settings.cgroup)

    @cached_property
    def _supervisor(self) -> Supervisor:
        return Supervisor(self.settings.run, self.settings.logs, self._cgroup.servers)

    @property
    def is_built(self) -> bool:
        """True if the cache has all binaries."""
        return not binaries.missing(binaries.ALL)

    def check_machine(self) -> None:
        """Raise a UserError that lists everything in the way on this machine, if anything is."""
        with self._lock("check_machine"):
            self._require_machine()

    def fetch(self) -> None:
        """Fetch and build whatever the cache does not have, so that a start needs no network.

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

    def up(self) -> None:
        """Start servers that do not run or have changed, and wait until all are well.

        Raises:
            UserError: The machine does not meet the requirements, or a server was not well in its time.

        """
        with self._lock("up"):
            self._require_machine()
            binaries.build(*binaries.ALL)
            programs = _installed()
            self._prepare()
            self._configure(programs)
            started = self._start(waves(self.settings, programs))
        if not started:
            say(f"Kubernetes {binaries.KUBERNETES.version} is up")

    def down(self) -> None:
        """End the cluster: every process, mount, link, rule, cgroup and all data. Builds and packages stay."""
        with self._lock("down"):
            if not self.settings.state.exists() and not pod_network.is_up(self.settings):
                say("Kubernetes is not up, and there is nothing to remove")
                return
            with step("Stopping Kubernetes") as progress:
                self._remove(progress)

    def status(self) -> dict[str, str | None]:
        """Return the problem of each server by its name; None for a server that is well."""
        listed = [server for wave in waves(self.settings, _installed()) for server in wave]
        return {
            server.name: server.well() if self._supervisor.process(server.name) else "does not run" for server in listed
        }

    def kubectl(self, *arguments: str, stdin: str = "", timeout_seconds: float = 90) -> str:
        """Run kubectl as administrator and return its output."""
        program: list[str | Path] = [self.bin_dir / "kubectl", "--kubeconfig", self.kubeconfig]
        return output(
            [*program, *arguments], stdin=stdin, timeout_seconds=timeout_seconds, what=f"kubectl {arguments[0]}"
        )

    def ctr(self, *arguments: str | Path, timeout_seconds: float = 60) -> str:
        """Run containerd's client in the namespace of Kubernetes and return its output."""
        where = ("--address", self.settings.containerd_socket, "--namespace", "k8s.io")
        what = f"ctr {' '.join(map(str, arguments[:2]))}"
        return tool("ctr").run(*where, *arguments, timeout_seconds=timeout_seconds, what=what)

    def images(self) -> set[str]:
        """Return the names of the images that the node has."""
        return set(self.ctr("images", "list", "--quiet").split())

    def import_image(self, archive: Path) -> None:
        """Load an image archive (of docker or OCI) for pods. One at a time: archives share layers."""
        with locks.held(self.settings.run / "import.lock", f"importing {archive}", wait_seconds=_IMPORT_SECONDS):
            self.ctr("images", "import", archive, timeout_seconds=_IMPORT_SECONDS)

    def _lock(self, doing: str) -> AbstractContextManager[int]:
        path = self.settings.state.with_name(f"{self.settings.state.name}.lock")
        return locks.held(path, f"kube {doing}", wait_seconds=_LOCK_SECONDS)

    def _require_machine(self) -> None:
        ours = self._cgroup.processes()
        machine_checks.require(machine.facts(self.settings, ours=ours, builds=not self.is_built), self.settings)

    def _configure(self, programs: ProgramFolders) -> None:
        """Write certificates, kubeconfigs and configuration files that are missing or differ."""
        settings = self.settings
        pki = Pki(settings.pki)
        pki.signing_key("service-accounts")
        for name, identity in identities(settings).items():
            pair = pki.issue(identity)
            if name in KUBECONFIGS:
                text = configs.kubeconfig(
                    settings,
                    identity.user,
                    authority=_base64(pki.authority.certificate),
                    certificate=_base64(pair.certificate),
                    key=_base64(pair.key),
                )
                host_files.write(settings.kubeconfigs / name, text)
        others = [address for address in resolver.of_this_machine() if address != settings.address]
        upstream = resolver.answering(others)
        for name, text in {
            "containerd.toml": configs.containerd(settings),
            "cni/10-bridge.conflist": configs.cni(settings, mtu=pod_network.mtu()),
            "kubelet.json": configs.kubelet(settings),
            "kube-proxy.json": configs.kube_proxy(settings),
            "Corefile": configs.corefile(settings, nameservers=upstream),
            "resolv.conf": f"nameserver {settings.address}\n",
        }.items():
            host_files.write(settings.config / name, text)
        plugins = {name: cni_plugins() / name for name in CNI_PLUGINS}
        plugins[configs.POLICY_PLUGIN] = programs.node / "node"
        for name, program in plugins.items():
            host_files.link(settings.cni_plugins / name, program)

    def _prepare(self) -> None:
        """Make the servers' base: folders, kernel settings, cgroup, bridge, NAT."""
        self.settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sysctls.remember()
        cleanup.remember(self._cgroups_before)
        kernel.load_modules()
        if not pod_network.is_up(self.settings):
            # Without the bridge, nothing left by a killed run or a restart of the machine can work.
            self._cgroup.kill()
            host_files.unmount_below(self.settings.state)
        host_files.share_mounts(self.settings.state)
        self._cgroup.create()
        pod_network.up(self.settings, routed_before=self._sysctls.before(FORWARDING) != "0")
        nftables.open_for_pods(self.settings)
        self._sysctls.set_needed()

    def _start(self, listed: list[list[Server]]) -> bool:
        """Start stale servers, wave after wave; return whether there was any."""
        stale = {server.name for wave in listed for server in wave if not self._supervisor.current(server)}
        if not stale:
            self._run(listed, stale, lambda _: None)
            return False
        with step(f"Starting Kubernetes {binaries.KUBERNETES.version}") as progress:
            for server in (server for wave in reversed(listed) for server in wave if server.name in stale):
                self._supervisor.stop(server)
            self._run(listed, stale, progress)
        return True

    def _run(self, listed: list[list[Server]], stale: set[str], progress: Progress) -> None:
        afterwards = {"containerd": self._load_pause, "kube-apiserver": self._apply_objects}
        for wave in listed:
            for server in wave:
                self._supervisor.ensure(server)
            for server in wave:
                self._supervisor.wait(server)
                if server.name in stale:
                    progress(f"{server.name} is well")
                if complete := afterwards.get(server.name):
                    complete()

    def _load_pause(self) -> None:
        if configs.PAUSE_IMAGE not in self.images():
            self.import_image(archives.pause_image())

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
            *pod_network.down(self.settings),
            *cleanup.remove(self.settings, self._cgroups_before),
            f"{self._cgroup.remove()} cgroups",
        ]
        for what in gone:
            progress(f"removed {what}")
        for what in self._sysctls.restore():
            progress(f"restored {what}")
        volumes = len(list(self.settings.volumes.iterdir())) if self.settings.volumes.exists() else 0
        progress(f"removing the cluster's data with {volumes} volumes from {state}")
        if state.exists():  # a person may have removed it
            shutil.rmtree(state)


def _installed() -> ProgramFolders:
    return ProgramFolders(**{server.name: server.installed for server in binaries.SERVERS})


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
