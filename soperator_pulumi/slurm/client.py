"""slurmctld as operations use it, however it is reached: by scontrol today, by slurmrestd as well one day."""

from collections.abc import Collection
from typing import Protocol

from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot


class SlurmClient(Protocol):
    """Reads from slurmctld, and changes of its nodes and jobs, each call bounded in time.

    A read is repeated when its answer does not arrive. A change is not: the answer may be lost after the change, and
    meanwhile an admin may have changed it back. Look again, then decide again.

    Each method but `is_up` raises a `SlurmError` where slurmctld refuses or does not answer as it should, with Slurm's
    message, and a `TransportError` where nothing is known about what was done.
    """

    def is_up(self) -> bool:
        """Return True where slurmctld answers."""
        ...

    def reconfigure(self) -> None:
        """Have slurmctld and all slurmds read their files again."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes that slurmctld knows."""
        ...

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that have not ended: those that wait, run, are suspended, or still complete."""
        ...

    def reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations of now and of later."""
        ...

    def snapshot(self, *, reservations: bool = True) -> Snapshot:
        """Return all of it, the nodes read before the jobs: see `Snapshot`.

        Args:
            reservations: Whether they are asked for; it is a call more.
        """
        ...

    def drain(self, names: Collection[str], reason: str) -> None:
        """Drain nodes: running jobs continue, no new one starts. A drained node gets this reason.

        An admin's `state=fail` would be lost by it: see `Node.drained`.

        Raises:
            UnknownNodeError: one of them is unknown; the others are drained.
        """
        ...

    def undrain(self, names: Collection[str], reason: str = "") -> None:
        """Undrain nodes; a node that is down stays down, and one without a drain is not changed.

        For up to a second they show as not responding, until slurmctld has asked their slurmd.

        Args:
            names: The nodes.
            reason: The one that they had before they were drained.

        Raises:
            UnknownNodeError: one of them is unknown; the others are changed.
        """
        ...

    def delete_nodes(self, names: Collection[str]) -> None:
        """Delete the records of nodes.

        slurmctld refuses where a job runs or completes, and for nodes that are written in slurm.conf. It deletes a
        node that only suspended jobs hold, or that a reservation or a pending job names: look before.

        Raises:
            NodesNotDeletedError: some are left; the others are deleted.
        """
        ...

    def requeue(self, job_ids: Collection[int]) -> dict[int, str]:
        """Put jobs back into the queue, and return those that Slurm refused to, each with its message.

        Jobs that hold no node any more are left alone.

        Raises:
            NotRunningError: slurmctld stopped answering; some may be in the queue.
        """
        ...

    def cancel(self, job_ids: Collection[int]) -> dict[int, str]:
        """Cancel jobs, and return those that Slurm refused to, each with its message.

        Jobs that hold no node any more are left alone.

        Raises:
            NotRunningError: slurmctld stopped answering; some may be cancelled.
        """
        ...
