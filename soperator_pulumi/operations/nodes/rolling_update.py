"""Rolling update of a node set whose template has changed.

At most `max_unavailable` nodes are out of service at any time. A drained node is recreated as soon as it holds no job,
and the next one is drained as soon as a recreated one has joined and is undrained.

A run can be killed at any point, and the next one continues: Kubernetes knows which pods are old, the drains name their
owner, and an annotation of the StatefulSet names the nodes that the update has taken out of service. So a template that
doesn't work takes no further nodes, however often it is tried.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from soperator_pulumi.errors import (
    AnotherPlannerError,
    DrainError,
    KubernetesError,
    NotReadyError,
    SlurmError,
    TransportError,
)
from soperator_pulumi.kube.verbs import stateful_sets_path
from soperator_pulumi.operations.nodes.drain_run import ANSWER_SECONDS
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.held_nodes import HeldNodes
from soperator_pulumi.operations.nodes.live_node_set import WORKER_CONTAINER
from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.registration import NodeSetStatus, Registration
from soperator_pulumi.operations.nodes.rolling_update_text import counts, order, progress, to_go_on
from soperator_pulumi.operations.progress import report_pause_seconds, unless_cancelled
from soperator_pulumi.slurm.drain.formatting import span
from soperator_pulumi.slurm.drain.lowered_sizes import held_lines
from soperator_pulumi.slurm.drain.plan import Plan
from soperator_pulumi.slurm.drain.plan_text import time_left
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Job, NodeSize, Snapshot
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.types.int_or_percent import Share

_PODS_SECONDS = 60.0
"""Time between two looks at the pods while only jobs are waited for, which may take days."""

_REPORT_SECONDS = 10.0
_EXPLAINED_SECONDS = 30.0
"""Time after which a progress line explains why a recreated node has not joined yet."""


@dataclass(frozen=True)
class RollingUpdate:
    """Updates the pods of one node set."""

    registration: Registration
    draining: Draining
    policy: DrainSpec
    max_unavailable: Share
    timeout_seconds: float
    """Time for a recreated node to join after its old pod is gone, in seconds."""
    tolerated: int = 0
    """Number of nodes with new pods that may be missing without stopping the update."""
    idle_seconds: float = 0
    """Time in which only idle nodes are drained, in seconds."""
    sizes: Mapping[str, NodeSize] = field(default_factory=dict)
    """Size of a node for jobs after the update, by node set of the cluster. Default: unknown, and no job that waits for
    a larger node is named."""

    def outdated(self, status: NodeSetStatus) -> tuple[str, ...]:
        """Return the nodes to recreate: those of an older template that are not about to leave."""
        return self.recreation(status).outdated

    @property
    def held(self) -> HeldNodes:
        """The nodes that drains of this stack hold until they have joined."""
        return HeldNodes(self.registration, self.draining)

    def preview(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what the update of these nodes will do, in lines: their jobs, and the order of the nodes.

        Args:
            status: The node set.
            names: Nodes to be recreated.
        """
        try:
            lines = self.preview_nodes(status, names)
            snapshot = self.registration.slurm.snapshot(reservations=False)
        except (SlurmError, TransportError) as error:
            node_set = self.registration.node_set
            return [f"{node_set}: {compress(names)} will be recreated; their jobs are not known: {error}"]
        recreation = self.recreation(replace(status, nodes=snapshot.nodes), snapshot.jobs)
        idle = f"Nodes with jobs are drained after {span(self.idle_seconds)} (rolling_update.idle_wait)."
        held = held_lines(self.registration.node_set, names, self.sizes, snapshot)
        return [*lines, *held, order(recreation, names), *([idle] if self.policy.wait and self.idle_seconds else [])]

    def preview_nodes(self, status: NodeSetStatus, names: Sequence[str]) -> list[str]:
        """Return what the update of these nodes will drain, in lines: the nodes and their jobs.

        Raises:
            SlurmError: slurmctld gives an unexpected answer.
            TransportError: slurmctld cannot be reached.
        """
        return self.draining.preview([self.leaving(status, names)], Operation.ROLLING_UPDATE)

    def leaving(self, status: NodeSetStatus, names: Sequence[str]) -> DrainRequest:
        """Return the request to drain these nodes, which come back."""
        return status.live.recreated(self.policy).only({*names})

    def recreation(self, status: NodeSetStatus, jobs: Sequence[Job] = ()) -> Recreation:
        """Return the node set as one whose outdated nodes are to be recreated."""
        return Recreation(status, jobs, self._owner, self.max_unavailable, self.tolerated)

    def run(self, status: NodeSetStatus) -> NodeSetStatus:
        """Recreate outdated pods, and return the node set's state afterwards.

        If the policy does not wait, nodes with jobs stay drained: a later run continues with them.

        Raises:
            DrainError: nodes did not become free in time; all are undrained.
            NotReadyError: recreated nodes do not join; the others are in service.
            KubernetesError: the pods cannot be read or deleted.
            RunCancelledError: the run was cancelled.
        """
        status = self.held.undrain(status)
        if not self.outdated(status):
            return status
        with self.draining.context.alone():
            run = _Run(self, status)
            try:
                return run.to_the_end()
            except AnotherPlannerError:  # the other one undrains the nodes
                raise
            except DrainError as error:
                self._undrain_all()
                raise DrainError(
                    f"{error}\n  The rolling update of {self.registration.node_set} stops here: {run.progress()}. The "
                    "other nodes keep their pods and stay in service. Run again to continue."
                ) from error
            except NotReadyError:
                self._undrain_all()
                raise

    def note_taken(self, status: NodeSetStatus, names: Sequence[str] = ()) -> None:
        """Record on the StatefulSet which nodes the update has taken out of service, and these, before their drain.

        Raises:
            KubernetesError: the StatefulSet cannot be changed.
        """
        live, taken = status.live, self.recreation(status).taken(names)
        if taken != live.taken:
            path = f"{stateful_sets_path(self.registration.ref.namespace)}/{live.name}"
            self.registration.kube.merge(path, live.taken_annotation(taken))

    @property
    def _owner(self) -> str:
        return self.registration.ref.owner

    def _undrain_all(self) -> None:
        """Undrain nodes that an interrupted run has left drained, and let those that join later undrain themselves."""
        try:
            status = self.registration.look()
            self.draining.undrain([*self.outdated(status), *self.held.of(status)], {Operation.ROLLING_UPDATE})
            self.held.hand_over_to_pods(status, status.missing_of(status.names))
            self.note_taken(self.registration.look())
        except (AnotherPlannerError, KubernetesError, SlurmError, TransportError) as error:
            self.registration.report(f"the next run undrains nodes that are still drained: {error}")


