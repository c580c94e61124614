"""A machine next to this one: network, mounts and host folders of its own, on the same kernel and disk.

What is destructive is tried there, so that the cluster that other tests use stays as it is.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import busybox
from tests.waiting import wait_until
from tools import paths
from tools.kube import EmbeddedKubernetes, Settings
from tools.kube.debs import tool
from tools.kube.process import output

# Mounts are private, so nothing gets out. /sys is mounted again because it shows the network of who mounts it; cgroups
# stay the machine's. Folders whose place servers do not let us choose are overlaid: what they leave there is seen, and
# gone at the end.
_MACHINE = """\
set -e
mount --make-rprivate /
mkdir -p "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
umount --lazy "$1/cgroup"
for folder in var/lib var/log; do
    mkdir -p "$1/upper/$folder" "$1/work/$folder"
    layers="lowerdir=/$folder,upperdir=$1/upper/$folder,workdir=$1/work/$folder"
    mount -t overlay overlay -o "$layers" "/$folder"
done
rm -rf /var/lib/kubelet /var/lib/cni /var/log/containers
mount -t tmpfs tmpfs /run
"$2" link set lo up
echo ready
exec sleep infinity
"""


@dataclass(frozen=True)
class Machine:
    """The machine, and the embedded Kubernetes that is started on it."""

    folder: Path
    pid: int
    """A process that lives there."""

    @property
    def settings(self) -> Settings:
        return Settings(state=self.folder / "s" / "soperator-pulumi" / "kube")

    @property
    def kube(self) -> EmbeddedKubernetes:
        return EmbeddedKubernetes(self.settings)

    def command(self, *words: str | Path) -> list[str]:
        """Return a command that runs there."""
        where = ["nsenter", "-t", str(self.pid), "-n", "-m", f"--wdns={paths.ROOT}", "--"]
        return [*where, *map(str, words)]

    def start(self, *words: str | Path) -> "subprocess.Popen[str]":
        """Start a command there, with its output in one pipe."""
        return subprocess.Popen(
            self.command(*words),
            env={**os.environ, "XDG_STATE_HOME": str(self.folder / "s")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str | Path, timeout_seconds: float = 400) -> "subprocess.CompletedProcess[str]":
        """Run a command there to its end."""
        with self.start(*words) as process:
            said, _ = process.communicate(timeout=timeout_seconds)
        return subprocess.CompletedProcess(words, process.returncode, said, "")

    def sh(self, script: str) -> str:
        """Run a shell script there and return what it prints; a failure fails the test."""
        done = self.run("sh", "-c", script)
        assert done.returncode == 0, f"{script!r} gave {done.returncode}:\n{done.stdout}"
        return done.stdout

    def kubernetes(self, *command: str) -> str:
        """Run `python -m tools.kube <command>` there; a failure fails the test with what it said."""
        done = self.run(sys.executable, "-m", "tools.kube", *command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl there as administrator; a failure fails the test with what it said."""
        done = self.run(self.kube.bin_dir / "kubectl", "--kubeconfig", self.kube.kubeconfig, *arguments)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}:\n{done.stdout}"
        return done.stdout

    def up_with_pods(self) -> None:
        """Start the cluster where it is down, and a Deployment with two pods in it where it is not there."""
        self.kubernetes("up")
        self.import_busybox()
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [busybox.container()]}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        manifest = self.folder / "web.json"
        manifest.write_text(
            json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
        )
        self.kubectl("apply", "-f", str(manifest))
        self.await_pods()

    def import_busybox(self) -> None:
        """Load the image of the tests' pods, where a machine does not have it."""
        import_image = "import sys; from pathlib import Path; from tools.kube import EmbeddedKubernetes; "
        import_image += "EmbeddedKubernetes().import_image(Path(sys.argv[1]))"
        assert self.run(sys.executable, "-c", import_image, busybox.archive()).returncode == 0

    def await_pods(self) -> None:
        """Wait until both pods answer through a new exec: their status may be of before a crash."""

        def answers() -> bool:
            listed = json.loads(self.kubectl("get", "pods", "--selector=app=web", "--output=json"))["items"]
            names = [item["metadata"]["name"] for item in listed if not item["metadata"].get("deletionTimestamp")]
            kubectl = (self.kube.bin_dir / "kubectl", "--kubeconfig", self.kube.kubeconfig)
            return len(names) == 2 and all(
                self.run(*kubectl, "exec", name, "--", "wget", "-qO-", "http://127.0.0.1:8080").returncode == 0
                for name in names
            )

        wait_until(answers, "both pods answer")

    def processes(self) -> set[int]:
        """Return all processes of the cluster, those of pods among them."""
        return self.kube._cgroup.processes()

    def kill_everything(self) -> None:
        """End all processes of the cluster as a loss of power would."""
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(), "all are gone")


