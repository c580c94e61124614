"""slurmctld's tables, and the truth behind: which jobs' processes are on which node.

Time is a parameter; nothing here fails by chance. What it is asked and told goes through `slurm_programs`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

SLURMD_TIMEOUT_SECONDS = 30.0
MIN_JOB_AGE_SECONDS = 60.0
"""So long a job that has ended is still in the table."""

PING_SECONDS = 1.0
"""After a drain is taken away slurmctld first asks whether slurmd is there."""
NOT_RESPONDING = " : Not responding"
"""Words that slurmctld itself adds to a reason when it misses the node's slurmd."""

SAVE_SECONDS = 5.0
"""Time before a crash whose changes may be lost."""

SLOTS = 2
"""Jobs that a node can run at a time."""

UNKNOWN = "Invalid node name specified"
_FOREVER = float("inf")


@dataclass
class Record:
    """An entry of the node table."""

    name: str
    down: bool = False
    drain: bool = False
    fail: bool = False
    """An admin's `state=fail`: no job starts here either."""
    pinged_at: float = 0.0
    reason: str = ""
    set_at: float = 0.0
    weight: int = 1
    memory_mib: int = 0
    cpus: int = SLOTS
    gres: str = ""
    extra: str = ""
    shown: tuple[str, ...] = ()
    """The state that programs show in place of what it is."""


@dataclass
class Job:
    """A job, and how it goes on by itself."""

    job_id: int
    width: int = 1
    """Number of nodes that it needs."""
    seconds: float = _FOREVER
    """Time for which it works once it has started."""
    completing_seconds: float = 0.0
    configuring_seconds: float = 0.0
    required: frozenset[str] = frozenset()
    memory_mib: int = 0
    """Memory that it asks for on a node; nothing here depends on it."""
    cpus: int = 1
    """CPUs that it asks for on a node; nothing here depends on them."""
    partition: str = "main"
    requeue: bool = True
    batch: bool = True
    limit_seconds: float | None = None
    state: str = "PENDING"
    configuring: bool = False
    completing: bool = False
    nodes: tuple[str, ...] = ()
    started_at: float = 0.0
    ends_at: float = _FOREVER
    """When its work is done; moves on while it is suspended."""
    gone_at: float = _FOREVER
    """When it stops completing."""
    eligible_at: float = 0.0
    starts: int = 0
    by_others: bool = False
    """True once someone else, or its node's end, touched it: no one promised that it survives that."""

    @property
    def active(self) -> bool:
        return bool(self.nodes)

    @property
    def finished(self) -> bool:
        return self.state not in {"PENDING", "RUNNING", "SUSPENDED"} and not self.completing


