"""A small Kubernetes with slurmctld, sshd and slurmd in its pods: what lifecycle's classes see of a real one.

Files of a ConfigMap arrive in a pod when the kubelet syncs, which an annotation on the pod brings about. slurmctld
runs on the files that it read last. Any call can be made the last one of a process that is killed.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from soperator_pulumi.errors import KubernetesError, TransportError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.render.layout import NODE_GRES
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.clock import FakeClock
from tests.fakes.objects import CONFIG_MAPS, NAMESPACE, PODS, STATEFUL_SETS, Objects
from tests.fakes.pods import a_pod, status_of
from tests.fakes.slurm_programs import Programs
from tests.fakes.slurmctld import Slurmctld

MOUNTED = {
    "controller": ("slurmctld", ["slurm-config", "users"]),
    "login": ("sshd", ["users", "ssh-keys", "sshd-config"]),
    "login-gpu": ("sshd", ["users", "ssh-keys", "sshd-config"]),
    "worker": ("slurmd", ["users"]),
}

API_SERVICE = "/api/v1/namespaces/default/services/kubernetes"
API_SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
API_SERVER: dict[str, Json] = {
    API_SERVICE: {"metadata": {}, "spec": {"clusterIPs": ["10.96.0.1", "fd00:96::1"]}},
    API_SLICE: {
        "metadata": {"labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": ["192.0.2.9"]}, {"addresses": ["192.0.2.8"]}],
    },
}
"""Objects that every cluster has of its own API."""


class SmallWorld(Objects):
    """The cluster, and everything that can be wrong with it."""

    def __init__(self) -> None:
        super().__init__(copy.deepcopy(API_SERVER))
        self.clock = FakeClock()
        self.slurm = Slurmctld(on_reconfigure=self._slurmctld_starts, up=False)
        self.slurm_programs = Programs(self.slurm)
        self.files: dict[str, dict[str, dict[str, str]]] = {}
        self.reported: list[str] = []
        self.commands: list[str] = []
        self.answers: dict[str, Answer] = {}
        """Answers in place of a command's program."""
        self.read: dict[str, str] = {}
        """The files that slurmctld read last."""
        self.trial: Callable[[Mapping[str, str]], str] = lambda _files: ""
        """Returns the words of a trial start about files; empty when it takes them."""
        self.refuses: Callable[[Mapping[str, str]], bool] = lambda _files: False
        """Files with which slurmctld itself dies, though a trial went well."""
        self.included: set[str] = set()
        """Pods with the file that gres.conf includes: none as it starts, as in a release before GPUs."""
        self.sshd_words = ""
        self.kubelet_seconds = 0.5
        self.unreachable = False
        self.logs: dict[str, str] = {}
        self.made_ready: dict[str, str] = {}
        """Answer of a program next to a container about the files that it has made ready there, by pod."""
        self.trees: list[Json] = []
        """The jail's."""
        self.entered = {"": ""}
        """The tree that the next session enters, by login pod, or in any other."""
        self.in_use: dict[str, Answer] = {}
        """Answer of a login pod about the trees in which its sessions are."""

    # -- setting up ---------------------------------------------------------------------------------------------

    def connect(self, patch: pytest.MonkeyPatch) -> None:
        """Have every provider reach this cluster, in its time."""

        def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> "SmallWorld":
            if self.unreachable:
                raise KubernetesError("The Kubernetes API at https://x is not reached.")
            return self

        patch.setattr(LiveProvider, "kube", kube)
        patch.setattr(LiveProvider, "recent", kube)
        for module in ("tree_populated", "active_tree", "config_files", "database_account", "images_published"):
            patch.setattr(f"soperator_pulumi.lifecycle.{module}.MachineClock", lambda: self.clock)

    def add_pod(self, name: str, component: str, state: str = "running", node_set: str | None = None) -> Json:
        """Add a pod whose main container runs, is `creating`, `crashed` or `unschedulable`."""
        container, config_maps = MOUNTED[component]
        self.changes += 1
        body = a_pod(name, component, container, state, node_set=node_set, uid=str(self.changes))
        body["spec"]["volumes"] = [
            {"name": config_map, "configMap": {"name": config_map}} for config_map in config_maps
        ]
        mounts = [{"name": config_map, "mountPath": f"/mounted/{config_map}"} for config_map in config_maps]
        body["spec"]["containers"][0]["volumeMounts"] = mounts
        self.objects[f"{PODS}/{name}"] = body
        if component == "controller":
            # What users are in, next to slurmctld.
            sidecar = {"name": "users", "state": {"running": {}} if state == "running" else {"waiting": {}}}
            body["status"]["initContainerStatuses"] = [sidecar]
        self.files[name] = {config_map: dict(self.data(config_map)) for config_map in config_maps}
        if component == "controller":
            self.objects[f"{STATEFUL_SETS}/controller"] = {"metadata": {}}
            self.read, self.slurm.up = dict(self.files[name]["slurm-config"]), state == "running"
        return body

    @property
    def runs_on(self) -> dict[str, str] | None:
        """The files on which slurmctld runs; None while it is down."""
        return self.read if self.slurm.up else None

    def data(self, config_map: str) -> dict[str, str]:
        return self.objects.get(f"{CONFIG_MAPS}/{config_map}", {}).get("data") or {}

    # -- what the code under test calls -------------------------------------------------------------------------

    def merge(self, path: str, body: Json) -> Json | None:
        merged = super().merge(path, body)
        self.clock.after(self.kubelet_seconds, lambda: self._kubelet_syncs(path.rpartition("/")[2]))
        return merged

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        went = path == f"{PODS}/controller-0" and path in self.objects
        super().delete(path, dependents_first=dependents_first)
        if went:
            self.slurm.up = False
            self.included.discard("controller-0")
            self.clock.after(2, self._controller_returns)

    def log(
        self,
        path: str,
        container: str,
        *,
        previous: bool = False,
        since_seconds: int | None = None,
        lines: int = 50,
    ) -> str:
        del container, previous, since_seconds
        return "\n".join(self.logs.get(path.rpartition("/")[2], "").splitlines()[-lines:])

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> "FakeTransport":
        assert namespace == NAMESPACE
        assert coreutils is (container != "users")
        return FakeTransport(self, pod, container)

    # -- what happens by itself ---------------------------------------------------------------------------------

    def _kubelet_syncs(self, pod: str) -> None:
        if pod in self.files:
            self.files[pod] = {file: dict(self.data(file)) for file in self.files[pod]}

    def _controller_returns(self) -> None:
        self.add_pod("controller-0", "controller")
        self._slurmctld_starts()

    def _slurmctld_starts(self) -> None:
        """slurmctld reads the files in its pod, and ends when it cannot take them."""
        self.read = dict(self.files["controller-0"]["slurm-config"])
        self.slurm.up = taken = not self.trial(self.read) and not self.refuses(self.read)
        self.objects[f"{PODS}/controller-0"]["status"] = status_of(
            "slurmctld", "running" if taken else "crashed", ready=taken
        )
        self.logs["controller-0"] = "" if taken else "slurmctld: fatal: no such plugin"