@contextmanager
def machine() -> Iterator[Machine]:
    """Give a machine for the time of the body."""
    EmbeddedKubernetes().fetch()  # while there is a way out
    folder = Path(tempfile.mkdtemp(prefix="kube-"))  # short, for sockets below it
    with subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", _MACHINE, "sh", folder, tool("ip").path],
        env={**os.environ, **tool("ip").environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout
            said = process.stdout.readline()
            assert said == "ready\n", said + process.stdout.read()
            made = Machine(folder, process.pid)
            try:
                yield made
            finally:
                made.kubernetes("down")
        finally:
            process.kill()
    shutil.rmtree(folder)


def environment(name: str) -> list[str]:
    """Return the variables that a tool of the distribution's packages needs, as words for `env`."""
    return [f"{key}={value}" for key, value in tool(name).environment.items()]


_LISTEN = """\
import socket
with socket.create_server(("", 0)) as server:
    print(server.getsockname()[1], flush=True)
    print(server.accept()[1][0], flush=True)
"""

_GREET = """\
import socket, socketserver, sys, threading
class Greeter(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"hello\\n")
socketserver.TCPServer.allow_reuse_address = True
for port in sys.argv[1:]:
    server = socketserver.ThreadingTCPServer(("", int(port)), Greeter)
    threading.Thread(target=server.serve_forever).start()
print("ready", flush=True)
"""

_CONNECT = """\
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1).close()
"""


@dataclass
class Outside:
    """A neighbour on a network of this machine's, who sends whatever is for pods and services our way."""

    pid: int
    number: int = 0
    """Of several on one machine, below 64."""
    _listener: "subprocess.Popen[str] | None" = None

    @property
    def our_address(self) -> str:
        return f"198.51.100.{4 * self.number + 1}"  # TEST-NET-2 of RFC 5737

    @property
    def address(self) -> str:
        return f"198.51.100.{4 * self.number + 2}"

    @property
    def link_local(self) -> str:
        """Another address of the neighbour, where clouds have metadata services."""
        return f"169.254.77.{self.number}"

    @property
    def interface(self) -> str:
        """This machine's end of the network between both."""
        return f"outside{self.number}"

    def _command(self, *words: str) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", "--", *words]

    @contextmanager
    def greets(self, *ports: int) -> Iterator[None]:
        """Say a word to all who call at these ports, at each address."""
        command = self._command(sys.executable, "-c", _GREET, *map(str, ports))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                assert process.stdout.readline() == "ready\n"
                yield
            finally:
                process.kill()

    @contextmanager
    def listens(self) -> Iterator[int]:
        """Listen there for one caller, and give the port."""
        command = self._command(sys.executable, "-c", _LISTEN)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as self._listener:
            try:
                assert self._listener.stdout
                yield int(self._listener.stdout.readline())
            finally:
                self._listener.kill()

    def caller(self) -> str:
        """Return the address of the one who called."""
        assert self._listener
        assert self._listener.stdout
        return self._listener.stdout.readline().strip()

    def reaches(self, address: str, port: int) -> bool:
        """Tell whether the neighbour can connect."""
        command = self._command(sys.executable, "-c", _CONNECT, address, str(port))
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def outside(number: int = 0) -> Iterator[Outside]:
    """Give a neighbour for the time of the body. Those of one machine at one time need different numbers."""
    ip = tool("ip")
    script = "echo ready; exec sleep infinity"
    with subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            made = Outside(process.pid, number)
            there: list[str | Path] = ["nsenter", "--target", str(process.pid), "--net", "--", ip.path]
            inside = ("type", "veth", "peer", "name", "inside0", "netns", str(process.pid))
            ip.run("link", "add", made.interface, *inside)
            ip.run("address", "add", f"{made.our_address}/30", "dev", made.interface)
            ip.run("link", "set", made.interface, "up")
            ip.run("route", "add", f"{made.link_local}/32", "dev", made.interface)
            for words in (
                ("link", "set", "lo", "up"),
                ("address", "add", f"{made.address}/30", "dev", "inside0"),
                ("address", "add", f"{made.link_local}/32", "dev", "inside0"),
                ("link", "set", "inside0", "up"),
                ("route", "add", "default", "via", made.our_address),
            ):
                output([*there, *words], environment=ip.environment)
            try:
                yield made
            finally:
                ip.run("link", "delete", made.interface)  # the kernel does so, too, some time after the other end
        finally:
            process.kill()