class _Run:
    """A rolling update in progress."""

    def __init__(self, update: RollingUpdate, status: NodeSetStatus) -> None:
        self._update = update
        self._registration = update.registration
        self._clock = update.registration.clock
        self._drain_run = update.draining.run([], Operation.ROLLING_UPDATE)
        joins = update.policy.grace.total_seconds() + update.timeout_seconds
        self._drain_run.answer_seconds = max(ANSWER_SECONDS, joins)
        self._recreation = update.recreation(status)
        """The last state."""
        self._joining: dict[str, float] = {}
        """Nodes that the run waits for, with the time at which the wait began. A node that was broken before may still
        be broken: the run waits for it only when nothing else is left to do."""
        self._began = self._clock.now()
        self._pods_read_at = -inf
        self._refused: tuple[str, float] | None = None
        """The last refusal of Kubernetes, and the time of the first one since it last answered."""
        self._reported: tuple[object, float] = (None, -inf)

    def to_the_end(self) -> NodeSetStatus:
        """Take steps until no node is outdated, and return the node set's state.

        Raises:
            DrainError: nodes did not become free in time.
            NotReadyError: recreated nodes do not join, or the StatefulSet has another size.
            KubernetesError: Kubernetes has not answered for five minutes.
        """
        for line in counts(self._recreation):
            self._registration.report(line)
        for snapshot, planned in self._drain_run.looks():
            if self._waits_for_jobs(snapshot, planned):
                self._report_progress(planned)
                continue
            try:
                if self._step(snapshot, planned):
                    break
            except KubernetesError as error:
                self._bear(error)
            else:
                self._refused = None
        return self._recreation.status

    def progress(self) -> str:
        """Return how many nodes have the new pods."""
        status = self._recreation.status
        there = {name for name, pod in status.live.pods.items() if not pod.going}
        new = (there & {*status.names}) - {*status.outdated}
        return f"{len(new)} of {len(status.names)} nodes have the new pods"

    def _waits_for_jobs(self, snapshot: Snapshot, planned: Plan) -> bool:
        """Return True if only jobs are waited for: no node is free, missing, or next, and none must join."""
        if planned.free or {*self._recreation.out_of_service} - self._drain_run.names:
            return False
        recent = self._clock.now() - self._pods_read_at < _PODS_SECONDS
        self._recreation = replace(self._recreation, jobs=snapshot.jobs, only_idle=self._only_idle())
        return recent and not self._recreation.next()

    def _only_idle(self) -> bool:
        return self._update.policy.wait and self._clock.now() - self._began < self._update.idle_seconds

    def _bear(self, error: KubernetesError) -> None:
        """Allow the next look to try again, for five minutes.

        Raises:
            KubernetesError: the time is up.
        """
        before, since = self._refused or ("", self._clock.now())
        if self._clock.now() - since >= ANSWER_SECONDS:
            raise error
        self._refused = str(error), since
        if str(error) != before:
            self._registration.report(f"tries again for {ANSWER_SECONDS} s at most: {error}")

    def _step(self, snapshot: Snapshot, planned: Plan) -> bool:
        """Undrain nodes that are back, recreate free nodes, and drain the next ones; return True at the end.

        Raises:
            NotReadyError: recreated nodes do not join, or the StatefulSet has another size.
            KubernetesError: the pods cannot be read or deleted.
        """
        status = self._registration.look_with(snapshot.nodes)
        self._pods_read_at = self._clock.now()
        self._registration.require_size(status.live)
        recreation = self._update.recreation(status, snapshot.jobs)
        self._drain_run.keep({*recreation.outdated})
        if self._update.held.of(status):
            self._update.held.undrain(status)
            self._drain_run.look_again()
            return False
        self._require_joined(status)
        draining, joining = self._drain_run.names, frozenset(self._joining)
        recreation = self._recreation = replace(
            recreation, draining=draining, joining=joining, only_idle=self._only_idle()
        )
        following = recreation.next()
        recreated = self._recreate(planned.free & draining)
        if following:
            self._update.note_taken(status, following)
            self._drain_run.add(self._update.leaving(status, following))
            self._recreation = replace(recreation, draining=self._drain_run.names)
        elif recreated:
            self._drain_run.look_again()
        elif self._is_over(planned):
            return True
        else:
            self._report_progress(planned)
        return False

    def _require_joined(self, status: NodeSetStatus) -> None:
        """Refuse to wait any longer for a recreated node; the time counts from the deletion of its pod.

        Raises:
            NotReadyError: nodes have not joined in time.
        """
        self._joining = {name: since for name, since in self._joining.items() if not status.joined(name)}
        seconds = self._update.policy.grace.total_seconds() + self._update.timeout_seconds
        late = [name for name, since in self._joining.items() if self._clock.now() - since >= seconds]
        if words := self._registration.not_joined(status, late, seconds):
            left, size = len(self._update.outdated(status)), len(status.names)
            hint = to_go_on(self._update.recreation(status))
            raise NotReadyError(
                f"{words}\nThe rolling update stops here: {left} of {size} nodes have their old pods and stay in "
                f"service. Fix the problems above and run again.{hint}"
            )

    def _recreate(self, free: frozenset[str]) -> bool:
        """Delete the pods of free nodes that are still old and still free; return True if there are any."""
        if not free:
            return False
        status = self._registration.look()  # the drain run's answer may be outdated
        recreation = self._update.recreation(status)
        recreated = {name for name in recreation.outdated if name in free and _still_free(status, name)}
        if recreated:
            self._registration.report(f"recreates {compress(in_order(recreated))}")
        taken = status.live.taken
        for name in in_order(recreated):
            unless_cancelled()
            self._update.draining.context.keep_alone()
            if name in taken and recreation.runs_slurmd(name):
                self._joining[name] = self._clock.now()
            self._registration.kube.delete(status.live.pods[name].path)
        self._drain_run.keep(self._drain_run.names - recreated)
        return bool(recreated)

    def _is_over(self, planned: Plan) -> bool:
        """Return True if nothing is left to do, or only nodes with jobs for which the policy does not wait."""
        recreation = self._recreation
        if self._joining:
            return False
        if recreation.draining:
            if not self._update.policy.wait:
                for name, waiting in planned.waiting.items():
                    words = f"{name} stays drained, and a later run recreates it: {waiting.why}"
                    self._registration.report(words)
            return not self._update.policy.wait and not planned.free & recreation.draining
        if recreation.outdated and not recreation.only_idle:  # too many are out of service, and must join first
            outdated, now = {*recreation.outdated}, self._clock.now()
            self._joining = {name: now for name in recreation.out_of_service if name not in outdated}
        return not recreation.outdated

    def _report_progress(self, planned: Plan) -> None:
        """Report progress if it has changed, or if the last line is long ago."""
        now, recreation = self._clock.now(), self._recreation
        state = (recreation.outdated, recreation.draining, recreation.joining)
        pause = report_pause_seconds(now - self._began) if state == self._reported[0] else _REPORT_SECONDS
        if now - self._reported[1] < pause:
            return
        self._reported = (state, now)
        left = time_left(self._update.policy, self._drain_run.waited_seconds(planned))
        self._registration.report(progress(recreation, planned, self._clock.wall(), left))
        slow = [name for name, since in self._joining.items() if now - since >= _EXPLAINED_SECONDS]
        for line in self._registration.reasons(recreation.status, slow):
            self._registration.show(f"  {line}")


def _still_free(status: NodeSetStatus, name: str) -> bool:
    node = status.nodes.get(name)
    if node is None:  # unknown to slurmctld: without slurmd, no job can be there
        pod = status.live.pods[name]
        return not status.trouble and not (pod.runs(WORKER_CONTAINER) and pod.answered(WORKER_CONTAINER))
    return node.drained and not node.busy_state
