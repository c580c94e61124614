"""Client of slurmctld over Slurm's own programs (scontrol, squeue, scancel)."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from soperator_pulumi.errors import NodesNotDeletedError, TransportError
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot
from soperator_pulumi.slurm.parsing import (
    NO_REASON,
    read_job_table,
    read_jobs,
    read_node_table,
    read_nodes,
    read_reservations,
)
from soperator_pulumi.slurm.refusals import job_refusals, refusal
from soperator_pulumi.slurm.transport import Answer, Transport

_READ_PAUSES_SECONDS = (1.0, 3.0)
"""Pauses before the second and third attempt at a read."""

_ARGUMENT_CHARACTERS = 4000
"""An exec's command is part of the request line, which proxies limit to 8 KiB; some characters take three bytes."""

_DELETE_SECONDS = 60
_JOBS_SECONDS = 60
"""Every job in a list is a separate request, which takes some milliseconds."""


class ScontrolClient:
    """A `SlurmClient` that runs commands, with up to three attempts at a read."""

    def __init__(self, transport: Transport, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Create a client.

        Args:
            transport: Transport for Slurm's programs.
            pause: Function that waits for a number of seconds.
        """
        self._transport = transport
        self._pause = pause

    def is_up(self) -> bool:
        """Return True if slurmctld answers."""
        try:
            return self._transport.run(["scontrol", "ping"], timeout_seconds=10).returncode == 0
        except TransportError:
            return False

    def reconfigure(self) -> None:
        """Make slurmctld and all slurmds reread their files."""
        self._run(["scontrol", "reconfigure"], timeout_seconds=60)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes that slurmctld knows."""
        return read_nodes(self._nodes())

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that have not ended: pending, running, suspended or completing."""
        return _not_ended(read_jobs(self._jobs()))

    def reservations(self) -> tuple[Reservation, ...]:
        """Return the current and future reservations."""
        return read_reservations(self._read(["scontrol", "show", "reservations", "--json"]))

    def snapshot(self, *, reservations: bool = True) -> Snapshot:
        """Return nodes, jobs and reservations, in this order."""
        answers = self._nodes(), self._jobs()
        nodes, nodes_changed = read_node_table(answers[0])
        jobs, jobs_changed = read_job_table(answers[1])
        return Snapshot(
            nodes={node.name: node for node in nodes},
            jobs=_not_ended(jobs),
            reservations=self.reservations() if reservations else (),
            node_table_time=nodes_changed,
            job_table_time=jobs_changed,
        )

    def drain(self, names: Collection[str], reason: str) -> None:
        """Drain nodes."""
        for some in _portions(names):
            self._run(["scontrol", "update", f"nodename={some}", "state=drain", f"reason={reason}"])

    def undrain(self, names: Collection[str], reason: str = "") -> None:
        """Undrain nodes."""
        # state=resume would also lift an admin's DOWN. Slurm 24.11 has no command that clears a reason.
        for some in _portions(names):
            self._run(["scontrol", "update", f"nodename={some}", "state=undrain", f"reason={reason or NO_REASON}"])

    def delete_nodes(self, names: Collection[str]) -> None:
        """Delete the records of nodes."""
        refused: list[NodesNotDeletedError] = []
        for some in _portions(names):
            try:
                self._run(["scontrol", "delete", f"nodename={some}"], timeout_seconds=_DELETE_SECONDS)
            except NodesNotDeletedError as error:
                refused.append(error)
        if refused:
            left = frozenset[str]().union(*(error.left for error in refused))
            raise NodesNotDeletedError("\n".join(map(str, refused)), left)

    def requeue(self, job_ids: Collection[int], nodes: Collection[str] | None = None) -> dict[int, str]:
        """Requeue jobs; if `nodes` is given, only those that still hold one of them."""
        failures: dict[int, str] = {}
        active = self._active(job_ids, nodes)
        for some in _parted(list(active), "%2C"):
            # Without "Incomplete", a job that has just ended would run again.
            command = ["scontrol", "requeue", "Incomplete", ",".join(some)]
            failures |= job_refusals(self._ask(command, timeout_seconds=_JOBS_SECONDS), active)
        return failures

    def cancel(self, job_ids: Collection[int], nodes: Collection[str] | None = None) -> dict[int, str]:
        """Cancel jobs; if `nodes` is given, only those that still hold one of them."""
        failures: dict[int, str] = {}
        active = self._active(job_ids, nodes)
        for some in _parted(list(active), "&command="):  # the separator between words in an exec's request
            failures |= job_refusals(self._ask(["scancel", *some], timeout_seconds=_JOBS_SECONDS), active)
        return failures

    def _active(self, job_ids: Collection[int], nodes: Collection[str] | None) -> dict[str, int]:
        """Return the ids of jobs that now hold nodes, or one of `nodes`, by the names that commands take."""
        wanted = frozenset(job_ids)
        active = [job for job in self.jobs() if job.job_id in wanted and job.active] if wanted else []
        return {job.reference: job.job_id for job in active if nodes is None or job.node_names & frozenset(nodes)}

    def _nodes(self) -> str:
        return self._read(["scontrol", "show", "nodes", "--json"])

    def _jobs(self) -> str:
        return self._read(["squeue", "--json", "--all"])

    def _read(self, command: Sequence[str]) -> str:
        for pause_seconds in _READ_PAUSES_SECONDS:
            try:
                return self._run(command).stdout
            except TransportError:
                self._pause(pause_seconds)
        return self._run(command).stdout

    def _ask(self, command: Sequence[str], *, timeout_seconds: int = 30) -> Answer:
        answer = self._transport.run(command, timeout_seconds=timeout_seconds)
        if answer.timed_out:
            raise TransportError(f"`{' '.join(command[:2])}` did not end in {timeout_seconds} s.")
        return answer

    def _run(self, command: Sequence[str], *, timeout_seconds: int = 30) -> Answer:
        answer = self._ask(command, timeout_seconds=timeout_seconds)
        if answer.returncode != 0:
            raise refusal(answer.message or f"`{' '.join(command)}` ended with exit code {answer.returncode}.")
        return answer


def _not_ended(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return jobs without ended ones, which slurmctld remembers for some minutes (MinJobAge)."""
    return tuple(job for job in jobs if job.active or job.pending)


def _portions(names: Iterable[str]) -> list[str]:
    """Return hostlist expressions for the names, all short enough for a call; usually a single one."""
    every = in_order(set(names))
    expression = compress(every)
    if len(expression) <= _ARGUMENT_CHARACTERS or len(every) == 1:
        return [expression] if expression else []
    half = len(every) // 2
    return [*_portions(every[:half]), *_portions(every[half:])]


def _parted(words: list[str], separator: str) -> list[list[str]]:
    """Return the words in lists, all short enough for a call; usually a single one; empty without words."""
    if len(separator.join(words)) <= _ARGUMENT_CHARACTERS or len(words) == 1:
        return [words] if words else []
    half = len(words) // 2
    return [*_parted(words[:half], separator), *_parted(words[half:], separator)]
