"""Freeing all nodes of node sets before they are deleted, also where there is no controller to ask any more."""

from collections.abc import Collection, Mapping
from typing import Any

from soperator_pulumi.errors import DrainError, KubernetesError
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_POD, CONTROLLER_STATEFUL_SET
from soperator_pulumi.operations.kube import Kube, pods_path, stateful_sets_path
from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST, ClusterRef, controller_lost, namespace_path
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.drain_run import ANSWER_SECONDS
from soperator_pulumi.operations.nodes.draining import Draining, slurm_of
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet, find_node_sets
from soperator_pulumi.operations.pods import Pod
from soperator_pulumi.operations.progress import Clock, Say, until
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress

LOOKS = 10
"""How often nodes that have come meanwhile are freed as well, before a run gives up."""

_LOST_SECONDS = 30
"""How long a controller may take to answer that the user has given up."""


class NodeSetsInputs(ClusterRef):
    """Node sets that are to be free, as resources of ours have them in their inputs and outputs."""

    policies: dict[str, dict[str, Any]]
    """`drain` of each node set, by its name."""


def drain_all(
    kube: Kube,
    place: ClusterRef,
    policies: Mapping[str, Mapping[str, Any]],
    operation: Operation,
    *,
    say: Say,
    clock: Clock,
    staying: Collection[str] = (),
) -> None:
    """Free all nodes of the live node sets at `place` but those of `staying`, in one pass.

    A node set without a recorded policy has the default one; SOPERATOR_DRAIN counts as well. Where no controller
    answers it goes on only if slurmd has never run in any of the pods, or SOPERATOR_CONTROLLER_LOST says so.

    Raises:
        DrainError: they are not free, and must not be deleted.
        KubernetesError: it is not reached, or it is another namespace than the one that is recorded.
        SpecError: SOPERATOR_DRAIN or SOPERATOR_CONTROLLER_LOST has problems.
    """
    if not _is_there(kube, place, say):
        return
    before: list[DrainRequest] = []
    for _ in range(LOOKS):
        live = {name: each for name, each in find_node_sets(kube, place).items() if name not in staying}
        leaving = [
            each.leaving(policy_of(place.cluster, policies.get(name)), 0) for name, each in live.items() if each.names()
        ]
        # Nothing to free, or nobody has scaled a set up meanwhile, and no slurmd has started.
        if not leaving or leaving == before or not (before or _answers(kube, place, live, say, clock)):
            return
        freed = Draining.at(kube, place, say, clock).free(leaving, operation)
        if freed.busy:
            raise DrainError(
                f"{place.cluster}: drained, but not free yet: {freed.busy_words()}.\n"
                "  Nothing was deleted, as drain.wait is false. Run again when their jobs have ended."
            )
        before = leaving
    raise DrainError(f"{place.cluster}: its nodes change as fast as they are drained. Run again when that is over.")


def _is_there(kube: Kube, place: ClusterRef, say: Say) -> bool:
    """Whether the namespace is there; a lost one is none only when the user says so."""
    try:
        place.uid(kube)
    except KubernetesError as error:
        if not controller_lost(place.cluster) or kube.get(namespace_path(place.namespace)) is not None:
            raise
        say(f"{place.cluster}: goes on without its namespace, as {CONTROLLER_LOST} says: {error}")
        return False
    return True


def _answers(kube: Kube, place: ClusterRef, live: Mapping[str, LiveNodeSet], say: Say, clock: Clock) -> bool:
    """Whether the controller answers; False when it does not and no job can be lost, or the user has given it up.

    Raises:
        DrainError: it does not, and jobs could be lost.
    """
    slurm, began = slurm_of(kube, place, clock), clock.now()
    never = not any(each.ever_ran for each in live.values())
    patience = 0 if never else _LOST_SECONDS if controller_lost(place.cluster) else ANSWER_SECONDS
    told = False
    for left in until(began + patience, clock, longest=5.0):
        if slurm.is_up():
            return True
        if (why := _why_gone(kube, place)) is not None:
            break
        if not told and left:
            told = True
            say(f"{place.cluster}: slurmctld does not answer, waits for it {left:.0f} s at most")
    words = f"slurmctld does not answer: {why or 'its pod is there, but it says nothing'}"
    if never:
        say(f"{place.cluster}: {words}. slurmd has never run in any pod of its node sets, so no job can be there.")
        return False
    if controller_lost(place.cluster):
        say(f"{place.cluster}: {words}. Goes on without asking for jobs, as {CONTROLLER_LOST} says.")
        return False
    running = [name for each in live.values() for name in each.names() if each.ever_ran]
    raise DrainError(
        f"{place.cluster}: nothing is deleted: {words}, and jobs may run on {compress(running)}.\n"
        f"  Mend the controller and run again. If it is gone for good, and with it all jobs that it knew, run once "
        f"with {CONTROLLER_LOST}={place.cluster}."
    )


def _why_gone(kube: Kube, place: ClusterRef) -> str | None:
    """Return why there is no use in waiting for the controller; None when it may answer soon."""
    body = kube.get(f"{pods_path(place.namespace)}/{CONTROLLER_POD}")
    if body is not None:
        pod = Pod.of(body)
        return f"its pod {pod.why_not_ready(kube)}" if pod.stuck else None
    found = kube.get(f"{stateful_sets_path(place.namespace)}/{CONTROLLER_STATEFUL_SET}") or {}
    return None if found.get("spec", {}).get("replicas") else "there is no controller"
