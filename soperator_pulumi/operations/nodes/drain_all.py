"""Drain of all nodes of node sets before they are deleted, even if no controller can be asked any more."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from soperator_pulumi.errors import DrainError, KubernetesError, SlurmError, TransportError
from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Kube, pods_path, stateful_sets_path
from soperator_pulumi.operations.configuration.slurmctld import CONTROLLER_POD, CONTROLLER_STATEFUL_SET
from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST, ClusterRef, controller_lost, namespace_path
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.drain_run import ANSWER_SECONDS
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.live_node_set import LiveNodeSet, find_node_sets
from soperator_pulumi.operations.progress import Clock, Report, until
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress

LOOKS = 10
"""Rounds in which newly arrived nodes are drained as well, before a run gives up."""

_LOST_SECONDS = 30
"""Time for an answer from a controller that the user has declared lost, in seconds."""


def drain_all(
    kube: Kube,
    ref: ClusterRef,
    policies: Mapping[str, Mapping[str, Any]],
    operation: Operation,
    *,
    report: Report,
    clock: Clock,
    staying: Collection[str] = (),
) -> None:
    """Drain all nodes of the live node sets at `ref`, except those of `staying`, and wait until they hold no job.

    A node set without a recorded policy gets the default policy; SOPERATOR_DRAIN applies, too. If no controller
    answers, continue only if slurmd has never run in any of the pods, or SOPERATOR_CONTROLLER_LOST names the cluster.

    Raises:
        DrainError: the nodes are not free, and must not be deleted.
        KubernetesError: Kubernetes cannot be reached, or the namespace is not the recorded one.
        SpecError: SOPERATOR_DRAIN or SOPERATOR_CONTROLLER_LOST has problems.
    """
    context = DrainContext.at(kube, ref, report, clock)
    if not _is_there(kube, ref, context):
        return
    with context.alone():
        before: list[DrainRequest] = []
        for _ in range(LOOKS):
            live = {name: node_set for name, node_set in find_node_sets(kube, ref).items() if name not in staying}
            leaving = requests_for_all(live, policies, ref.cluster)
            # Nothing to drain, or since then no set was scaled up and no slurmd has started.
            settled = len(leaving) == len(before) and all(map(DrainRequest.as_free_as, leaving, before))
            if settled or not (before or _answers(kube, ref, live, context)):
                return
            freed = Draining(context).free(leaving, operation)
            if freed.busy:
                raise DrainError(
                    f"{ref.cluster}: drained, but not free yet: {freed.busy_words()}.\n"
                    "  Nothing was deleted, as drain.wait is false. Run again when their jobs have ended."
                )
            before = leaving
    raise DrainError(
        f"{ref.cluster}: its nodes change as fast as they are drained. Run again when they no longer change."
    )


def preview_drain_all(
    kube: Kube,
    ref: ClusterRef,
    policies: Mapping[str, Mapping[str, Any]],
    operation: Operation,
    *,
    report: Report,
    clock: Clock,
) -> list[str]:
    """Return what `drain_all` would do now, in lines: nodes, their jobs, and when these end. It only reads.

    Raises:
        KubernetesError: Kubernetes cannot be reached, or the namespace is not the recorded one.
        SpecError: SOPERATOR_DRAIN has problems.
    """
    ref.uid(kube)
    back = operation is Operation.REPLACEMENT
    leaving = requests_for_all(find_node_sets(kube, ref), policies, ref.cluster, come_back=back)
    return previewed(DrainContext.at(kube, ref, report, clock), leaving, operation)


def requests_for_all(
    live: Mapping[str, LiveNodeSet],
    policies: Mapping[str, Mapping[str, Any]],
    cluster: str,
    *,
    come_back: bool = False,
) -> list[DrainRequest]:
    """Return the requests to drain all nodes of these node sets; a set without a policy gets the default policy.

    Raises:
        SpecError: SOPERATOR_DRAIN has problems.
    """
    chosen = {name: policy_of(cluster, policies.get(name)) for name, node_set in live.items() if node_set.names()}
    return [
        live[name].recreated(names) if come_back else live[name].leaving(names, 0) for name, names in chosen.items()
    ]


def previewed(context: DrainContext, leaving: Sequence[DrainRequest], operation: Operation) -> list[str]:
    """Return the lines of a drain's preview, without jobs if slurmctld does not answer.

    Raises:
        KubernetesError: the policies of other node sets cannot be read.
    """
    try:
        return Draining(context).preview(leaving, operation)
    except (SlurmError, TransportError) as error:
        nodes = compress([name for node_set in leaving for name in node_set.names])
        return [f"{context.cluster}: {nodes} will be drained; their jobs are not known: {error}"]


def _is_there(kube: Kube, ref: ClusterRef, context: DrainContext) -> bool:
    """Return True if the namespace exists; a missing one counts as deleted only if the user has declared it lost."""
    try:
        ref.uid(kube)
    except KubernetesError as error:
        if not controller_lost(ref.cluster) or kube.get(namespace_path(ref.namespace)) is not None:
            raise
        context.report(f"continues without its namespace because of {CONTROLLER_LOST}: {error}")
        return False
    return True


def _answers(kube: Kube, ref: ClusterRef, live: Mapping[str, LiveNodeSet], context: DrainContext) -> bool:
    """Return True if the controller answers; False if it does not, but no job can be lost or the user has given it up.

    Raises:
        DrainError: the controller does not answer, and jobs could be lost.
    """
    clock = context.clock
    never = not any(node_set.ever_ran for node_set in live.values())
    patience = 0 if never else _LOST_SECONDS if controller_lost(ref.cluster) else ANSWER_SECONDS
    reported = False
    for left in until(clock.now() + patience, clock, longest=5.0):
        context.keep_alone()
        if context.slurm.is_up():
            return True
        if (why := _why_gone(kube, ref)) is not None:
            break
        if not reported and left:
            reported = True
            context.report(f"slurmctld does not answer, waits for it {left:.0f} s at most")
    words = f"slurmctld does not answer: {why or 'its pod exists, but slurmctld in it does not answer'}"
    if never:
        context.report(f"{words}. slurmd has never run in any pod of its node sets, so no job can be there.")
        return False
    if controller_lost(ref.cluster):
        context.report(f"{words}. Continues without asking for jobs because of {CONTROLLER_LOST}.")
        return False
    running = [name for node_set in live.values() for name in node_set.names() if node_set.ever_ran]
    raise DrainError(
        f"{ref.cluster}: nothing is deleted: {words}, and jobs may run on {compress(running)}.\n"
        f"  Fix the controller and run again. If it is lost for good, with all jobs that it knew, run once "
        f"with {CONTROLLER_LOST}={ref.cluster}."
    )


def _why_gone(kube: Kube, ref: ClusterRef) -> str | None:
    """Return why it is useless to wait for the controller; None if it may answer soon."""
    body = kube.get(f"{pods_path(ref.namespace)}/{CONTROLLER_POD}")
    if body is not None:
        pod = Pod.of(body)
        return f"its pod {pod.why_not_ready(kube)}" if pod.stuck else None
    found = kube.get(f"{stateful_sets_path(ref.namespace)}/{CONTROLLER_STATEFUL_SET}") or {}
    return None if found.get("spec", {}).get("replicas") else "there is no controller"
