"""What must hold at every step of every trace, judged by the model's truth and not by any answer.

Nobody can exclude what somebody else does between our last look and our act: an admin who lifts our drain or sets an
own one, a slurmctld that crashes and forgets its newest drain, a slurmd that registers for the first time. What they
did to a node after the last true answer of that kind is excused for `ACT_SECONDS` from that answer on, and no longer.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from soperator_pulumi.spec import DrainSpec, NotRequeueable, OnTimeout
from tests.unit.faults.kubernetes import OWNER, Kubernetes, Pod
from tests.unit.faults.slurmctld import Job, Slurmctld

ACT_SECONDS = 30.0

KINDS = ("nodes", "jobs", "reservations", "pods")

_OURS = re.compile(
    rf"soperator-pulumi {OWNER}: "
    r"(pod-stop|(scale-down|removal|replacement|destroy|rolling-update) [0-9a-f]{6}( \(was: .+\))?)",
    re.DOTALL,
)


class ViolationError(AssertionError):
    """Something happened that must not."""


def ours(reason: str) -> bool:
    """Whether a reason is exactly a marker of ours: written for the model, so that an error in the product's shows."""
    return _OURS.fullmatch(reason) is not None


@dataclass
class Look:
    """The last true answer of one kind that reached us."""

    moment: int = -1
    time: float = -1e9


@dataclass
class Watch:
    """Sees every act of ours before it takes effect."""

    slurm: Slurmctld
    kubernetes: Kubernetes
    moment: int = 0
    """Counts everything that happens."""
    looks: dict[str, Look] = field(default_factory=lambda: {kind: Look() for kind in KINDS})
    lifted: dict[str, int] = field(default_factory=dict)
    """When somebody else last ended a node's drain, or slurmctld forgot it."""
    imposed: dict[str, int] = field(default_factory=dict)
    """When somebody else last drained a node."""
    counted_on: dict[str, int] = field(default_factory=dict)
    """When a reservation or a waiting job last came to name a node."""
    appeared: dict[str, int] = field(default_factory=dict)
    """When a node last registered, or its pod was last made."""
    placed: dict[int, int] = field(default_factory=dict)
    """When a job last changed by itself or by somebody else."""
    policies: dict[str, DrainSpec] = field(default_factory=dict)
    run_began: float = 0.0
    previewing: bool = False
    belated: bool = False
    """Whether a command is done now of which its caller has been told that it was lost."""
    wrong_place: bool = False
    """Whether this run is connected to another cluster, or a namespace made anew."""
    controller_lost: bool = False
    """Whether the user has said that the controller is gone for good."""
    disturbed: set[str] = field(default_factory=set)
    """Nodes to which anything else than our own acts happened in this run."""
    drains: Counter[str] = field(default_factory=Counter)
    resumes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def begin_run(self, now: float) -> None:
        """Start counting anew: a run knows nothing of the looks of another."""
        self.run_began = now
        self.looks = {kind: Look() for kind in KINDS}
        self.disturbed, self.drains, self.resumes = set(), Counter(), Counter()

    def happens(self) -> int:
        """Count one thing that happens."""
        self.moment += 1
        return self.moment

    def looked(self, kind: str, moment: int, now: float) -> None:
        """Note a true answer that was made at `moment` and reaches us now."""
        if moment > self.looks[kind].moment:
            self.looks[kind] = Look(moment, now)

    def pods_leave(self, pods: list[Pod]) -> None:
        """Judge pods that we tell to go, or whose StatefulSet we shrink or delete."""
        self._at_the_right_place("pods are taken away")
        for pod in pods:
            record = self.slurm.nodes.get(pod.name)
            jobs = self.slurm.could_be_on(pod.name)
            if self._excused("nodes", self.lifted, pod.name) or self._excused("nodes", self.appeared, pod.name):
                continue
            if self.controller_lost and not self.slurm.up:
                continue
            if jobs:
                self._violated(f"pod {pod.name} is taken away with jobs {sorted(jobs)}")
            elif record is None and pod.ran and pod.registered:
                self._violated(f"pod {pod.name} is taken away, though slurmctld does not know it")
            elif record is not None and not (record.drain or record.fail):
                self._violated(f"pod {pod.name} is taken away, though new jobs can come to it")

    def slurm_changes(self, verb: str, names: frozenset[str]) -> None:
        """Judge a command that is about to change something."""
        if self.belated:
            return
        self._at_the_right_place(f"{verb} {sorted(names)}")
        if verb in {"cancel", "requeue"}:
            for job in sorted(map(int, names)):
                self._treats(verb, self.slurm.jobs[job])
            return
        for name in sorted(names):
            record = self.slurm.nodes[name]
            foreign = record.fail or (record.drain and not ours(record.reason))
            if foreign and not self._excused("nodes", self.imposed, name):
                self._violated(f"{verb} of {name}, which somebody else has drained ({record.reason})")
            if verb == "drain":
                self.drains[name] += not record.drain
            elif verb == "resume":
                self.resumes[name] += record.drain
            else:
                self._deletes(name)

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
        reserved = [each for each, names in self.slurm.reservations.items() if name in names]
        if required and not self._excused("jobs", self.counted_on, name):
            self._violated(f"the record of {name} is deleted while jobs {required} wait for it")
        if reserved and not self._excused("reservations", self.counted_on, name):
            self._violated(f"the record of {name} is deleted while {reserved} reserves it")

    def _treats(self, verb: str, job: Job) -> None:
        """Only a job on a node that is to leave, by the policy of its node set, and not before its time."""
        if self.placed.get(job.job_id, -1) > self.looks["jobs"].moment:
            return
        drained = [name for name in job.nodes if name not in self.slurm.nodes or self.slurm.nodes[name].drain]
        if not drained and not any(self._excused("nodes", self.lifted, name) for name in job.nodes):
            self._violated(f"{verb} of job {job.job_id}, which is on no node that leaves")
        policies = [self.policies[name.rpartition("-")[0]] for name in job.nodes]
        if not any(self._allows(verb, policy, job) for policy in policies):
            self._violated(f"{verb} of job {job.job_id}, which no policy allows")

    def _allows(self, verb: str, policy: DrainSpec, job: Job) -> bool:
        if self.slurm.now - self.run_began < policy.timeout.total_seconds():
            return False
        if verb == "requeue":
            return policy.on_timeout is OnTimeout.REQUEUE
        cancelled = policy.on_timeout is OnTimeout.REQUEUE and policy.not_requeueable is NotRequeueable.CANCEL
        refused = not (job.requeue and job.batch) or self.slurm.requeue_fails
        return policy.on_timeout is OnTimeout.CANCEL or (cancelled and refused)

    def _excused(self, kind: str, acts: dict[str, int], name: str) -> bool:
        look = self.looks[kind]
        return acts.get(name, -1) > look.moment and self.slurm.now - look.time <= ACT_SECONDS

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
    return [name for name in names if (node := slurm.nodes.get(name)) and node.drain and ours(node.reason)]
