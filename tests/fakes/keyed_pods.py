"""Pods that read a key of a Secret: the kubelet brings the file, and a daemon uses the copy that it read last."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator_pulumi.errors import TransportError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.key_rotation import (
    ARM,
    DISARM,
    KEY_IN_USE,
    MOUNTED_KEY,
    MUNGED,
    PAUSE,
    PREPARE,
    SWITCH,
)
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.clock import EPOCH, FakeClock
from tests.fakes.objects import NAMESPACE, NAMESPACE_PATH, PODS, Objects
from tests.fakes.pods import a_pod, status_of

MUNGE_SECRET = f"{NAMESPACE_PATH}/secrets/munge-key"
HOST_SECRET = f"{NAMESPACE_PATH}/secrets/ssh-host-key"
_SECRETS = {MOUNTED_KEY: (MUNGE_SECRET, "munge.key"), layout.SSH_HOST_KEY: (HOST_SECRET, "ssh_host_ed25519_key")}


@dataclass(eq=False)
class KeyedPods(Objects):
    """The namespace of a cluster, with its keys and the pods that read them."""

    clock: FakeClock = field(default_factory=FakeClock)
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Contents by pod and path."""
    cut_off: set[str] = field(default_factory=set)
    """Pods whose kubelets bring nothing and run no command."""
    pauses: list[tuple[float, float]] = field(default_factory=list)
    """Times in which slurmctld starts no job."""
    without_munged: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Times of the last change of munged, by pod: the end of the former one, and the start of the new one."""
    armed: dict[str, str] = field(default_factory=dict)
    """Pods that wait for their moment."""
    not_armed: set[str] = field(default_factory=set)
    """Pods in which the command for that fails."""
    late_clocks: dict[str, float] = field(default_factory=dict)
    """Seconds by which the clocks of pods' machines are late."""
    mounts: str = "munge-key"
    """Secret in the pods that start."""
    shortest_key: int = 0
    """Length of the shortest key with which munged starts."""
    hangups: list[str] = field(default_factory=list)
    """Pods whose sshd read its files again."""
    reported: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.objects[NAMESPACE_PATH] = {"metadata": {"name": NAMESPACE, "uid": "recorded"}}

    def set_key(self, path: str, value: str) -> None:
        """Write the Secret of the key that pods see at this path."""
        secret, key = _SECRETS[path]
        data = {key: base64.b64encode(value.encode()).decode()}
        self.objects[secret] = {"metadata": {"name": secret.rpartition("/")[2]}, "data": data}

    def add_pod(self, name: str, component: str, daemon: str) -> None:
        """Start a pod with the keys of now."""
        body = a_pod(name, component, daemon, uid=f"{name}-{self.changes}")
        body["status"]["initContainerStatuses"] = status_of(MUNGED, "running", ready=True)["containerStatuses"]
        body["spec"]["volumes"] = [{"name": "munge-secret", "secret": {"secretName": self.mounts}}]
        self.objects[f"{PODS}/{name}"] = body
        self._bring(name)
        self.files[name, KEY_IN_USE] = self.files[name, MOUNTED_KEY]

    def in_use(self) -> dict[str, str]:
        """Return the munge key of each pod."""
        return {pod: content.decode() for (pod, path), content in self.files.items() if path == KEY_IN_USE}

    def in_its_time(self, milliseconds: str) -> float:
        """Return a time of a script in seconds of the clock."""
        return int(milliseconds) / 1000 - EPOCH

    def log(self, *_: object, **_options: object) -> str:
        return ""

    def merge(self, path: str, body: Json) -> Json | None:
        where, _, name = path.rpartition("/")
        if where == PODS and name not in self.cut_off:
            self._bring(name)
        return super().merge(path, body)

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> "_Commands":
        assert (namespace, coreutils) == (NAMESPACE, True)
        return _Commands(self, pod, container)

    def _bring(self, pod: str) -> None:
        for path, (secret, key) in _SECRETS.items():
            if secret in self.objects:
                self.files[pod, path] = base64.b64decode(self.objects[secret]["data"][key])


@dataclass(frozen=True)
class _Commands:
    pods: KeyedPods
    pod: str
    container: str

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert timeout_seconds
        if self.pod in self.pods.cut_off:
            raise TransportError(f"pod {self.pod}: not reached")
        match (self.container, *command):
            case (_, "sha256sum", path):
                return Answer(0, f"{hashlib.sha256(self.pods.files[self.pod, path]).hexdigest()}  {path}\n", "")
            case ("munged", "date", "+%s%3N"):
                late = self.pods.late_clocks.get(self.pod, 0.0)
                return Answer(0, f"{(self.pods.clock.wall() - late) * 1000:.0f}\n", "")
            case ("munged", "/bin/sh", "-c", script) if script == PREPARE:
                starts = len(self.pods.files[self.pod, MOUNTED_KEY]) >= self.pods.shortest_key
                return Answer(0, "ready\n", "") if starts else Answer(1, "", "munged: Error: key too short")
            case ("munged", "/bin/sh", "-c", script) if script == DISARM:
                self.pods.armed.pop(self.pod, None)
                return Answer(0, "", "")
            case ("munged", "/bin/sh", "-c", script, switch, stop, start) if (script, switch) == (ARM, SWITCH):
                if self.pod in self.pods.not_armed:
                    raise TransportError(f"pod {self.pod}: the connection broke")
                self.pods.armed[self.pod] = stop
                late = self.pods.late_clocks.get(self.pod, 0.0)
                begin, end = self.pods.in_its_time(stop) + late, self.pods.in_its_time(start) + late
                self.pods.clock.after(end - self.pods.clock.time, lambda: self._switch(stop, begin, end))
                return Answer(0, "armed\n", "")
            case ("slurmctld", "/bin/sh", "-c", _, script, stop, start) if script == PAUSE:
                self.pods.pauses.append((self.pods.in_its_time(stop), self.pods.in_its_time(start)))
                return Answer(0, "", "")
            case ("sshd", "pkill", *_):
                self.pods.hangups.append(self.pod)
                return Answer(0, "", "")
        raise AssertionError(command)

    def _switch(self, stop: str, begin: float, end: float) -> None:
        if self.pods.armed.get(self.pod) == stop:
            self.pods.without_munged[self.pod] = begin, end
            self.pods.files[self.pod, KEY_IN_USE] = self.pods.files[self.pod, MOUNTED_KEY]


def a_cluster() -> KeyedPods:
    """Return a cluster of four pods that use the keys `old` and `old host`."""
    world = KeyedPods()
    world.set_key(MOUNTED_KEY, "old")
    world.set_key(layout.SSH_HOST_KEY, "old host")
    for name, component, daemon in (
        ("controller-0", "controller", "slurmctld"),
        ("cpu-0", "worker", "slurmd"),
        ("cpu-1", "worker", "slurmd"),
        ("login-0", "login", "sshd"),
    ):
        world.add_pod(name, component, daemon)
    return world
