"""State of slurmctld as values: nodes, jobs, reservations, and a snapshot of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass

_USABLE = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_UNUSABLE_FLAGS = frozenset({"NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_UP", "FUTURE"})

# UNKNOWN and similar states count as busy: a node in an unknown state may run a job.
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "POWERING_UP", "BLOCKED", "UNKNOWN", "ERROR", "INVALID"})

_ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
)


@dataclass(frozen=True)
class Node:
    """A node as slurmctld sees it at one time."""

    name: str
    state: frozenset[str]
    """Base state and flags: IDLE, DRAIN, NOT_RESPONDING, ..."""
    features: frozenset[str]
    reason: str = ""
    """Reason of a drain or of DOWN, without author and time; empty if none was given."""
    weight: int = 1
    """Slurm fills nodes of lower weight first."""
    generic_resources: frozenset[str] = frozenset()
    """Names of its generic resources, such as `gpu`."""
    findings: tuple[str, ...] = ()
    """Health checks that fail and drain nothing. `round` means that the rounds have stopped."""
    memory_mib: int = 0
    """Memory that Slurm schedules there (RealMemory), in MiB."""
    cpus: int = 0
    """CPUs for jobs: without those of reserved cores (CPUEfctv)."""
    partitions: frozenset[str] = frozenset()
    """Partitions of the node."""

    @property
    def joined(self) -> bool:
        """True if slurmd has registered and answers. This includes drained nodes, which are idle on purpose."""
        return bool(self.state & _USABLE) and not self.state & _UNUSABLE_FLAGS

    @property
    def drained(self) -> bool:
        """True if a drain keeps new jobs away; running jobs continue.

        An admin's FAIL counts as a drain: it has the same effect, and a drain would replace it.
        """
        return bool(self.state & {"DRAIN", "FAIL"}) and "UNDRAIN" not in self.state

    @property
    def busy_state(self) -> frozenset[str]:
        """The flags that show a job on the node, or the possibility of one."""
        return self.state & _BUSY

    @property
    def condition(self) -> str:
        """The state in the words of `sinfo`, with the reason if there is one."""
        state = "+".join(sorted(self.state, key=lambda flag: (flag not in _USABLE, flag))).lower()
        return f"{state} ({self.reason})" if self.reason else state


@dataclass(frozen=True)
class NodeSize:
    """Size of a node for jobs."""

    memory_mib: int
    """Memory that Slurm schedules there, in MiB."""
    cpus: int | None
    """CPUs without those of reserved cores; None if the number is unknown, and jobs fit by their CPUs then."""

    def takes(self, job: "Job") -> bool:
        """Return True if the node is large enough for a job's part."""
        return self.memory_mib >= job.node_memory_mib and (self.cpus is None or self.cpus >= job.node_cpus)


@dataclass(frozen=True)
class Job:
    """A job that slurmctld knows."""

    job_id: int
    user: str
    name: str
    partitions: frozenset[str]
    """Partitions in which the job may run; a single one once it runs."""
    state: frozenset[str]
    """Base state and flags: PENDING, RUNNING, COMPLETING, ..."""
    nodes: str
    """Hostlist expression of the nodes that it holds; empty while it is pending."""
    node_names: frozenset[str]
    """Names of the same nodes."""
    required_nodes: frozenset[str] = frozenset()
    """Nodes that the job requested by name: it can run only with all of them."""
    unreadable_nodes: str = ""
    """The user's list of these nodes if this package can't read it; `required_nodes` is empty then."""
    ends_at: float | None = None
    """End by the time limit, in seconds since 1970; None without a limit, and while the job is pending or suspended."""
    requeueable: bool = False
    """True if Slurm can requeue the job: a batch job whose user allows it."""
    whole: str = ""
    """`4711_3` for a task of an array, the leader's id for a part of a heterogeneous job; empty for other jobs."""
    node_count: int = 1
    """Number of nodes that it holds, or needs at least."""
    node_memory_mib: int = 0
    """Memory that it needs at least on every node, in MiB; 0 for a job that takes what there is (`--mem=0`)."""
    node_cpus: int = 0
    """CPUs that it needs at least on some node."""
    generic_resources: frozenset[str] = frozenset()
    """Names of the generic resources that it needs, such as `gpu`."""

    @property
    def reference(self) -> str:
        """Name of the job for users and Slurm's commands: a task's own id may be that of its whole array."""
        return self.whole or str(self.job_id)

    @property
    def pending(self) -> bool:
        """True if the job waits for its start."""
        return "PENDING" in self.state

    @property
    def ended(self) -> bool:
        """True if the job has ended, in any way; while COMPLETING it still holds its nodes."""
        return bool(self.state & _ENDED)

    @property
    def active(self) -> bool:
        """True if the job holds nodes: configuring, running, suspended, signalled, staging out or completing."""
        return "COMPLETING" in self.state or not (self.pending or self.ended)

    def __str__(self) -> str:
        """Return the job's number, user and nodes, for messages."""
        where = f"on {self.nodes}" if self.nodes else "waiting"
        return f"{self.reference} ({self.user}, {where})"


@dataclass(frozen=True)
class Reservation:
    """Nodes reserved for some users for some time, now or later."""

    name: str
    node_names: frozenset[str]
    starts_at: float
    """In seconds since 1970, like the end."""
    ends_at: float
    users: str
    """Users, or accounts if no users are named, as Slurm lists them."""


@dataclass(frozen=True)
class Snapshot:
    """Answers of slurmctld, the jobs after the nodes: a job that came to a node before its drain is included."""

    nodes: Mapping[str, Node]
    """By name."""
    jobs: tuple[Job, ...]
    """Jobs that have not ended, or are completing."""
    reservations: tuple[Reservation, ...]
    """Current and future reservations; empty if they were left out."""
    node_table_time: float
    """Time of the last change of the node table, in seconds since 1970."""
    job_table_time: float = 0.0
    """Time of the last change of the job table, in seconds since 1970."""

    def older_than(self, seen: "Snapshot") -> bool:
        """Return True if a part is older than in another snapshot: such a snapshot proves nothing."""
        return self.node_table_time < seen.node_table_time or self.job_table_time < seen.job_table_time
