"""The API server of a cluster with workers: StatefulSets and pods as the model has them, all else as it was written.

What it leaves out: stale lists, as an API server's own reads are consistent.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.kube.verbs import Json
from tests.fakes.objects import NAMESPACE, NAMESPACE_PATH, PODS, SELECTOR, STATEFUL_SETS, Objects, labels_of
from tests.fakes.pods import a_pod
from tests.fakes.workers import OWNER, Pod, Set, Workers

OWNER_LABEL = "soperator-pulumi/owner"
IDENTITY = "soperator-pulumi/identity"
POLICY = "soperator-pulumi/drain"


@dataclass(eq=False)
class Kubernetes(Objects, Workers):
    """The namespace of a cluster, with its controller and its workers."""

    controller: bool = True
    """True while slurmctld's pod is there."""

    def __post_init__(self) -> None:
        self.namespace_uid = "uid-0"

    @property
    def namespace_uid(self) -> str | None:
        """None if there is no namespace, and so nothing in it."""
        found = self.objects.get(NAMESPACE_PATH)
        return found["metadata"]["uid"] if found else None

    @namespace_uid.setter
    def namespace_uid(self, uid: str | None) -> None:
        if uid is None:
            self.objects.clear()
        else:
            self.objects[NAMESPACE_PATH] = {"metadata": {"name": NAMESPACE, "uid": uid}}

    def collection(self, path: str) -> Mapping[str, Json]:
        if self.namespace_uid is None:
            return {}
        if path == PODS:
            controller = {"controller-0": self._controller_pod()} if self.controller else {}
            return {**{name: _pod(pod) for name, pod in self.pods.items()}, **controller}
        if path == STATEFUL_SETS:
            controller = {"controller": _CONTROLLER} if self.controller else {}
            return {**{name: self._set(value) for name, value in self.sets.items()}, **controller}
        return super().collection(path)

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        where, _, name = path.rpartition("/")
        pod = self.pods.get(name) if where == PODS else None
        if pod and pod.going_since is None:
            self.on_leave([pod])
            self.tell_to_go([pod])
        super().delete(path, dependents_first=dependents_first)

    def _put(self, path: str, body: Json) -> Json:
        where, _, name = path.rpartition("/")
        assert where != PODS, path
        if where != STATEFUL_SETS:
            return super()._put(path, body)
        owner, annotations = self.sets[name], body["metadata"]["annotations"]
        owner.annotations = {key: text for key, text in annotations.items() if key not in {IDENTITY, POLICY}}
        assert self._set(owner) == body, "runs change only annotations of a StatefulSet"
        return body

    def _set(self, owner: Set) -> Json:
        own = [pod for pod in self.pods.values() if pod.node_set == owner.name]
        return {
            "metadata": {
                "name": owner.name,
                "namespace": NAMESPACE,
                "uid": owner.uid,
                "generation": owner.generation,
                "labels": {**labels_of("worker", owner.name), OWNER_LABEL: OWNER},
                "annotations": {IDENTITY: owner.identity, POLICY: owner.policy, **owner.annotations},
            },
            "spec": {
                "replicas": owner.replicas,
                "updateStrategy": {"type": "OnDelete"},
                "template": template_of(owner.template),
            },
            "status": {
                "observedGeneration": owner.observed,
                "updateRevision": owner.revision,
                "replicas": len(own),
                "readyReplicas": sum(pod.ready for pod in own),
            },
        }

    def _controller_pod(self) -> Json:
        return a_pod("controller-0", "controller", "slurmctld", ready=self.slurm.up, uid="controller")


_CONTROLLER: Json = {"metadata": {"name": "controller", "labels": SELECTOR}, "spec": {"replicas": 1}}


def template_of(name: str) -> Json:
    """Return a pod template that differs from that of another name, with a default of Kubernetes."""
    return {"metadata": {"annotations": {"template": name}}, "spec": {"dnsPolicy": "ClusterFirst"}}


def _pod(pod: Pod) -> Json:
    before = bool(pod.restarts)
    state = ("restarted" if before else "running") if pod.slurmd else ("crashed" if before else "creating")
    body = a_pod(
        pod.name,
        "worker",
        "slurmd",
        state if pod.schedulable else "unschedulable",
        ready=pod.ready,
        node_set=pod.node_set,
        uid=pod.uid,
        ownerReferences=[{"kind": "StatefulSet", "name": pod.node_set}],
        **({} if pod.going_since is None else {"deletionTimestamp": "2026-11-21T00:00:00Z"}),
    )
    body["metadata"]["labels"]["controller-revision-hash"] = pod.revision
    for status in body["status"]["containerStatuses"]:
        status |= {"restartCount": pod.restarts, "started": pod.ready}
    return body
