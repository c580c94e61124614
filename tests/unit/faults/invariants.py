"""Invariants at every step of every trace, judged by the model's truth and not by any answer.

No one can exclude what someone else does between our last look and our act: an admin who lifts our drain, sets an own
one or scales a StatefulSet, a slurmctld that crashes and forgets its newest drain. What they did to a node after the
last true answer of that kind is excused as long as we have made no more than `ACT_CALLS` calls since: the rest of that
look, and the act. Whoever waits, or does something else in between, has to look again.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout
from soperator_pulumi.spec.types.int_or_percent import Share
from tests.fakes.kubernetes import Kubernetes
from tests.fakes.slurmctld import Job, Slurmctld
from tests.fakes.workers import OWNER, Pod

ACT_CALLS = 8

KINDS = ("nodes", "jobs", "reservations", "pods")

_OURS = re.compile(
    rf"soperator-pulumi {OWNER}: "
    r"(pod-st(op|art)|(scale-down|removal|replacement|destroy|rolling-update) [0-9a-f]{6}( \(was: .+\))?)"
    r"( : Not responding)?",
    re.DOTALL,
)


class ViolationError(AssertionError):
    """Something happened that must not."""


def ours(reason: str) -> bool:
    """Return True for a marker of ours: written for the model, so that an error in the product's shows."""
    return _OURS.fullmatch(reason) is not None


@dataclass
class Look:
    """The last true answer of one kind that reached us."""

    moment: int = -1
    calls: int = -ACT_CALLS


