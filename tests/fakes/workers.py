"""Kubernetes as our providers see it: StatefulSets (Parallel, OnDelete), their pods, and slurmd with preStop in them.

What it leaves out: stale lists (an API server's own reads are consistent) and pods deleted by force, whose processes
may go on though the API server says that they are gone.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.cluster import worker_scripts
from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.slurmctld import NOT_RESPONDING, Slurmctld

NAMESPACE = "hpc"
OWNER = "dev-hpc"
SELECTOR = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/instance": "hpc"}
NODE_SET_LABEL = "soperator-pulumi/node-set"
OWNER_LABEL = "soperator-pulumi/owner"
IDENTITY = "soperator-pulumi/identity"
TEMPLATE = "soperator-pulumi/template"
POLICY = "soperator-pulumi/drain"
NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"
PODS = f"{NAMESPACE_PATH}/pods"
CONFIG_MAPS = f"{NAMESPACE_PATH}/configmaps"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
POD_STOP = str(Marker(OWNER, Operation.POD_STOP))
POD_START = str(Marker(OWNER, Operation.POD_START))

START_SECONDS = 2.0
STOP_SECONDS = 1.0

Json = dict[str, Any]


def worker_labels(node_set: str | None = None) -> dict[str, str]:
    """Return the labels by which the workers of the cluster, or of one node set, are found."""
    own = {NODE_SET_LABEL: node_set} if node_set else {}
    return {**SELECTOR, "app.kubernetes.io/component": "worker", **own}


@dataclass
class Set:
    """A StatefulSet of workers."""

    name: str
    uid: str
    replicas: int
    template: str
    identity: str
    grace_seconds: float
    policy: str
    """Its drain policy, as JSON."""
    generation: int = 1
    observed: int = 0
    revision: str = ""


@dataclass
class Pod:
    """A worker's pod."""

    name: str
    uid: str
    node_set: str
    revision: str
    born_at: float
    grace_seconds: float
    schedulable: bool = True
    slurmd: bool = False
    """Whether slurmd runs."""
    ran: bool = False
    """Whether it ever has."""
    restarts: int = 0
    registered: bool = False
    registered_at: float = 0.0
    going_since: float | None = None
    stopped_at: float | None = None
    """When its slurmd was told to end."""

    @property
    def ordinal(self) -> int:
        return int(self.name.rpartition("-")[2])

    @property
    def ready(self) -> bool:
        return self.slurmd and self.registered


