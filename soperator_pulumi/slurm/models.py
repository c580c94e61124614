"""State of slurmctld as values: nodes, jobs, reservations, and all of them at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

_USABLE = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_UNUSABLE_FLAGS = frozenset({"NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_UP", "FUTURE"})

# UNKNOWN and the like count as busy: a node in an unknown state may run a job.
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
    """A node as slurmctld sees it at one moment."""

    name: str
    state: frozenset[str]
    """Base state and flags: IDLE, DRAIN, NOT_RESPONDING, ..."""
    features: frozenset[str]
    reason: str = ""
    """Reason of a drain or of DOWN, without its author and time; empty where none was given."""
    weight: int = 1
    """Slurm fills nodes of lower weight first."""
    generic_resources: frozenset[str] = frozenset()
    """Names of its generic resources, such as `gpu`."""

    @property
    def joined(self) -> bool:
        """True where slurmd has registered and answers. A drained node has joined: somebody wants it idle."""
        return bool(self.state & _USABLE) and not self.state & _UNUSABLE_FLAGS

    @property
    def drained(self) -> bool:
        """True where a drain keeps new jobs away; running jobs continue.

        An admin's FAIL counts as a drain: it has the same effect, and draining would replace it.
        """
        return bool(self.state & {"DRAIN", "FAIL"}) and "UNDRAIN" not in self.state

    @property
    def busy_state(self) -> frozenset[str]:
        """The flags by which a job is on the node, or may be."""
        return self.state & _BUSY

    @property
    def condition(self) -> str:
        """The state in the words of `sinfo`, with the reason if there is one."""
        state = "+".join(sorted(self.state, key=lambda flag: (flag not in _USABLE, flag))).lower()
        return f"{state} ({self.reason})" if self.reason else state


@dataclass(frozen=True)
class Job:
    """A job that slurmctld knows."""

    job_id: int
    user: str
    name: str
    partitions: frozenset[str]
    """Partitions that it may run in; one, once it runs."""
    state: frozenset[str]
    """Base state and flags: PENDING, RUNNING, COMPLETING, ..."""
    nodes: str
    """Hostlist expression of the nodes that it holds; empty while it is pending."""
    node_names: frozenset[str]
    """The same nodes, each by its name."""
    required_nodes: frozenset[str] = frozenset()
    """Nodes that it requested by name: it can run only with all of them."""
    ends_at: float | None = None
    """End by its time limit, in seconds since 1970; None without a limit, and while it is pending or suspended."""
    requeueable: bool = False
    """True where Slurm can requeue it: a batch job whose user allows it."""
    whole: str = ""
    """`4711_3` for a task of an array, the leader's id for a part of a heterogeneous job; empty for other jobs."""

    @property
    def reference(self) -> str:
        """Name for users and Slurm's commands: a task's own id may be that of its whole array."""
        return self.whole or str(self.job_id)

    @property
    def pending(self) -> bool:
        """True where it waits for its start."""
        return "PENDING" in self.state

    @property
    def ended(self) -> bool:
        """True where it has ended, in whatever way; while COMPLETING it still holds its nodes."""
        return bool(self.state & _ENDED)

    @property
    def active(self) -> bool:
        """True where it holds nodes: configuring, running, suspended, signalled, staging out or completing."""
        return "COMPLETING" in self.state or not (self.pending or self.ended)

    def __str__(self) -> str:
        """Return number, user and nodes."""
        where = f"on {self.nodes}" if self.nodes else "waiting"
        return f"{self.reference} ({self.user}, {where})"


@dataclass(frozen=True)
class Reservation:
    """Nodes kept for some users for some time, now or later."""

    name: str
    node_names: frozenset[str]
    starts_at: float
    """In seconds since 1970, as is the end."""
    ends_at: float
    users: str
    """Users, or accounts where no users are named, as Slurm lists them."""


@dataclass(frozen=True)
class Snapshot:
    """Answers of slurmctld, the jobs after the nodes: a job that came to a node before its drain is among the jobs."""

    nodes: Mapping[str, Node]
    """By name."""
    jobs: tuple[Job, ...]
    """Jobs that have not ended, or are completing."""
    reservations: tuple[Reservation, ...]
    """Current and future ones; empty when they were left out."""
    node_table_time: float
    """Time of the last change of the node table, in seconds since 1970."""
    job_table_time: float = 0.0
    """The same time of the jobs."""

    def older_than(self, seen: "Snapshot") -> bool:
        """Return True where any part is from before another snapshot: such a snapshot proves nothing."""
        return self.node_table_time < seen.node_table_time or self.job_table_time < seen.job_table_time
