"""Servers of one machine, and their base: folders, cgroup, network, configuration."""

import base64
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from tools import locks
from tools.console import step
from tools.kube import archives, binaries, configs, host_files, kernel, nftables, pod_network, resolver
from tools.kube.cgroups import Cgroup
from tools.kube.debs import CNI_PLUGINS, cni_plugins, tool
from tools.kube.pki import Pki
from tools.kube.services import KUBECONFIGS, ProgramFolders, identities, waves
from tools.kube.settings import Settings
from tools.kube.supervisor import Server, Supervisor
from tools.kube.sysctls import FORWARDING, Sysctls

_IMPORT_SECONDS = 600

Progress = Callable[[str], None]


class KubeNode:
    """One machine's part of the cluster. Everything but `ctr` and images runs in the machine's namespaces."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sysctls = Sysctls(settings.state / "sysctls.json")

    @cached_property
    def cgroup(self) -> Cgroup:
        """Cgroup of the machine's servers and pods."""
        return Cgroup(self.settings.cgroup)

    @cached_property
    def supervisor(self) -> Supervisor:
        """Supervisor of the machine's servers."""
        return Supervisor(self.settings.run, self.settings.logs, self.cgroup.servers)

    @property
    def listed(self) -> list[list[Server]]:
        """Servers in the order of their start."""
        return waves(self.settings, ProgramFolders(**{server.name: server.installed for server in binaries.SERVERS}))

    def up(self, afterwards: Mapping[str, Callable[[], None]] | None = None) -> bool:
        """Start servers that do not run or have changed, wait until all are healthy, and return True if there were any.

        `afterwards` has, by a server's name, what is done once that server is well.
        """
        self._prepare()
        self._configure()
        return self._start({"containerd": self._load_pause, **(afterwards or {})})

    def problem(self) -> str | None:
        """Return None if the machine is ready according to the API server, otherwise the problem."""
        return next(server for wave in self.listed for server in wave if server.name == "kubelet").well()

    def ctr(self, *arguments: str | Path, timeout_seconds: float = 60) -> str:
        """Run containerd's client in the namespace of Kubernetes and return its output."""
        where = ("--address", self.settings.containerd_socket, "--namespace", "k8s.io")
        what = f"ctr {' '.join(map(str, arguments[:2]))} on {self.settings.node}"
        return tool("ctr").run(*where, *arguments, timeout_seconds=timeout_seconds, what=what)

    def images(self) -> set[str]:
        """Return the names of the images that the machine has."""
        return set(self.ctr("images", "list", "--quiet").split())

    def import_image(self, archive: Path) -> None:
        """Load an image archive (Docker or OCI) for pods, one at a time, as archives share layers.

        Further machines unpack an image when its first pod starts, as most run pods of few images.
        """
        how = () if self.settings.is_first else ("--no-unpack",)
        with locks.held(self.settings.run / "import.lock", f"importing {archive}", wait_seconds=_IMPORT_SECONDS):
            self.ctr("images", "import", *how, archive, timeout_seconds=_IMPORT_SECONDS)

    def copy_images(self, source: "KubeNode") -> int:
        """Load the images of another machine that this one lacks; return their number."""
        # Kubernetes itself names every image by its digest, too.
        missing = sorted(name for name in source.images() - self.images() if not name.startswith("sha256:"))
        if missing:
            archive = self.settings.state / "images.tar"  # the next copy replaces that of a killed one
            source.ctr("images", "export", archive, *missing, timeout_seconds=_IMPORT_SECONDS)
            self.import_image(archive)
            archive.unlink()
        return len(missing)

    def _prepare(self) -> None:
        """Prepare the servers' base: folders, kernel settings, cgroup, bridge, NAT."""
        self.settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.sysctls.remember()
        kernel.load_modules()
        if not pod_network.is_up(self.settings):
            # Without the bridge, nothing left by a killed run or a restart of the machine can work.
            self.cgroup.kill()
            host_files.unmount_below(self.settings.state)
        host_files.share_mounts(self.settings.state)
        self.cgroup.create()
        pod_network.up(self.settings, routed_before=self.sysctls.before(FORWARDING) != "0")
        nftables.open_for_pods(self.settings)
        self.sysctls.set_needed()

    def _configure(self) -> None:
        """Write certificates, kubeconfigs and configuration files that are missing or differ."""
        settings = self.settings
        pki = Pki(settings.pki)
        if settings.is_first:
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
        # The machine's nameserver may be on its loopback, which further machines do not reach.
        listed = resolver.of_this_machine() if settings.is_first else [settings.first_address]
        upstream = resolver.answering([address for address in listed if address != settings.address])
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
        plugins[configs.POLICY_PLUGIN] = binaries.NODE.installed / "node"
        for name, program in plugins.items():
            host_files.link(settings.cni_plugins / name, program)

    def _start(self, afterwards: Mapping[str, Callable[[], None]]) -> bool:
        listed = self.listed
        stale = {server.name for wave in listed for server in wave if not self.supervisor.current(server)}
        if not stale:
            self._run(listed, stale, afterwards, lambda _: None)
            return False
        with step(f"Starting Kubernetes {binaries.KUBERNETES.version} on {self.settings.node}") as progress:
            for server in (server for wave in reversed(listed) for server in wave if server.name in stale):
                self.supervisor.stop(server)
            self._run(listed, stale, afterwards, progress)
        return True

    def _run(
        self,
        listed: list[list[Server]],
        stale: set[str],
        afterwards: Mapping[str, Callable[[], None]],
        progress: Progress,
    ) -> None:
        for wave in listed:
            for server in wave:
                self.supervisor.ensure(server)
            for server in wave:
                self.supervisor.wait(server)
                if server.name in stale:
                    progress(f"{server.name} is well")
                if complete := afterwards.get(server.name):
                    complete()

    def _load_pause(self) -> None:
        if configs.PAUSE_IMAGE not in self.images():
            self.import_image(archives.pause_image())


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