@dataclass
class Slurmctld:
    """The controller: node table, jobs, reservations."""

    answers_slurmd: Callable[[str], bool] = lambda _name: True
    """Returns True for a slurmd of this name that is alive."""
    on_command: Callable[[str, frozenset[str]], None] = lambda _verb, _names: None
    """Called before drain, resume, delete, requeue and cancel change anything."""
    on_change: Callable[[int], None] = lambda _job: None
    """Called when a job starts or ends."""
    on_reconfigure: Callable[[], None] = lambda: None
    """Called when it is to read its files again."""
    now: float = 0.0
    nodes: dict[str, Record] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    reservations: dict[str, frozenset[str]] = field(default_factory=dict)
    processes: dict[str, set[int]] = field(default_factory=dict)
    """The truth: the jobs that have processes on a node, whatever the tables say."""
    silent_since: dict[str, float] = field(default_factory=dict)
    up: bool = True
    back_at: float = _FOREVER
    changed_at: float = 0.0
    newest_job: int = 0
    requeue_fails: bool = False
    requeues_refused: set[int] = field(default_factory=set)
    """The jobs that slurmctld has refused to requeue."""
    reason: str = ""
    """That of the update which is about to change something."""
    unsaved: list[tuple[float, str, bool, str]] = field(default_factory=list)
    """When a node's drain changed, and what it was before."""
    finished: list[Job] = field(default_factory=list)

    # -- what runs by itself ------------------------------------------------------------------------------------

    def step(self, now: float) -> None:
        """Let time come to `now`."""
        self.now = now
        if not self.up and now >= self.back_at:
            self.up, self.back_at = True, _FOREVER
        self._work_ends()
        if not self.up:
            return
        self._miss_nodes()
        for job in list(self.jobs.values()):
            self._advance(job)
        self.schedule()

    def schedule(self) -> None:
        """Start what waits and finds free nodes."""
        if not self.up:
            return
        for job in list(self.jobs.values()):
            if job.state == "PENDING" and not job.nodes and job.eligible_at <= self.now:
                self._start(job)

    def _work_ends(self) -> None:
        """Processes end also while slurmctld is down."""
        for job in self.jobs.values():
            if job.state == "RUNNING" and job.ends_at <= self.now and job.completing_seconds != _FOREVER:
                self._leave(job)

    def _advance(self, job: Job) -> None:
        if job.configuring and self.now >= job.started_at + job.configuring_seconds:
            job.configuring = False
        if job.state == "RUNNING" and job.ends_at <= self.now:
            self.end(job, "COMPLETED")
        if job.completing and job.gone_at <= self.now:
            job.completing, job.nodes = False, ()
            self._changed()
        if job.finished and self.now > job.gone_at + MIN_JOB_AGE_SECONDS:
            del self.jobs[job.job_id]
            self.finished.append(job)

    def _miss_nodes(self) -> None:
        for name, record in self.nodes.items():
            if self.answers_slurmd(name):
                self.silent_since.pop(name, None)
            elif self.now - self.silent_since.setdefault(name, self.now) > SLURMD_TIMEOUT_SECONDS and not record.down:
                record.down = True
                if not record.reason.endswith("Not responding"):
                    record.reason = f"{record.reason}{NOT_RESPONDING}" if record.reason else "Not responding"
                self._changed()
                for job in self.on(name):
                    job.by_others = True
                    self.end(job, "NODE_FAIL", requeue=job.requeue, at_once=True)

    def _start(self, job: Job) -> None:
        free = [name for name in sorted(self.nodes, key=self._order) if self._takes_jobs(name)]
        chosen = sorted(job.required) if job.required else free[: job.width]
        if len(chosen) < job.width or not set(chosen) <= set(free):
            return
        job.state, job.nodes, job.started_at = "RUNNING", tuple(chosen), self.now
        job.configuring = job.configuring_seconds > 0
        job.ends_at = self.now + job.seconds
        job.starts += 1
        self.on_change(job.job_id)
        for name in chosen:
            self.processes.setdefault(name, set()).add(job.job_id)
        self._changed()

    def _order(self, name: str) -> tuple[int, str]:
        return self.nodes[name].weight, name

    def _takes_jobs(self, name: str) -> bool:
        record = self.nodes[name]
        working = sum(1 for job in self.on(name) if job.state != "SUSPENDED")
        return not (record.drain or record.fail or record.down) and name not in self.silent_since and working < SLOTS

    def on(self, name: str) -> list[Job]:
        """Return the jobs that it places on a node."""
        return [job for job in self.jobs.values() if name in job.nodes]

    def _leave(self, job: Job) -> None:
        for name in job.nodes:
            self.processes.get(name, set()).discard(job.job_id)

    def _changed(self) -> None:
        self.changed_at = self.now

    # -- what happens to it -------------------------------------------------------------------------------------

    def submit(self, job: Job) -> Job:
        """Take a job; it starts at once where it can."""
        self.newest_job = job.job_id = self.newest_job + 1
        self.jobs[job.job_id] = job
        self.schedule()
        return job

    def end(self, job: Job, state: str, *, requeue: bool = False, at_once: bool = False) -> None:
        """End a job's work: it completes for a while, then its nodes are free."""
        job.configuring = False
        self.on_change(job.job_id)
        job.gone_at = self.now
        if not job.nodes:
            job.state = "PENDING" if requeue else state
            return
        seconds = 0.0 if at_once else job.completing_seconds
        if seconds != _FOREVER:
            self._leave(job)
        job.state, job.completing, job.gone_at = ("PENDING" if requeue else state), True, self.now + seconds
        job.eligible_at = job.gone_at + 1 if requeue else job.eligible_at
        if seconds <= 0:
            job.completing, job.nodes = False, ()
        self._changed()

    def suspend(self, job: Job) -> None:
        job.state, job.by_others = "SUSPENDED", True
        job.seconds = max(0.0, job.ends_at - self.now)
        self._changed()

    def unsuspend(self, job: Job) -> None:
        job.state, job.ends_at = "RUNNING", self.now + job.seconds
        self._changed()

    def unstick(self) -> None:
        """Let what completes for ever come to its end."""
        for job in self.jobs.values():
            if job.completing and job.gone_at == _FOREVER:
                self._leave(job)
                job.gone_at = self.now
            if job.completing_seconds == _FOREVER:
                job.completing_seconds = 0.0

    def crash(self, seconds: float) -> None:
        self.up, self.back_at = False, self.now + seconds

    def forget_newest(self) -> list[str]:
        """Lose what was not saved yet, and return the nodes whose drain is what it was before."""
        lost = [entry for entry in self.unsaved if entry[0] > self.now - SAVE_SECONDS and entry[1] in self.nodes]
        for _, name, drain, reason in reversed(lost):
            self.nodes[name].drain, self.nodes[name].reason = drain, reason
        self.unsaved = []
        self._changed()
        return [name for _, name, _, _ in lost]

    def lose_state(self) -> None:
        """Start again with nothing known: nodes, jobs, reservations. Processes go on until their slurmd registers."""
        for job in self.jobs.values():
            job.by_others = True
        self.finished += self.jobs.values()
        self.nodes, self.jobs, self.reservations, self.silent_since = {}, {}, {}, {}
        self._changed()

    def register(self, name: str, weight: int, reason: str = "") -> bool:
        """A slurmd says that it is there; False when no one hears it.

        Where no record is yet, it is drained with the reason that slurmd gives, if it gives one.
        """
        if not self.up:
            return False
        record = self.nodes.setdefault(name, Record(name, drain=bool(reason), reason=reason, weight=weight))
        record.down = False
        self.silent_since.pop(name, None)
        for orphan in self.processes.get(name, set()) - {job.job_id for job in self.on(name)}:
            self.processes[name].discard(orphan)  # slurmctld has slurmd kill what it does not know
        for job in self.on(name):
            if job.job_id not in self.processes.get(name, set()) and not job.completing:
                job.by_others = True  # a slurmd that started again has none of them
                self.end(job, "NODE_FAIL", requeue=job.requeue, at_once=True)
        self._changed()
        return True

    def machine_gone(self, name: str) -> None:
        """The pod has ended, and with it whatever ran there."""
        for job_id in self.processes.pop(name, set()):
            if job_id in self.jobs:
                self.jobs[job_id].by_others = True

    def fail(self, name: str) -> None:
        self._about_to_change(name).fail = True
        self._changed()

    def could_be_on(self, name: str) -> set[int]:
        """Return the jobs that are on a node in truth, or that slurmctld places there."""
        return self.processes.get(name, set()) | {job.job_id for job in self.on(name)}

    def drain(self, names: Iterable[str], reason: str | None) -> None:
        for name in names:
            record = self._about_to_change(name)
            record.drain, record.fail, record.set_at = True, False, self.now
            record.reason = record.reason if reason is None else reason
        self._changed()

    def resume(self, names: Iterable[str], *, undrain: bool = False) -> None:
        for name in names:
            record = self._about_to_change(name)
            record.drain, record.pinged_at = False, self.now + PING_SECONDS
            if not undrain:
                record.reason = ""
                record.down = record.down and name in self.silent_since
        self._changed()

    def _about_to_change(self, name: str) -> Record:
        record = self.nodes[name]
        self.unsaved = [*self.unsaved[-9:], (self.now, name, record.drain, record.reason)]
        return record

    def delete(self, name: str) -> str:
        """Return the words of a refusal; empty when the record is deleted."""
        if name not in self.nodes:
            return UNKNOWN
        if any(job.state != "SUSPENDED" for job in self.on(name)):
            return "Requested nodes are busy"
        del self.nodes[name]
        self.silent_since.pop(name, None)
        self._changed()
        return ""