@dataclass
class Watch:
    """Sees every act of ours before it takes effect."""

    slurm: Slurmctld
    kubernetes: Kubernetes
    moment: int = 0
    """Counts everything that happens."""
    calls: int = 0
    """Counts the calls that we make."""
    believed: dict[str, Look] = field(default_factory=lambda: {kind: Look() for kind in KINDS})
    """The same with stale answers: that the first one of a pass is stale cannot be known, and which one that is the
    model does not see."""
    acts: int = 0
    """Counts what we change."""
    looks: dict[str, Look] = field(default_factory=lambda: {kind: Look() for kind in KINDS})
    lifted: dict[str, int] = field(default_factory=dict)
    """When someone else last ended a node's drain, or slurmctld forgot it."""
    lifted_of_others: dict[str, int] = field(default_factory=dict)
    """The same, where it was not ours."""
    imposed: dict[str, int] = field(default_factory=dict)
    """When someone else last drained a node."""
    counted_on: dict[str, int] = field(default_factory=dict)
    """When a reservation or a waiting job last came to name a node."""
    appeared: dict[str, int] = field(default_factory=dict)
    """When a node last registered, or its pod was last made."""
    made: dict[str, int] = field(default_factory=dict)
    """When its pod was last made."""
    placed: dict[int, int] = field(default_factory=dict)
    """When a job last changed by itself or by someone else."""
    policies: dict[str, Sequence[DrainSpec]] = field(default_factory=dict)
    """Policies that may be in force for a node set in this run: its program's, or those of resources' records."""
    budgets: dict[str, Share] = field(default_factory=dict)
    """Number of nodes of a node set that a rolling update may take out of service."""
    drained_at: int = 0
    """When we last drained a node."""
    pass_reason: str = ""
    """Of the last drain."""
    run_began: float = 0.0
    run_moment: int = 0
    previewing: bool = False
    belated: bool = False
    """True if a command is done now of which its caller has been told that it was lost."""
    wrong_place: bool = False
    """True if this run is connected to another cluster, or a namespace made again."""
    controller_lost: bool = False
    """True if the user has said that the controller is gone for good."""
    disturbed: set[str] = field(default_factory=set)
    """Nodes to which anything else than our own acts happened in this run, or in the preview before it."""
    drains: Counter[str] = field(default_factory=Counter)
    resumes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def begin_run(self, now: float) -> None:
        """Start counting again: a run knows nothing of the looks of another."""
        self.run_began, self.run_moment = now, self.happens()
        self.looks, self.believed = ({kind: Look() for kind in KINDS} for _ in range(2))
        self.drains, self.resumes = Counter(), Counter()

    def begin_step(self) -> None:
        """Forget what another resource's answers were: each looks for itself."""
        self.believed, self.pass_reason = {kind: Look() for kind in KINDS}, ""

    def has_seen_its_drains(self) -> bool:
        """True if a true answer has come since we last drained a node."""
        return self.looks["nodes"].moment > self.drained_at

    def happens(self) -> int:
        """Count one thing that happens."""
        self.moment += 1
        return self.moment

    def looked(self, kind: str, moment: int, *, stale: bool = False) -> None:
        """Note an answer that was made at `moment` and reaches us now."""
        self.believed[kind] = Look(moment, self.calls)
        if not stale and moment > self.looks[kind].moment:
            self.looks[kind] = self.believed[kind]

    def pods_leave(self, pods: list[Pod]) -> None:
        """Judge pods that we tell to go, or whose StatefulSet we shrink or delete."""
        self._at_the_right_place("pods are taken away")
        self.acts += len(pods)
        for pod in pods:
            record = self.slurm.nodes.get(pod.name)
            jobs = self.slurm.could_be_on(pod.name)
            if self._excused("nodes", self.lifted, pod.name) or self._excused("pods", self.made, pod.name):
                continue
            if self._excused("nodes", self.lifted_of_others, pod.name, self.believed):
                continue
            if not self._slurmctld_answers() and not (pod.ran or self.slurm.processes.get(pod.name)):
                continue  # where slurmd has never run nothing can be lost
            if self.controller_lost and not self.slurm.up:
                continue
            if jobs:
                self._violated(f"pod {pod.name} is taken away with jobs {sorted(jobs)}")
            elif record is None and pod.ran and pod.registered:
                self._violated(f"pod {pod.name} is taken away, though slurmctld does not know it")
            elif record is not None and not (record.drain or record.fail):
                self._violated(f"pod {pod.name} is taken away, though new jobs can come to it")

    def _slurmctld_answers(self) -> bool:
        return self.calls - self.looks["nodes"].calls <= ACT_CALLS

    def slurm_changes(self, verb: str, names: frozenset[str]) -> None:
        """Judge a command that is about to change something."""
        if self.belated:
            return
        self._at_the_right_place(f"{verb} {sorted(names)}")
        self.acts += len(names)
        if verb in {"cancel", "requeue"}:
            for job in sorted(map(int, names)):
                self._treats(verb, self.slurm.jobs[job])
            return
        for name in sorted(names):
            record = self.slurm.nodes[name]
            foreign = record.fail or (record.drain and not ours(record.reason))
            if foreign and not self._excused("nodes", self.imposed, name, self.believed):
                self._violated(f"{verb} of {name}, which somebody else has drained ({record.reason})")
            if verb == "drain":
                self.drained_at = self.happens()
                self.pass_reason = self.slurm.reason.partition(" (was: ")[0]
                self._within_budget(name, names)
                self.drains[name] += not record.drain
            elif verb == "resume":
                self.resumes[name] += record.drain
            else:
                self._deletes(name)

    def _within_budget(self, name: str, names: frozenset[str]) -> None:
        """A rolling update takes no more nodes out of service than it may, where no one else does as well."""
        node_set = name.rpartition("-")[0]
        owner = self.kubernetes.sets.get(node_set)
        if owner is None or ": rolling-update " not in self.slurm.reason or self.disturbed:
            return
        own = [f"{node_set}-{ordinal}" for ordinal in range(owner.replicas)]
        out = {node for node in own if node in names or not (self._in_service(node) or self._held_otherwise(node))}
        # A node that no one knew to be there when nodes were chosen costs nothing.
        known = [name for name in names if self._in_service(name) and self.appeared.get(name, -1) < self.run_moment]
        if known and len(out) > max(1, self.budgets[node_set].of(owner.replicas)):
            self._violated(f"a rolling update has {sorted(out)} out of service at a time")

    def _held_otherwise(self, name: str) -> bool:
        """True if someone else, or a scale-down that has not come to its end, keeps jobs away."""
        node = self.slurm.nodes.get(name)
        if node is None:
            return False
        return node.fail or (node.drain and (not ours(node.reason) or ": scale-down " in node.reason))

    def _in_service(self, name: str) -> bool:
        pod, node = self.kubernetes.pods.get(name), self.slurm.nodes.get(name)
        return pod is not None and pod.ready and node is not None and not (node.drain or node.fail or node.down)

    def ends_run(self) -> None:
        """Judge a run as a whole: without outside change no node goes back and forth."""
        for name in (self.drains | self.resumes).keys() - self.disturbed:
            if self.drains[name] > 1 or self.resumes[name] > 2 or self.drains[name] + self.resumes[name] > 3:
                self._violated(f"{name} was drained {self.drains[name]}, resumed {self.resumes[name]} times in one run")

    def _deletes(self, name: str) -> None:
        if name in self.kubernetes.pods and not self._excused("pods", self.appeared, name):
            self._violated(f"the record of {name} is deleted while its pod is there")
        if self.slurm.processes.get(name):
            self._violated(f"the record of {name} is deleted while jobs {self.slurm.processes[name]} are on it")
        required = [job.job_id for job in self.slurm.jobs.values() if job.state == "PENDING" and name in job.required]
        reserved = [reservation for reservation, names in self.slurm.reservations.items() if name in names]
        if required and not self._excused("jobs", self.counted_on, name, self.believed):
            self._violated(f"the record of {name} is deleted while jobs {required} wait for it")
        if reserved and not self._excused("reservations", self.counted_on, name, self.believed):
            self._violated(f"the record of {name} is deleted while {reserved} reserves it")

    def _treats(self, verb: str, job: Job) -> None:
        """Only a job on a node that is to leave, by the policy of its node set, and not before its time."""
        if self.placed.get(job.job_id, -1) > self.looks["jobs"].moment:
            return
        if any(self._excused("nodes", self.lifted, name) for name in job.nodes):
            return
        if any(self._excused("nodes", self.lifted_of_others, name, self.believed) for name in job.nodes):
            return
        drained = [
            name for name in job.nodes if (node := self.slurm.nodes.get(name)) is None or node.drain or node.fail
        ]
        if not drained:
            self._violated(f"{verb} of job {job.job_id}, which is on no node that leaves")
        # Each node set that it is on has a say, whichever of them loses nodes.
        sets = {name.rpartition("-")[0] for name in job.nodes}
        if not all(self._allowed(verb, node_set, job) for node_set in sets):
            self._violated(f"{verb} of job {job.job_id}, which not all policies of {sorted(sets)} allow")
        leaving = [name for name in drained if name in self.slurm.nodes and self._is_of_this_pass(name)]
        for node_set in {name.rpartition("-")[0] for name in leaving or drained}:
            if verb == "requeue" and all(map(_aborts_for_one, self.policies[node_set])):
                self._all_requeueable(node_set)

    def _is_of_this_pass(self, name: str) -> bool:
        return bool(self.pass_reason) and self.slurm.nodes[name].reason.startswith(self.pass_reason)

    def _all_requeueable(self, node_set: str) -> None:
        """No job is requeued where the nodes cannot become free by it, as another job there must not be.

        A job on nodes of several node sets is left out: the most patient policy has the say.
        """
        for job in self.slurm.jobs.values():
            drained = [name for name in job.nodes if name in self.slurm.nodes and self._is_of_this_pass(name)]
            stays = job.active and not (job.requeue and job.batch) and not job.completing
            known = self.placed.get(job.job_id, -1) <= self.looks["jobs"].moment
            if stays and known and drained and {name.rpartition("-")[0] for name in job.nodes} == {node_set}:
                self._violated(f"a job is requeued though job {job.job_id} on {job.nodes} cannot be")

    def _allowed(self, verb: str, node_set: str, job: Job) -> bool:
        return any(self._allows(verb, policy, job) for policy in self.policies[node_set])

    def _allows(self, verb: str, policy: DrainSpec, job: Job) -> bool:
        if self.slurm.now - self.run_began < policy.timeout.total_seconds():
            return False
        if verb == "requeue":
            return policy.on_timeout in {OnTimeout.REQUEUE, OnTimeout.CANCEL}  # the kinder of two, where sets differ
        cancelled = policy.on_timeout is OnTimeout.REQUEUE and policy.not_requeueable is NotRequeueable.CANCEL
        refused = not (job.requeue and job.batch) or job.job_id in self.slurm.requeues_refused
        return policy.on_timeout is OnTimeout.CANCEL or (cancelled and refused)

    def _excused(self, kind: str, acts: dict[str, int], name: str, looks: Mapping[str, Look] | None = None) -> bool:
        look = (looks or self.looks)[kind]
        return acts.get(name, -1) > look.moment and self.calls - look.calls <= ACT_CALLS

    def _at_the_right_place(self, what: str) -> None:
        if self.wrong_place:
            self._violated(f"{what} in a namespace that is not the one recorded")
        if self.previewing:
            self._violated(f"{what} in a preview")

    def _violated(self, what: str) -> None:
        self.violations.append(what)
        raise ViolationError(what)


def drained_by_us(slurm: Slurmctld, names: Iterable[str]) -> list[str]:
    """Return those of `names` that a drain of ours holds."""
    nodes = {name: slurm.nodes[name] for name in names if name in slurm.nodes}
    return [name for name, node in nodes.items() if node.drain and not node.fail and ours(node.reason)]


def _aborts_for_one(policy: DrainSpec) -> bool:
    return policy.on_timeout is OnTimeout.REQUEUE and policy.not_requeueable is NotRequeueable.ABORT
