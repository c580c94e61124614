"""What slurmctld says, as values: nodes, jobs, reservations, and all of them at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

_USABLE = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_UNUSABLE_FLAGS = frozenset({"NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_UP", "FUTURE"})

# UNKNOWN and the like are here as well: who does not know what a node does cannot say that it does nothing.
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
    """Why somebody drained it or set it down, without who and when; empty when nobody said."""
    weight: int = 1
    """Slurm fills nodes of lower weight first."""

    @property
    def joined(self) -> bool:
        """Whether its slurmd has registered and answers. A drained node has joined: somebody wants it idle."""
        return bool(self.state & _USABLE) and not self.state & _UNUSABLE_FLAGS

    @property
    def drained(self) -> bool:
        """Whether no new job is placed on it because somebody drained it; what runs there goes on.

        An admin's FAIL counts as a drain: it is one in effect, and draining would replace it.
        """
        return bool(self.state & {"DRAIN", "FAIL"}) and "UNDRAIN" not in self.state

    @property
    def busy_state(self) -> frozenset[str]:
        """The parts of its state by which a job is on it or may be."""
        return self.state & _BUSY

    @property
    def condition(self) -> str:
        """The state as `sinfo` would spell it out, with the reason if there is one."""
        state = "+".join(sorted(self.state, key=lambda flag: (flag not in _USABLE, flag))).lower()
        return f"{state} ({self.reason})" if self.reason else state


@dataclass(frozen=True)
class Job:
    """A job that slurmctld knows."""

    job_id: int
    user: str
    name: str
    partitions: frozenset[str]
    """Those that it may run in; one, once it runs."""
    state: frozenset[str]
    """Base state and flags: PENDING, RUNNING, COMPLETING, ..."""
    nodes: str
    """Hostlist expression of the nodes that it holds; empty while it waits."""
    node_names: frozenset[str]
    """The same nodes, each by its name."""
    required_nodes: frozenset[str] = frozenset()
    """Nodes that it asked for by name: it can run only where all of them are."""
    ends_at: float | None = None
    """When its time limit ends it, in seconds since 1970; None without a limit, and while it waits or is suspended."""
    requeueable: bool = False
    """Whether Slurm can put it back into the queue: a batch job that its user let be requeued."""
    whole: str = ""
    """`4711_3` for a task of an array, the leader's id for a part of a heterogeneous job; empty for other jobs."""

    @property
    def reference(self) -> str:
        """How users and Slurm's commands name it: a task's own id may be that of its whole array."""
        return self.whole or str(self.job_id)

    @property
    def pending(self) -> bool:
        """Whether it waits to be started."""
        return "PENDING" in self.state

    @property
    def ended(self) -> bool:
        """Whether it has ended, in whatever way; while COMPLETING it holds its nodes even so."""
        return bool(self.state & _ENDED)

    @property
    def active(self) -> bool:
        """Whether it holds nodes: it is configuring, running, suspended, signalled, staging out or completing."""
        return "COMPLETING" in self.state or not (self.pending or self.ended)

    def __str__(self) -> str:
        """What a message says of it."""
        where = f"on {self.nodes}" if self.nodes else "waiting"
        return f"{self.reference} ({self.user}, {where})"


@dataclass(frozen=True)
class Reservation:
    """Nodes that are kept for some users for some time, now or later."""

    name: str
    node_names: frozenset[str]
    starts_at: float
    """In seconds since 1970, as is the end."""
    ends_at: float
    users: str
    """Who may use it, as Slurm lists them: users, or accounts where no users are named."""


@dataclass(frozen=True)
class Snapshot:
    """What slurmctld said, the nodes first and the jobs after them: a job on a drained node shows in the later list."""

    nodes: Mapping[str, Node]
    """By name."""
    jobs: tuple[Job, ...]
    """Those that have not ended, or still complete."""
    reservations: tuple[Reservation, ...]
    """Of now and of later; empty when they were not asked for."""
    node_table_time: float
    """When the node table last changed, in seconds since 1970."""
    job_table_time: float = 0.0
    """The same of the jobs."""

    def older_than(self, seen: "Snapshot") -> bool:
        """Whether it is from before another one, in part at least: then it proves nothing."""
        return self.node_table_time < seen.node_table_time or self.job_table_time < seen.job_table_time
