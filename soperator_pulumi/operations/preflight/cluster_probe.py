"""Probes: pods that test something in the cluster, the namespace in which they run, and the judgement of their answers.

A probe runs in the cluster's namespace if it exists, otherwise in a temporary one. Every object has a label with the
cluster's owner and an annotation with the process that made it. By these two, the next run finds and removes objects of
processes that have ended.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Json, Kube, pods_path
from soperator_pulumi.operations.planner_process import has_ended, me
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis
from soperator_pulumi.operations.progress import Clock, Report, saying, until

LABEL = "soperator-pulumi/preflight"
MADE_BY = "soperator-pulumi/made-by"

LIFE_SECONDS = 900
"""Longest life of a probe's pod. An older one is left over from a run on another machine."""

NAMESPACES = "/api/v1/namespaces"

_COLLECTIONS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
}
"""Collections of probe objects, in the order of their removal."""

_REMOVAL_SECONDS = 120
_REPORT_SECONDS = 5.0


@dataclass
class ProbePlace:
    """A namespace in which probes run, and from which all their objects are removed at the end."""

    kube: Kube
    owner: str
    """Owner of the cluster, on its objects."""
    report: Report
    clock: Clock
    namespace: str = ""
    """Namespace of the probes, once it is open."""
    run: str = field(default_factory=lambda: secrets.token_hex(3))
    """Part of every name of this run."""

    @contextmanager
    def opened(self, namespace: str, *, exists: bool) -> Iterator[str]:
        """Remove what killed runs left, yield the namespace of the probes, and remove everything at the end.

        Args:
            namespace: Namespace of the cluster.
            exists: True if it exists. Without it the probes get one of their own.

        Raises:
            KubernetesError: the namespace cannot be made.
        """
        self._remove_abandoned(namespace if exists else "")
        self.namespace = namespace if exists else f"soperator-preflight-{self.run}"
        try:
            if not exists:
                self._make_namespace()
            yield self.namespace
        finally:
            self._remove_own(exists=exists)

    def name(self, name: str) -> str:
        """Return the name of an object of this run."""
        return f"preflight-{self.run}-{name}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all objects of this run."""
        return {LABEL: label_of(self.owner), f"{LABEL}-run": self.run}

    def put(self, body: Json) -> None:
        """Create an object of a probe, with the marks of this run.

        Raises:
            KubernetesError: the server refuses it.
        """
        path = _COLLECTIONS[body["kind"]].format(self.namespace)
        self.kube.create(path, self._marked(body, namespace=self.namespace))

    def pods(self) -> dict[str, Pod]:
        """Return the pods of this run by name."""
        return {pod.name: pod for pod in find_pods(self.kube, self.namespace, self.labels)}

    def wait(self, awaited: Sequence[str], seconds: float) -> dict[str, Pod]:
        """Return all pods once the named ones have ended or cannot end, after `seconds` at the latest."""
        reported_at = self.clock.now()
        found: dict[str, Pod] = {}
        for left in until(self.clock.now() + seconds, self.clock):
            found = self.pods()
            open_ = [name for name in awaited if name in found and not is_over(found[name])]
            if not open_ or not left:
                break
            if self.clock.now() - reported_at >= _REPORT_SECONDS:
                reported_at = self.clock.now()
                self.report(
                    f"{len(awaited) - len(open_)} of {len(awaited)} probes have ended; waits for "
                    f"{', '.join(open_)}, {left:.0f} s at most"
                )
        return found

    def _make_namespace(self) -> None:
        labels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}
        self.report(f"makes the namespace {self.namespace} for the probes")
        self.kube.create(NAMESPACES, self._marked(body))
        account = f"{NAMESPACES}/{self.namespace}/serviceaccounts/default"
        say = saying(self.report, f"waits for the ServiceAccount of {self.namespace}")
        for left in until(self.clock.now() + 30, self.clock, say=say):  # pods are refused until it is there
            if self.kube.get(account) is not None or not left:
                return

    def _marked(self, body: Json, **more: str) -> Json:
        metadata = body["metadata"]
        marked = {
            **metadata,
            **more,
            "labels": {**(metadata.get("labels") or {}), **self.labels},
            "annotations": {**(metadata.get("annotations") or {}), MADE_BY: me()},
        }
        return {**body, "metadata": marked}

    def _remove_abandoned(self, namespace: str) -> None:
        """Remove objects of ended runs. Without the right to list them, there are none."""
        labels = {LABEL: label_of(self.owner)}
        with suppress(KubernetesError):
            for entry in self.kube.find(NAMESPACES, labels):
                if self._is_abandoned(entry):
                    self.report(f"removes the namespace {entry['metadata']['name']} of a run that was killed")
                    self.kube.delete(f"{NAMESPACES}/{entry['metadata']['name']}")
        if namespace:
            self._remove(namespace, labels, abandoned=True)

    def _is_abandoned(self, body: Json) -> bool:
        maker = (body["metadata"].get("annotations") or {}).get(MADE_BY, "")
        made = datetime.fromisoformat(body["metadata"]["creationTimestamp"])
        age_seconds = (datetime.fromtimestamp(self.clock.wall(), UTC) - made).total_seconds()
        return has_ended(maker) or age_seconds > LIFE_SECONDS

    def _remove_own(self, *, exists: bool) -> None:
        if exists:
            self._remove(self.namespace, self.labels, abandoned=False)
            return
        path = f"{NAMESPACES}/{self.namespace}"
        self._remove(self.namespace, self.labels, abandoned=False, pods_alone=True)
        self.kube.delete(path)
        say = saying(self.report, f"waits until the namespace {self.namespace} is deleted")
        for left in until(self.clock.now() + _REMOVAL_SECONDS, self.clock, say=say):
            if self.kube.get(path) is None:
                return
            if not left:
                self.report(f"the namespace {self.namespace} is still being deleted: Kubernetes finishes that")

    def _remove(self, namespace: str, labels: Mapping[str, str], *, abandoned: bool, pods_alone: bool = False) -> None:
        for kind, collection in _COLLECTIONS.items():
            if pods_alone and kind != "Pod":
                break
            path = collection.format(namespace)
            with suppress(KubernetesError):
                for body in self.kube.find(path, labels):
                    if not abandoned or self._is_abandoned(body):
                        self.kube.delete(f"{path}/{body['metadata']['name']}")
        say = saying(self.report, f"waits until the probes in {namespace} are deleted")
        for left in until(self.clock.now() + _REMOVAL_SECONDS, self.clock, say=say):
            if not left or abandoned or not self.kube.find(pods_path(namespace), labels):
                return