@dataclass
class FakeTransport:
    """Runs the few commands that are run in pods."""

    world: SmallWorld
    pod: str
    container: str

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert timeout_seconds > 0
        self.world.count_call()
        body = self.world.objects.get(f"{PODS}/{self.pod}")
        if self.world.unreachable or body is None or not _runs(body, self.container):
            raise TransportError(f"pod {NAMESPACE}/{self.pod}: cannot run commands there.")
        text = " ".join(command)
        self.world.commands.append(text)
        if text in self.world.answers:
            return self.world.answers[text]
        if command[0] in {"scontrol", "squeue"}:
            return self.world.slurm_programs.run(command)
        return self._answer(text, stdin)

    def _answer(self, text: str, stdin: bytes) -> Answer:
        world = self.world
        if "sha256sum" in text:
            config_map = text.split("cd /mounted/")[1].split(maxsplit=1)[0]
            return Answer(0, "".join(_sums(world.files[self.pod][config_map])), "")
        if text.startswith("/bin/sh -c test -e "):
            assert text.endswith(f"> {NODE_GRES}")
            world.included.add(self.pod)
            return Answer(0, "", "")
        if "slurmctld -D" in text:
            words = world.trial({"slurm.conf": stdin.decode()})
            return Answer(1 if words else 0, "", words)
        if "sshd -t" in text:
            return Answer(255 if world.sshd_words else 0, "", world.sshd_words)
        if text.startswith("cat "):
            return Answer(0, world.made_ready.get(self.pod, ""), "")
        answers: dict[str, Callable[[], Answer]] = {
            "/.jail-tools/bin/python3 -I -m jail_tools trees --jail /jail": lambda: Answer(
                0, json.dumps(world.trees), ""
            ),
            "readlink /run/jail/active": lambda: Answer(0, world.entered.get(self.pod, world.entered[""]), ""),
            "/opt/slurm/sbin/jail-login --in-use": lambda: world.in_use.get(self.pod, Answer(0, "", "")),
            "pkill -HUP --oldest --exact sshd": lambda: Answer(0, "", ""),
        }
        return answers[text]()


def _runs(body: Json, container: str) -> bool:
    status = body["status"]
    statuses = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    return any(status["name"] == container and "running" in status["state"] for status in statuses)


def _sums(files: Mapping[str, str]) -> Iterator[str]:
    for name, text in files.items():
        yield f"{hashlib.sha256(text.encode()).hexdigest()}  ./{name}\n"
