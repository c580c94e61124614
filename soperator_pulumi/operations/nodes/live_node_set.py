"""A node set as Kubernetes has it at one time: its StatefulSet and its pods."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Json, Kube, stateful_sets_path
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, expand, in_order
from soperator_pulumi.spec.drain import DrainSpec

WORKER_CONTAINER = "slurmd"

PROMPT_SECONDS = 60
"""Time for a step of a start that should take seconds: the controller creates a pod, or a running slurmd registers. A
step that takes longer was refused or fails, for example by a quota or a wrong munge key, and does not delay a drain."""

NODE_SET_LABEL = "soperator-pulumi/node-set"
"""Label of a worker's StatefulSet and pods: the node set's name."""

OWNER_LABEL = "soperator-pulumi/owner"
"""Label with the stack and component that own an object."""

IDENTITY_ANNOTATION = "soperator-pulumi/identity"
"""Annotation of a worker StatefulSet whose text changes if Pulumi would replace it, and with it all its pods."""

POLICY_ANNOTATION = "soperator-pulumi/drain"
"""Annotation of a worker StatefulSet with the node set's `drain` as JSON, for jobs on nodes of several node sets."""

TAKEN_ANNOTATION = "soperator-pulumi/taken"
"""Annotation of a worker StatefulSet with the nodes that the rolling update to its newest template took out of service,
as JSON, for the runs that continue the update."""


@dataclass(frozen=True)
class LiveNodeSet:
    """A node set as it is now. Its pods are Slurm nodes of the same name: `<name>-<ordinal>`."""

    name: str
    stateful_set: Json | None = None
    """The StatefulSet; None if there is none."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """The pods, by name."""

    @classmethod
    def read(cls, kube: Kube, place: ClusterRef, name: str) -> "LiveNodeSet":
        """Return a node set as it is now; `place.selector` finds its pods. Takes two calls.

        Raises:
            KubernetesError: the node set cannot be read.
        """
        found = kube.get(f"{stateful_sets_path(place.namespace)}/{name}")
        return cls(name, found, {pod.name: pod for pod in find_pods(kube, place.namespace, place.selector)})

    @property
    def replicas(self) -> int:
        """Number of pods that Kubernetes maintains now: 0 once the StatefulSet is being deleted."""
        found = self.stateful_set or {}
        if not found or "deletionTimestamp" in found["metadata"]:
            return 0
        return int(found.get("spec", {}).get("replicas", 1))

    @property
    def identity(self) -> str:
        """Text on the StatefulSet that changes if Pulumi would replace it; empty if there is none."""
        annotations = (self.stateful_set or {}).get("metadata", {}).get("annotations") or {}
        return str(annotations.get(IDENTITY_ANNOTATION, ""))

    @property
    def newest_revision(self) -> str:
        """Revision of the newest template, as in the pods' label; empty until Kubernetes has created it."""
        return str((self.stateful_set or {}).get("status", {}).get("updateRevision", ""))

    @property
    def taken(self) -> frozenset[str]:
        """Nodes that the rolling update to the newest template took out of service, by `taken_annotation`."""
        annotations = (self.stateful_set or {}).get("metadata", {}).get("annotations") or {}
        try:
            found = json.loads(annotations.get(TAKEN_ANNOTATION, "{}"))
            return frozenset(expand(found["nodes"])) if found["revision"] == self.newest_revision else frozenset()
        except (KeyError, TypeError, ValueError):  # there is none, or it was edited by hand
            return frozenset()

    def taken_annotation(self, names: Collection[str]) -> Json:
        """Return the change of the StatefulSet's metadata after which `taken` has these nodes."""
        text = json.dumps({"revision": self.newest_revision, "nodes": compress(in_order(names))}) if names else None
        return {"metadata": {"annotations": {TAKEN_ANNOTATION: text}}}

    def names(self, first: int = 0) -> tuple[str, ...]:
        """Return the nodes from this ordinal on that have a pod or may get one, by ordinal.

        Pods that Kubernetes is already removing for good are left out.
        """
        kept = range(first, self.replicas)
        found = (self.ordinal(pod.name) for pod in self.pods.values() if not pod.going)
        ordinals = {*kept, *(ordinal for ordinal in found if ordinal is not None and ordinal >= first)}
        return tuple(f"{self.name}-{ordinal}" for ordinal in sorted(ordinals))

    def leaving(self, policy: DrainSpec, after: int) -> DrainRequest:
        """Return the request to drain the nodes that leave if `after` nodes stay."""
        names = self.names(after)
        return DrainRequest(
            node_set=self.name,
            names=names,
            staying=tuple(f"{self.name}-{ordinal}" for ordinal in range(after)),
            policy=policy,
            before=max(self.replicas, after + len(names)),
            after=after,
            never_started=self.without_slurmd(names),
            starting=self.starting(names),
        )

    def recreated(self, policy: DrainSpec) -> DrainRequest:
        """Return the request to drain all nodes, which come back under the same names."""
        names = self.names()
        return DrainRequest(
            node_set=self.name,
            names=names,
            staying=(),
            policy=policy,
            before=len(names),
            after=len(names),
            never_started=self.without_slurmd(names),
            starting=self.starting(names),
        )

    @property
    def ever_ran(self) -> bool:
        """Return True if slurmd runs or has run in any pod, so that a job could be there."""
        return any(pod.runs(WORKER_CONTAINER) or pod.crashed(WORKER_CONTAINER) for pod in self.pods.values())

    def without_slurmd(self, names: Iterable[str], *, waited_seconds: float = 0) -> frozenset[str]:
        """Return the nodes where slurmd neither runs nor starts: they hold no job, unless slurmctld knows the node.

        Args:
            names: The nodes.
            waited_seconds: Time for which the nodes have been waited for: see `PROMPT_SECONDS`.
        """
        starting = self.starting(names, waited_seconds=waited_seconds)
        return frozenset(name for name in names if name not in starting and not self._has_slurmd(name))

    def with_starts(self, leaving: DrainRequest, waited_seconds: float) -> DrainRequest:
        """Return a request with the starting pods as they are now, after this wait."""
        given_up = self.without_slurmd(leaving.starting, waited_seconds=waited_seconds)
        return replace(leaving, never_started=leaving.never_started | given_up, starting=leaving.starting - given_up)

    def starting(self, names: Iterable[str], *, waited_seconds: float = 0) -> frozenset[str]:
        """Return the nodes where slurmd is about to start or register: a job may soon be there.

        Args:
            names: The nodes.
            waited_seconds: Time for which the nodes have been waited for: see `PROMPT_SECONDS`.
        """
        patient = waited_seconds < PROMPT_SECONDS
        return frozenset(name for name in names if self._starts(name, patient=patient))

    def _starts(self, name: str, *, patient: bool) -> bool:
        pod, ordinal = self.pods.get(name), self.ordinal(name)
        if pod is None:
            return patient and ordinal is not None and ordinal < self.replicas
        if pod.runs(WORKER_CONTAINER):
            return patient and not pod.going and not pod.answered(WORKER_CONTAINER)
        return pod.starting

    def _has_slurmd(self, name: str) -> bool:
        pod = self.pods.get(name)
        return pod is not None and pod.runs(WORKER_CONTAINER) and pod.answered(WORKER_CONTAINER)

    def ordinal(self, name: str) -> int | None:
        """Return the ordinal in the name of a pod or node; None if the name is not of this node set."""
        found = re.fullmatch(rf"{re.escape(self.name)}-(0|[1-9]\d*)", name)
        return int(found[1]) if found else None


