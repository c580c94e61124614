"""A typed client of a live Slurm over a transport."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from soperator_pulumi.errors import NotRunningError, SlurmError, TransportError
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.parsing import read_jobs, read_node_table_time, read_nodes, read_reservations
from soperator_pulumi.slurm.refusals import refusal
from soperator_pulumi.slurm.states import Job, Node, Reservation, Snapshot
from soperator_pulumi.slurm.transport import Answer, Transport

_READ_PAUSES_SECONDS = (1.0, 3.0)
"""Before the second and the third attempt at reading."""

_ARGUMENT_CHARACTERS = 4000
"""An exec's command travels in the request's first line, which proxies limit to 8 KiB; some characters need three."""


class SlurmClient:
    """Asks and tells slurmctld, each call bounded in time.

    Reading is attempted three times when the answer does not arrive. What changes something is not: the answer may be
    lost after the change, and meanwhile an admin may have changed it again. Look again, then decide again.
    """

    def __init__(self, transport: Transport, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Prepare.

        Args:
            transport: How commands reach Slurm.
            pause: Waits for a number of seconds.
        """
        self._transport = transport
        self._pause = pause

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
        return read_nodes(self._nodes())

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that have not ended: those that wait, run, are suspended, or still complete."""
        jobs = read_jobs(self._read(["squeue", "--json", "--all"]))
        # slurmctld remembers jobs for some minutes (MinJobAge) after they have ended.
        return tuple(job for job in jobs if job.active or job.pending)

    def reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations of now and of later."""
        return read_reservations(self._read(["scontrol", "show", "reservations", "--json"]))

    def snapshot(self, *, reservations: bool = True) -> Snapshot:
        """Return all of it, the nodes read before the jobs: see `Snapshot`.

        Args:
            reservations: Whether they are asked for; it is a call more.
        """
        nodes = self._nodes()
        return Snapshot(
            nodes={node.name: node for node in read_nodes(nodes)},
            jobs=self.jobs(),
            reservations=self.reservations() if reservations else (),
            node_table_time=read_node_table_time(nodes),
        )

    def drain(self, names: Collection[str], reason: str) -> None:
        """Drain nodes: what runs there goes on, nothing new comes. A drain that a node has gets this reason.

        Raises:
            UnknownNodeError: one of them is unknown; none is drained.
            SlurmError: it refused; the message is Slurm's.
            TransportError: nothing is known about what was done.
        """
        for some in _portions(names):
            self._run(["scontrol", "update", f"nodename={some}", "state=drain", f"reason={reason}"])

    def resume(self, names: Collection[str]) -> None:
        """Put drained nodes back into service."""
        for some in _portions(names):
            self._run(["scontrol", "update", f"nodename={some}", "state=undrain"])

    def delete_nodes(self, names: Collection[str]) -> None:
        """Delete the records of nodes.

        slurmctld deletes also nodes that a reservation or a waiting job names: look before. It does not delete a node
        that a job is on, nor one that is written in slurm.conf.

        Raises:
            NodesNotDeletedError: some are left; the others are deleted.
            UnknownNodeError: the only one is unknown.
            NodesBusyError: jobs are on the only one.
            TransportError: nothing is known about what was done.
        """
        for some in _portions(names):
            self._run(["scontrol", "delete", f"nodename={some}"], timeout_seconds=60)

    def requeue(self, job_ids: Collection[int]) -> dict[int, str]:
        """Put running jobs back into the queue, and return those that were not, each with Slurm's words."""
        return self._each(job_ids, ["scontrol", "requeue"])

    def cancel(self, job_ids: Collection[int]) -> dict[int, str]:
        """Cancel jobs, and return those that were not, each with Slurm's words."""
        return self._each(job_ids, ["scancel"])

    def _each(self, job_ids: Collection[int], command: Sequence[str]) -> dict[int, str]:
        failures = {}
        for job_id in job_ids:
            try:
                self._run([*command, str(job_id)])
            except NotRunningError:
                raise
            except SlurmError as error:
                failures[job_id] = str(error)
        return failures

    def _nodes(self) -> str:
        return self._read(["scontrol", "show", "nodes", "--json"])

    def _read(self, command: Sequence[str]) -> str:
        for pause_seconds in _READ_PAUSES_SECONDS:
            try:
                return self._run(command).stdout
            except TransportError:
                self._pause(pause_seconds)
        return self._run(command).stdout

    def _run(self, command: Sequence[str], *, timeout_seconds: int = 30) -> Answer:
        answer = self._transport.run(command, timeout_seconds=timeout_seconds)
        if answer.returncode != 0:
            raise refusal(answer.words or f"`{' '.join(command)}` ended with exit code {answer.returncode}.")
        return answer


def _portions(names: Iterable[str]) -> list[str]:
    """Return hostlist expressions for the names, each short enough for one call: one, as a rule."""
    every = sorted(set(names), key=_natural)
    expression = compress(every)
    if len(expression) <= _ARGUMENT_CHARACTERS or len(every) == 1:
        return [expression] if expression else []
    half = len(every) // 2
    return [*_portions(every[:half]), *_portions(every[half:])]


def _natural(name: str) -> tuple[str, int, str]:
    prefix = name.rstrip("0123456789")
    number = name[len(prefix) :]
    return prefix, int(number or 0), number
