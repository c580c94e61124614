"""A small Kubernetes with slurmctld, sshd and slurmd in its pods: what lifecycle's classes see of a real one.

Files of a ConfigMap arrive in a pod when the kubelet syncs, which an annotation on the pod brings about. slurmctld
runs on the files that it read last. Any call can be made the last one of a process that is killed.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.errors import TransportError
from soperator_pulumi.slurm.transport import Answer

NAMESPACE = "hpc"
SELECTOR = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/instance": "hpc"}
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MOUNTED = {
    "controller": ("slurmctld", ["slurm-config", "users"]),
    "login": ("sshd", ["users", "ssh-keys", "sshd-config"]),
    "worker": ("slurmd", ["users"]),
}

Json = dict[str, Any]

API_SERVICE = "/api/v1/namespaces/default/services/kubernetes"
API_SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
API_SERVER: dict[str, Json] = {
    API_SERVICE: {"metadata": {}, "spec": {"clusterIPs": ["10.96.0.1", "fd00:96::1"]}},
    API_SLICE: {
        "metadata": {"labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": ["192.0.2.9"]}, {"addresses": ["192.0.2.8"]}],
    },
}
"""What every cluster has of its own API."""


class KilledError(Exception):
    """The process ends here."""


@dataclass
class FakeClock:
    """Time that passes only in sleep."""

    time: float = 0.0
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        due = [entry for entry in self.later if entry[0] <= self.time]
        self.later = [entry for entry in self.later if entry[0] > self.time]
        for _, happens in due:
            happens()

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        self.later.append((self.time + seconds, happens))


class World:
    """The cluster, and everything that can be wrong with it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.objects: dict[str, Json] = copy.deepcopy(API_SERVER)
        self.files: dict[str, dict[str, dict[str, str]]] = {}
        self.reported: list[str] = []
        self.commands: list[str] = []
        self.runs_on: dict[str, str] | None = None
        """The files that slurmctld read last; None while it is down."""
        self.jobs: list[Json] = []
        self.nodes: list[Json] = []
        self.trial: Callable[[Mapping[str, str]], str] = lambda _files: ""
        """What a trial start says of files; empty when it takes them."""
        self.refuses: Callable[[Mapping[str, str]], bool] = lambda _files: False
        """Files with which slurmctld itself dies, though a trial went well."""
        self.sshd_words = ""
        self.kubelet_seconds = 0.5
        self.calls_left: int | None = None
        self.unreachable = False
        self.uids = 0
        self.logs: dict[str, str] = {}
        self.made_ready: dict[str, str] = {}
        """What a program beside a container says of the files that it has made ready there, by pod."""
        self.trees: list[Json] = []
        """The jail's."""
        self.entered = {"": ""}
        """The tree that the next session enters, by login pod, or in any other."""
        self.in_use: dict[str, Answer] = {}
        """What a login pod says of the trees in which its sessions are."""

    # -- setting up ---------------------------------------------------------------------------------------------

    def add_pod(self, name: str, component: str, state: str = "running", node_set: str | None = None) -> Json:
        """Add a pod whose main container runs, is `creating`, `crashed` or `unschedulable`."""
        container, config_maps = MOUNTED[component]
        self.uids += 1
        labels = {**SELECTOR, "app.kubernetes.io/component": component}
        if node_set:
            labels["soperator-pulumi/node-set"] = node_set
        self.objects[f"{PODS}/{name}"] = {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": str(self.uids), "labels": labels},
            "spec": {
                "volumes": [{"name": each, "configMap": {"name": each}} for each in config_maps],
                "containers": [
                    {
                        "name": container,
                        "volumeMounts": [{"name": each, "mountPath": f"/mounted/{each}"} for each in config_maps],
                    }
                ],
            },
            "status": _status(container, state),
        }
        if component == "controller":
            # What users are in, beside slurmctld.
            sidecar = {"name": "users", "state": {"running": {}} if state == "running" else {"waiting": {}}}
            self.objects[f"{PODS}/{name}"]["status"]["initContainerStatuses"] = [sidecar]
        self.files[name] = {each: dict(self.data(each)) for each in config_maps}
        if component == "controller":
            self.objects[f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/controller"] = {"metadata": {}}
        if component == "controller" and state == "running":
            self.runs_on = dict(self.files[name]["slurm-config"])
        return self.objects[f"{PODS}/{name}"]

    def data(self, config_map: str) -> dict[str, str]:
        body = self.objects.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{config_map}", {})
        return body.get("data") or {}

    # -- what the code under test calls -------------------------------------------------------------------------

    def __str__(self) -> str:
        return "https://world"

    def get(self, path: str) -> Json | None:
        self._count()
        return copy.deepcopy(self.objects.get(path))

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        self._count()
        del fields
        return [
            copy.deepcopy(body)
            for where, body in self.objects.items()
            if where.rpartition("/")[0] == path
            and (labels or {}).items() <= (body["metadata"].get("labels") or {}).items()
        ]

    def apply(self, path: str, body: Json, *, manager: str = "soperator-pulumi") -> Json:
        del manager
        self._count()
        self.objects[path] = copy.deepcopy(body)
        if "/leases/" in path:
            self.objects[path]["metadata"]["resourceVersion"] = "1"
        return copy.deepcopy(self.objects[path])

    def merge(self, path: str, body: Json) -> Json | None:
        self._count()
        if path not in self.objects:
            return None
        if "spec" in body:
            self.objects[path]["spec"] = body["spec"]
            return self.objects[path]
        annotations = self.objects[path]["metadata"].setdefault("annotations", {})
        annotations.update(body["metadata"]["annotations"])
        self.clock.after(self.kubelet_seconds, lambda: self._kubelet_syncs(path.rpartition("/")[2]))
        return self.objects[path]

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        del dependents_first
        self._count()
        gone = self.objects.pop(path, None)
        if gone and path == f"{PODS}/controller-0":
            self.runs_on = None
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

    def _count(self) -> None:
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise KilledError
            self.calls_left -= 1

    def _kubelet_syncs(self, pod: str) -> None:
        if pod in self.files:
            self.files[pod] = {each: dict(self.data(each)) for each in self.files[pod]}

    def _controller_returns(self) -> None:
        self.add_pod("controller-0", "controller")
        self._slurmctld_starts()

    def _slurmctld_starts(self) -> None:
        """slurmctld reads the files in its pod, and ends when it cannot take them."""
        files = dict(self.files["controller-0"]["slurm-config"])
        taken = not self.trial(files) and not self.refuses(files)
        self.runs_on = files if taken else None
        self.objects[f"{PODS}/controller-0"]["status"] = _status("slurmctld", "running" if taken else "crashed")
        self.logs["controller-0"] = "" if taken else "slurmctld: fatal: no such plugin"

    def reconfigure(self) -> Answer:
        if self.runs_on is None:
            return Answer(1, "", "Unable to contact slurm controller (connect failure)")
        self._slurmctld_starts()
        return Answer(0, "", "")


@dataclass
class FakeTransport:
    """Runs the few commands that are run in pods."""

    world: World
    pod: str
    container: str

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert timeout_seconds > 0
        self.world._count()
        body = self.world.objects.get(f"{PODS}/{self.pod}")
        if self.world.unreachable or body is None or not _runs(body, self.container):
            raise TransportError(f"pod {NAMESPACE}/{self.pod}: no command can be run there.")
        text = " ".join(command)
        self.world.commands.append(text)
        return self._answer(text, stdin)

    def _answer(self, text: str, stdin: bytes) -> Answer:
        world = self.world
        if "sha256sum" in text:
            config_map = text.split("cd /mounted/")[1].split(maxsplit=1)[0]
            return Answer(0, "".join(_sums(world.files[self.pod][config_map])), "")
        if "slurmctld -D" in text:
            words = world.trial({"slurm.conf": stdin.decode()})
            return Answer(1 if words else 0, "", words)
        if "sshd -t" in text:
            return Answer(255 if world.sshd_words else 0, "", world.sshd_words)
        if text.startswith("cat "):
            return Answer(0, world.made_ready.get(self.pod, ""), "")
        answers: dict[str, Callable[[], Answer]] = {
            "scontrol ping": lambda: Answer(0 if world.runs_on is not None else 1, "", ""),
            "scontrol reconfigure": world.reconfigure,
            "squeue --json --all": lambda: _json("jobs", world.jobs),
            "scontrol show nodes --json": lambda: _json("nodes", world.nodes),
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
    return any(each["name"] == container and "running" in each["state"] for each in statuses)


def _json(key: str, values: Sequence[Json]) -> Answer:
    return Answer(0, json.dumps({key: list(values)}), "")


def _sums(files: Mapping[str, str]) -> Iterator[str]:
    for name, text in files.items():
        yield f"{hashlib.sha256(text.encode()).hexdigest()}  ./{name}\n"


def _status(container: str, state: str) -> Json:
    if state == "unschedulable":
        message = "0/3 nodes are available: 3 Insufficient cpu."
        return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}
    ended = {"terminated": {"exitCode": 1}}
    states: dict[str, tuple[Json, Json]] = {
        "running": ({"running": {}}, {}),
        "creating": ({"waiting": {"reason": "ContainerCreating"}}, {}),
        "crashed": ({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, ended),
        "no image": ({"waiting": {"reason": "ErrImagePull", "message": "not found"}}, {}),
    }
    now, before = states[state]
    ready = "True" if state == "running" else "False"
    return {
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"name": container, "state": now, "lastState": before}],
    }
