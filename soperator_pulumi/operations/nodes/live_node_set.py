"""A node set as Kubernetes has it at one moment: its StatefulSet and its pods."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from soperator_pulumi.operations.kube import Json, Kube, stateful_sets_path
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.pods import Pod, find_pods
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.spec.drain import DrainSpec

WORKER_CONTAINER = "slurmd"

PROMPT_SECONDS = 60
"""Time for a step of a start that takes seconds: the controller makes a pod, or a running slurmd registers. One that
takes longer is refused or fails, by a quota or by a wrong key of munge, and does not hold up a drain."""

NODE_SET_LABEL = "soperator-pulumi/node-set"
"""Label of a worker's StatefulSet and pods: the node set's name."""

OWNER_LABEL = "soperator-pulumi/owner"
"""Label with the stack and component that an object belongs to."""

IDENTITY_ANNOTATION = "soperator-pulumi/identity"
"""On a worker StatefulSet: a text that is another one when Pulumi would replace it, and all of its pods with it."""

POLICY_ANNOTATION = "soperator-pulumi/drain"
"""On a worker StatefulSet: the node set's `drain` as JSON, for jobs that are on nodes of other node sets as well."""


@dataclass(frozen=True)
class LiveNodeSet:
    """A node set as it is now. Pod = Slurm node = `<name>-<ordinal>`."""

    name: str
    stateful_set: Json | None = None
    """The StatefulSet; None where there is none."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    """The pods, by name."""

    @classmethod
    def read(cls, kube: Kube, place: ClusterRef, name: str) -> "LiveNodeSet":
        """Look at one node set; `place.selector` finds its pods. Two calls.

        Raises:
            KubernetesError: it cannot be looked at.
        """
        found = kube.get(f"{stateful_sets_path(place.namespace)}/{name}")
        return cls(name, found, {pod.name: pod for pod in find_pods(kube, place.namespace, place.selector)})

    @property
    def replicas(self) -> int:
        """Number of pods that Kubernetes keeps now: none once the StatefulSet is being deleted."""
        found = self.stateful_set or {}
        if not found or "deletionTimestamp" in found["metadata"]:
            return 0
        return int(found.get("spec", {}).get("replicas", 1))

    @property
    def identity(self) -> str:
        """The text on the StatefulSet that is another one when it would be replaced; empty when there is none."""
        annotations = (self.stateful_set or {}).get("metadata", {}).get("annotations") or {}
        return str(annotations.get(IDENTITY_ANNOTATION, ""))

    def names(self, first: int = 0) -> tuple[str, ...]:
        """Return the nodes with this ordinal or a higher one that have a pod, or may get one, in their order.

        A pod that Kubernetes already removes for good is none.
        """
        kept = range(first, self.replicas)
        found = (self.ordinal(pod.name) for pod in self.pods.values() if not pod.going)
        ordinals = {*kept, *(each for each in found if each is not None and each >= first)}
        return tuple(f"{self.name}-{ordinal}" for ordinal in sorted(ordinals))

    def leaving(self, policy: DrainSpec, after: int) -> DrainRequest:
        """Return the nodes that leave when `after` nodes stay."""
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
        """Return all nodes: they leave, and come back under the same names."""
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
        """Return True for a pod in which slurmd runs or has run, so that a job could be there."""
        return any(pod.runs(WORKER_CONTAINER) or pod.crashed(WORKER_CONTAINER) for pod in self.pods.values())

    def without_slurmd(self, names: Iterable[str], *, waited_seconds: float = 0) -> frozenset[str]:
        """Return the nodes where no slurmd is, nor starts: no job can be there, unless slurmctld knows the node.

        Args:
            names: The nodes.
            waited_seconds: Time for which they have been awaited: see `PROMPT_SECONDS`.
        """
        starting = self.starting(names, waited_seconds=waited_seconds)
        return frozenset(name for name in names if name not in starting and not self._has_slurmd(name))

    def with_starts(self, leaving: DrainRequest, waited_seconds: float) -> DrainRequest:
        """Return a request with its starting pods as they are now, after a wait of so long."""
        given_up = self.without_slurmd(leaving.starting, waited_seconds=waited_seconds)
        return replace(leaving, never_started=leaving.never_started | given_up, starting=leaving.starting - given_up)

    def starting(self, names: Iterable[str], *, waited_seconds: float = 0) -> frozenset[str]:
        """Return the nodes where slurmd is about to start, or to register: a job may be there in a moment.

        Args:
            names: The nodes.
            waited_seconds: Time for which they have been awaited: see `PROMPT_SECONDS`.
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
        """Return the ordinal of a pod or node by its name; None when it is none of this node set."""
        found = re.fullmatch(rf"{re.escape(self.name)}-(0|[1-9]\d*)", name)
        return int(found[1]) if found else None


def find_node_sets(kube: Kube, place: ClusterRef) -> dict[str, LiveNodeSet]:
    """Return all node sets of a cluster that have a StatefulSet or pods, by name. Two calls, whatever their number.

    Raises:
        KubernetesError: they cannot be looked at.
    """
    owned = {**place.selector, OWNER_LABEL: place.owner}
    sets = {each["metadata"]["name"]: each for each in kube.find(stateful_sets_path(place.namespace), owned)}
    pods: dict[str, dict[str, Pod]] = {}
    for pod in find_pods(kube, place.namespace, place.selector):
        pods.setdefault(str(pod.body["metadata"].get("labels", {}).get(NODE_SET_LABEL, "")), {})[pod.name] = pod
    names = sorted({*sets, *pods} - {""})
    return {name: LiveNodeSet(name, sets.get(name), pods.get(name, {})) for name in names}


def find_policies(kube: Kube, place: ClusterRef) -> dict[str, dict[str, Any]]:
    """Return the drain policies of all node sets of the cluster at `place`, by name, as JSON. One call.

    Raises:
        KubernetesError: they cannot be looked at.
    """
    every = {key: value for key, value in place.selector.items() if key != NODE_SET_LABEL}
    found = kube.find(stateful_sets_path(place.namespace), {**every, OWNER_LABEL: place.owner})
    return {each["metadata"]["name"]: _policy(each) for each in found}


def _policy(stateful_set: Json) -> dict[str, Any]:
    """Return the policy that a StatefulSet carries; empty, which is the default one, where it carries none."""
    text = (stateful_set["metadata"].get("annotations") or {}).get(POLICY_ANNOTATION, "")
    try:
        found = json.loads(text)
    except ValueError:  # somebody's own text
        return {}
    return found if isinstance(found, dict) else {}
