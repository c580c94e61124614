"""The embedded Kubernetes as a whole: up, down, and what others need of it."""

import base64
import json
import shutil
from pathlib import Path

from tools.console import UserError, say, step
from tools.kube import addons, archives, binaries, configs, files, mounts, network
from tools.kube.cgroups import Cgroup
from tools.kube.debs import cni_plugins, tool
from tools.kube.parts import KUBECONFIGS, Programs, identities, parts
from tools.kube.pki import Pki
from tools.kube.settings import Settings
from tools.kube.supervisor import Supervisor
from tools.paths import cache_dir


class EmbeddedKubernetes:
    """A single-machine Kubernetes of real servers."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._cgroup = Cgroup(self.settings.name)
        self._supervisor = Supervisor(
            self.settings.run, self.settings.logs, self._cgroup.servers / "cgroup.procs"
        )

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.settings.kubeconfig

    @property
    def bin_dir(self) -> Path:
        """The folder that has `kubectl`."""
        return binaries.KUBERNETES.installed

    def up(self) -> None:
        """Start what does not run, and wait until all is well."""
        programs = Programs(**{module.name: binaries.build(module) for module in binaries.MODULES})
        self._configure()
        self._cgroup.create()
        network.up(self.settings)
        listed = parts(self.settings, programs)
        stale = [part for part in listed if not self._supervisor.current(part)]
        if not stale:
            say(f"Kubernetes is up: {self.settings.api_url}")
            return
        with step(f"starting Kubernetes {binaries.KUBERNETES.version}") as progress:
            for part in listed:
                if self._supervisor.ensure(part):
                    self._supervisor.wait(part)
                    progress(f"{part.name} is well")
                if part.name == "containerd":
                    self._load_pause()
                if part.name == "kube-apiserver":
                    self._apply(addons.objects(self.settings))
            self._await_node(progress)

    def _configure(self) -> None:
        settings = self.settings
        settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
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
                files.write(settings.state / "kubeconfigs" / name, text)
        for name, text in {
            "containerd.toml": configs.containerd(settings, cni_plugins=str(cni_plugins())),
            "cni/10-bridge.conflist": configs.cni(settings, mtu=network.mtu()),
            "kubelet.json": configs.kubelet(settings, cgroup_root=f"/{settings.name}"),
            "kube-proxy.json": configs.kube_proxy(settings),
            "Corefile": configs.corefile(settings, nameservers=[]),
            "resolv.conf": f"nameserver {settings.address}\n",
        }.items():
            files.write(settings.config / name, text)

    def _load_pause(self) -> None:
        if configs.PAUSE_IMAGE in self.images():
            return
        program = binaries.build(binaries.PAUSE) / "pause"
        archive = cache_dir() / "images" / f"{binaries.PAUSE.installed.name}.tar"
        if not archive.exists():
            archives.write(
                archive,
                archives.archive(
                    configs.PAUSE_IMAGE, {"/pause": program.read_bytes()}, entrypoint=["/pause"]
                ),
            )
        self.import_image(archive)

    def _apply(self, objects: list[dict[str, object]]) -> None:
        self.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
        )

    def _await_node(self, progress) -> None:
        for condition in ("create", "condition=Ready"):
            self.kubectl("wait", f"--for={condition}", f"node/{self.settings.node}", "--timeout=60s")
        progress("the node is ready")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as administrator and return what it prints."""
        from tools.kube.process import output

        return output(
            [self.bin_dir / "kubectl", "--kubeconfig", self.kubeconfig, *arguments],
            stdin=stdin,
            timeout_seconds=90,
        )

    def ctr(self, *arguments: str | Path, timeout_seconds: float = 60) -> str:
        """Run containerd's client in the namespace of Kubernetes and return what it prints."""
        return tool("ctr").run(
            "--address",
            self.settings.containerd_socket,
            "--namespace",
            "k8s.io",
            *arguments,
            timeout_seconds=timeout_seconds,
        )

    def images(self) -> set[str]:
        """Return the names of the images that pods can use."""
        return set(self.ctr("images", "list", "--quiet").split())

    def import_image(self, archive: Path) -> None:
        """Load an image archive (docker or OCI)."""
        self.ctr("images", "import", archive, timeout_seconds=600)

    def down(self) -> None:
        """Remove every process, mount, bridge, rule and cgroup, and the cluster's data."""
        with step("stopping Kubernetes") as progress:
            killed = self._cgroup.kill()
            progress(f"ended {killed} processes")
            progress(f"removed {mounts.remove_below(self.settings.state)} mounts")
            for removed in network.down(self.settings):
                progress(f"removed {removed}")
            progress(f"removed {self._cgroup.remove()} cgroups")
            shutil.rmtree(self.settings.state)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