@dataclass
class Kubernetes:
    """The API server's objects, and the controllers and kubelets behind it."""

    slurm: Slurmctld
    on_leave: Callable[[list[Pod]], None] = lambda _pods: None
    """Called when pods are told to go, before anything happens to them."""
    on_pod: Callable[[Pod], None] = lambda _pod: None
    """Called when a pod was made, has registered, or has drained its node."""
    namespace_uid: str | None = "uid-0"
    sets: dict[str, Set] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    controller: bool = True
    """Whether slurmctld's pod is there."""
    new_pods_fit: bool = True
    slurm_files: dict[str, str] = field(default_factory=dict)
    """What is in force; none where no test is about it."""
    lease: Json | None = None
    """Of the cluster's nodes."""
    now: float = 0.0
    uids: int = 0

    # -- what runs by itself ------------------------------------------------------------------------------------

    def step(self, now: float) -> None:
        """Let time come to `now`."""
        self.now = now
        for owner in self.sets.values():
            self._reconcile(owner)
        orphans = [pod for pod in self.pods.values() if pod.node_set not in self.sets and pod.going_since is None]
        self.tell_to_go(orphans)
        for pod in list(self.pods.values()):
            if pod.going_since is not None:
                self._stop(pod, pod.going_since)
            else:
                self._run(pod)

    def answers_slurmd(self, name: str) -> bool:
        """Whether a slurmd of this name is alive and has registered since it started."""
        pod = self.pods.get(name)
        return pod is not None and pod.slurmd and pod.registered

    def tell_to_go(self, pods: list[Pod]) -> None:
        """Begin the end of pods: preStop, then the kill at the end of their grace."""
        for pod in pods:
            pod.going_since = self.now

    def die(self, pod: Pod) -> None:
        """End a pod's processes and remove it."""
        self.pods.pop(pod.name, None)
        self.slurm.machine_gone(pod.name)

    def _reconcile(self, owner: Set) -> None:
        owner.revision, owner.observed = f"{owner.name}-{owner.template}", owner.generation
        own = [pod for pod in self.pods.values() if pod.node_set == owner.name]
        self.tell_to_go([pod for pod in own if pod.ordinal >= owner.replicas and pod.going_since is None])
        for ordinal in range(owner.replicas):
            name = f"{owner.name}-{ordinal}"
            if name not in self.pods:
                self.uids += 1
                uid = f"pod-{self.uids}"
                self.pods[name] = Pod(
                    name, uid, owner.name, owner.revision, self.now, owner.grace_seconds, self.new_pods_fit
                )
                self.on_pod(self.pods[name])

    def _run(self, pod: Pod) -> None:
        if not pod.schedulable and self.new_pods_fit:
            pod.schedulable, pod.born_at = True, self.now
        if not pod.schedulable or self.now < pod.born_at + START_SECONDS:
            return
        pod.slurmd = pod.ran = True
        if not pod.registered:
            pod.registered = self.slurm.register(pod.name, _weight(pod.ordinal), POD_START)
            pod.registered_at = self.now
            # The startup probe undoes exactly what this pod's preStop of before has set.
            if pod.registered:
                self._lift(pod, POD_STOP)
            self.on_pod(pod)
        if pod.registered and self.slurm.up and self.now >= pod.registered_at + worker_scripts.NEWCOMER_SECONDS:
            self._lift(pod, POD_START)

    def _lift(self, pod: Pod, reason: str) -> None:
        """Do as the pod's own scripts: undo a drain with exactly this reason."""
        record = self.slurm.nodes.get(pod.name)
        if record and record.drain and not record.fail and record.reason.removesuffix(NOT_RESPONDING) == reason:
            self.slurm.resume([pod.name])

    def _stop(self, pod: Pod, since: float) -> None:
        if not pod.slurmd:
            self.die(pod)
            return
        over = self.now >= since + pod.grace_seconds
        record = self.slurm.nodes.get(pod.name) if self.slurm.up else None
        if record and not record.drain:
            self.slurm.drain([pod.name], POD_STOP)
            self.on_pod(pod)
        waits = not self.slurm.up or bool(self.slurm.could_be_on(pod.name))
        if over:
            self.die(pod)
        elif not waits:
            pod.stopped_at = self.now if pod.stopped_at is None else pod.stopped_at
            if self.now >= pod.stopped_at + STOP_SECONDS:
                self.die(pod)

    def restart_slurmd(self, pod: Pod) -> None:
        """End a slurmd badly: its container starts again."""
        if pod.slurmd:
            pod.slurmd, pod.registered, pod.born_at, pod.restarts = False, False, self.now, pod.restarts + 1
            self.slurm.machine_gone(pod.name)

    # -- what the engine does -----------------------------------------------------------------------------------

    def put_set(self, name: str, replicas: int, template: str, identity: str, policy: DrainSpec) -> None:
        """Create a StatefulSet, or change it. One whose identity changes must be deleted first."""
        found, grace, written = self.sets.get(name), policy.grace.total_seconds(), policy.model_dump_json()
        if found is None:
            self.uids += 1
            self.sets[name] = Set(name, f"set-{self.uids}", replicas, template, identity, grace, written)
            return
        assert found.identity == identity
        lost = [pod for pod in self.pods.values() if pod.node_set == name and pod.ordinal >= replicas]
        self.on_leave([pod for pod in lost if pod.going_since is None])
        found.generation += (found.replicas, found.template) != (replicas, template)
        found.replicas, found.template, found.grace_seconds, found.policy = replicas, template, grace, written

    def delete_set(self, name: str) -> None:
        """Delete a StatefulSet; its pods follow."""
        self.on_leave([pod for pod in self.pods.values() if pod.node_set == name and pod.going_since is None])
        self.sets.pop(name, None)

    # -- its API ------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Json | None:
        if path == NAMESPACE_PATH:
            return {"metadata": {"name": NAMESPACE, "uid": self.namespace_uid}} if self.namespace_uid else None
        if self.namespace_uid is None:
            return None
        where, _, name = path.rpartition("/")
        if where == PODS:
            if name == "controller-0":
                return self._controller_pod() if self.controller else None
            return self._pod(self.pods[name]) if name in self.pods else None
        if where == LEASES:
            return copy.deepcopy(self.lease)
        if where == CONFIG_MAPS:
            return {"metadata": {"name": name}, "data": self.slurm_files} if self.slurm_files else None
        if where == SETS:
            if name == "controller":
                return (
                    {"metadata": {"name": name, "labels": SELECTOR}, "spec": {"replicas": 1}}
                    if self.controller
                    else None
                )
            return self._set(self.sets[name]) if name in self.sets else None
        raise AssertionError(f"the model knows no {path!r}")

    def find(self, path: str, labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> list[Json]:
        if path == f"{NAMESPACE_PATH}/events" or self.namespace_uid is None:
            return []
        found = {
            PODS: lambda: [
                *(self._pod(pod) for pod in self.pods.values()),
                *([self._controller_pod()] if self.controller else []),
            ],
            SETS: lambda: [self._set(each) for each in self.sets.values()],
        }[path]()
        assert not fields
        return [each for each in found if (labels or {}).items() <= each["metadata"]["labels"].items()]

    def apply(self, path: str, body: Json) -> Json:
        assert path.startswith(LEASES), path
        self.lease = self.lease or {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        return copy.deepcopy(self.lease)

    def merge(self, path: str, body: Json) -> Json | None:
        assert path.startswith(LEASES), path
        if self.lease is None:
            return None
        version = self.lease["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise KubernetesError("the object has been modified; please apply your changes to the latest version")
        spec = {**self.lease.get("spec", {}), **body["spec"]}
        metadata = {**self.lease["metadata"], "resourceVersion": str(int(version) + 1)}
        self.lease = {**self.lease, "metadata": metadata, "spec": {k: v for k, v in spec.items() if v is not None}}
        return copy.deepcopy(self.lease)

    def delete(self, path: str) -> None:
        where, _, name = path.rpartition("/")
        assert where == PODS, path
        pod = self.pods.get(name)
        if pod and pod.going_since is None:
            self.on_leave([pod])
            self.tell_to_go([pod])

    def _set(self, owner: Set) -> Json:
        own = [pod for pod in self.pods.values() if pod.node_set == owner.name]
        return {
            "metadata": {
                "name": owner.name,
                "namespace": NAMESPACE,
                "uid": owner.uid,
                "generation": owner.generation,
                "labels": {**worker_labels(owner.name), OWNER_LABEL: OWNER},
                "annotations": {IDENTITY: owner.identity, TEMPLATE: owner.template, POLICY: owner.policy},
            },
            "spec": {"replicas": owner.replicas, "updateStrategy": {"type": "OnDelete"}},
            "status": {
                "observedGeneration": owner.observed,
                "updateRevision": owner.revision,
                "replicas": len(own),
                "readyReplicas": sum(pod.ready for pod in own),
            },
        }

    def _pod(self, pod: Pod) -> Json:
        meta: Json = {
            "name": pod.name,
            "namespace": NAMESPACE,
            "uid": pod.uid,
            "labels": {**worker_labels(pod.node_set), "controller-revision-hash": pod.revision},
            "ownerReferences": [{"kind": "StatefulSet", "name": pod.node_set}],
        }
        if pod.going_since is not None:
            meta["deletionTimestamp"] = "2026-11-21T00:00:00Z"
        waiting = "CrashLoopBackOff" if pod.restarts else "ContainerCreating"
        status = {
            "name": "slurmd",
            "restartCount": pod.restarts,
            "ready": pod.ready,
            "started": pod.ready,
            "state": {"running": {}} if pod.slurmd else {"waiting": {"reason": waiting}},
            "lastState": {"terminated": {"exitCode": 1}} if pod.restarts else {},
        }
        fits: Json = {"type": "PodScheduled", "status": str(pod.schedulable)}
        if not pod.schedulable:
            fits["message"] = "0/3 nodes are available: 3 Insufficient cpu."
        return {
            "metadata": meta,
            "spec": {"containers": [{"name": "slurmd"}], "volumes": []},
            "status": {
                "phase": "Running" if pod.slurmd else "Pending",
                "conditions": [fits, {"type": "Ready", "status": str(pod.ready)}],
                "containerStatuses": [status] if pod.schedulable else [],
            },
        }

    def _controller_pod(self) -> Json:
        labels = {**SELECTOR, "app.kubernetes.io/component": "controller"}
        running = {"name": "slurmctld", "state": {"running": {}}, "restartCount": 0, "ready": self.slurm.up}
        return {
            "metadata": {"name": "controller-0", "namespace": NAMESPACE, "uid": "controller", "labels": labels},
            "spec": {"containers": [{"name": "slurmctld"}], "volumes": []},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": str(self.slurm.up)}],
                "containerStatuses": [running],
            },
        }


def _weight(ordinal: int) -> int:
    return (ordinal + 1).bit_length()
