"""A typed client of a live Slurm over a transport."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from soperator_pulumi.errors import SlurmError, TransportError
from soperator_pulumi.slurm.transport import Answer, Transport

T = TypeVar("T")

_USABLE = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_UNUSABLE_FLAGS = frozenset({"NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_UP", "FUTURE"})


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
    """A node as slurmctld sees it now."""

    name: str
    state: frozenset[str]
    """Base state and flags: IDLE, DRAIN, NOT_RESPONDING, ..."""
    features: frozenset[str]
    reason: str

    @property
    def joined(self) -> bool:
        """Whether its slurmd has registered and answers. A drained node has joined: somebody wants it idle."""
        return bool(self.state & _USABLE) and not self.state & _UNUSABLE_FLAGS

    @property
    def condition(self) -> str:
        """The state as `sinfo` would spell it out, with the reason if there is one."""
        state = "+".join(sorted(self.state, key=lambda flag: (flag not in _USABLE, flag))).lower()
        return f"{state} ({self.reason})" if self.reason else state


@dataclass(frozen=True)
class Job:
    """A job that has not ended."""

    job_id: int
    user: str
    partitions: frozenset[str]
    """Those that it may run in; one, once it runs."""
    state: frozenset[str]
    """Base state and flags: PENDING, RUNNING, COMPLETING, ..."""
    nodes: str
    """Hostlist expression of the nodes that it holds; empty while it waits."""

    def __str__(self) -> str:
        """What a message says of it."""
        where = f"on {self.nodes}" if self.nodes else "waiting"
        return f"{self.job_id} ({self.user}, {where})"


class SlurmClient:
    """Asks and tells slurmctld, each call bounded in time."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def is_up(self) -> bool:
        """Whether slurmctld answers."""
        try:
            return self._transport.run(["scontrol", "ping"], timeout_seconds=10).returncode == 0
        except TransportError:
            return False

    def reconfigure(self) -> None:
        """Have slurmctld and all slurmds read their files again.

        Raises:
            SlurmError: it refused; the message is Slurm's.
        """
        self._run(["scontrol", "reconfigure"], timeout_seconds=60)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes that slurmctld knows."""
        return _read(self._run(["scontrol", "show", "nodes", "--json"]), "nodes", _node)

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that have not ended: those that wait, run, are suspended, or still complete."""
        jobs = _read(self._run(["squeue", "--json", "--all"]), "jobs", _job)
        # slurmctld remembers jobs for some minutes (MinJobAge) after they have ended.
        return tuple(job for job in jobs if not job.state & _ENDED or "COMPLETING" in job.state)

    def _run(self, command: Sequence[str], *, timeout_seconds: int = 30) -> Answer:
        answer = self._transport.run(command, timeout_seconds=timeout_seconds)
        if answer.returncode != 0:
            raise SlurmError(answer.words or f"`{' '.join(command)}` ended with exit code {answer.returncode}.")
        return answer


def _read(answer: Answer, key: str, read: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    """Return the list `key` of a JSON answer, each entry as `read` reads it."""
    try:
        return tuple(read(each) for each in json.loads(answer.stdout)[key])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SlurmError(f"The answer is not Slurm's JSON with {key!r}: {answer.stdout[:200]!r}.") from error


def _node(node: dict[str, Any]) -> Node:
    return Node(
        name=str(node["name"]),
        state=frozenset(node["state"]),
        features=frozenset(_words(node.get("active_features") or node.get("features") or ())),
        reason=str(node.get("reason") or ""),
    )


def _job(job: dict[str, Any]) -> Job:
    return Job(
        job_id=int(job["job_id"]),
        user=str(job.get("user_name") or job.get("user_id") or ""),
        partitions=frozenset(_words(job.get("partition") or "")),
        state=frozenset(_words(job["job_state"])),
        nodes=str(job.get("nodes") or ""),
    )


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [word for word in value.split(",") if word]
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else []