def is_over(pod: Pod) -> bool:
    """Return True if a probe's pod has ended, or has a container that never starts."""
    return pod.ended or pod.cannot_start


def label_of(owner: str) -> str:
    """Return the label's value of an owner."""
    if len(owner) <= 63 and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", owner):  # a label's form
        return owner
    return hashlib.sha256(owner.encode()).hexdigest()[:32]


Judge = Callable[[Mapping[str, Pod]], Iterable[Diagnosis]]
"""Function that judges the final states of pods, by name."""


@dataclass(frozen=True)
class ClusterProbe:
    """Objects to create, pods to wait for, and the judgement of their results."""

    check: str
    place: str
    """Place of a finding about the probe itself."""
    objects: Sequence[Json]
    awaited: Sequence[str]
    """Names of the pods that end by themselves."""
    judge: Judge


def probe_pod(name: str, containers: Sequence[Json], like: Json, machine: str | None = None) -> Json:
    """Return a pod of a probe.

    It requests nothing, so that even a machine full of workers accepts it, and it tolerates every taint: another check
    judges which machines fit.

    Args:
        name: Name of the pod.
        containers: Containers of the pod.
        like: Specification of the planned pods, for pull secrets and the runtime class.
        machine: Machine that it must run on; None for any that the scheduler chooses.
    """
    kept = {key: like[key] for key in ("imagePullSecrets", "runtimeClassName") if like.get(key)}
    rule = {"key": "metadata.name", "operator": "In", "values": [machine]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [rule]}]}}
    spec = {
        **kept,
        "containers": [*containers],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LIFE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"operator": "Exists"}],
        **({"affinity": {"nodeAffinity": terms}} if machine else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def harmless() -> Json:
    """Return the security context of a probe that needs no rights."""
    return {
        "runAsUser": 65534,
        "runAsGroup": 65534,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def answer_of(pod: Pod | None) -> str | None:
    """Return the answer that a pod's program wrote as its termination message; None if there is none."""
    for status in (pod.body.get("status", {}).get("containerStatuses") or []) if pod else []:
        ended = status.get("state", {}).get("terminated") or {}
        if ended.get("message"):
            return str(ended["message"])
    return None


def json_answer_of(pod: Pod | None) -> Json | None:
    """Return the answer of a pod's program that writes a JSON object; None if there is none, or it is cut off."""
    text = answer_of(pod)
    try:
        return None if text is None else dict(json.loads(text))
    except ValueError:
        return None