def find_node_sets(kube: Kube, place: ClusterRef) -> dict[str, LiveNodeSet]:
    """Return all node sets of a cluster that have a StatefulSet or pods, by name. Always takes two calls.

    Raises:
        KubernetesError: the node sets cannot be read.
    """
    owned = {**place.selector, OWNER_LABEL: place.owner}
    sets = {found["metadata"]["name"]: found for found in kube.find(stateful_sets_path(place.namespace), owned)}
    pods: dict[str, dict[str, Pod]] = {}
    for pod in find_pods(kube, place.namespace, place.selector):
        pods.setdefault(str(pod.body["metadata"].get("labels", {}).get(NODE_SET_LABEL, "")), {})[pod.name] = pod
    names = sorted({*sets, *pods} - {""})
    return {name: LiveNodeSet(name, sets.get(name), pods.get(name, {})) for name in names}


def find_policies(kube: Kube, place: ClusterRef) -> dict[str, dict[str, Any]]:
    """Return the drain policies of all node sets of the cluster at `place`, by name, as JSON. Takes one call.

    Raises:
        KubernetesError: the policies cannot be read.
    """
    every = {key: value for key, value in place.selector.items() if key != NODE_SET_LABEL}
    found = kube.find(stateful_sets_path(place.namespace), {**every, OWNER_LABEL: place.owner})
    return {claim["metadata"]["name"]: _policy(claim) for claim in found}


def _policy(stateful_set: Json) -> dict[str, Any]:
    """Return the policy on a StatefulSet; empty, which means the default policy, if it has none."""
    text = (stateful_set["metadata"].get("annotations") or {}).get(POLICY_ANNOTATION, "")
    try:
        found = json.loads(text)
    except ValueError:  # edited by hand
        return {}
    return found if isinstance(found, dict) else {}
