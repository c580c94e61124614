"""Protocol for clients of slurmctld, implemented with scontrol and open to slurmrestd."""

from collections.abc import Collection
from typing import Protocol

from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot


class SlurmClient(Protocol):
    """Reads from slurmctld, and changes to its nodes and jobs. Every call is bounded in time.

    A read is repeated if its answer does not arrive. A change is not: its answer may be lost after the change, and an
    admin may have reverted the change since. Read the state again, then decide again.

    All methods except `is_up` raise a `SlurmError` with Slurm's message if slurmctld refuses or gives an unexpected
    answer, and a `TransportError` if the effect is unknown.
    """

    def is_up(self) -> bool:
        """Return True if slurmctld answers."""
        ...

    def reconfigure(self) -> None:
        """Make slurmctld and all slurmds reread their files."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes that slurmctld knows."""
        ...

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that have not ended: pending, running, suspended or completing."""
        ...

    def reservations(self) -> tuple[Reservation, ...]:
        """Return the current and future reservations."""
        ...

    def snapshot(self, *, reservations: bool = True) -> Snapshot:
        """Return nodes, jobs and reservations, in this order: see `Snapshot`.

        Args:
            reservations: False to leave reservations out, which saves a call.
        """
        ...

    def drain(self, names: Collection[str], reason: str) -> None:
        """Drain nodes: running jobs continue, no new job starts. Nodes that are already drained also get this reason.

        A drain replaces an admin's `state=fail`: see `Node.drained`.

        Raises:
            UnknownNodeError: a node is unknown; the others are drained.
        """
        ...

    def undrain(self, names: Collection[str], reason: str = "") -> None:
        """Undrain nodes. A node that is down stays down, and a node without a drain stays as it is.

        Undrained nodes show as not responding for up to a second, until slurmctld has contacted their slurmd.

        Args:
            names: The nodes.
            reason: Reason that the nodes had before their drain.

        Raises:
            UnknownNodeError: a node is unknown; the others are undrained.
        """
        ...

    def delete_nodes(self, names: Collection[str]) -> None:
        """Delete the records of nodes.

        slurmctld refuses while a job runs or completes, and for nodes that slurm.conf names. It does delete a node that
        only suspended jobs hold, or that a reservation or a pending job names: check that before.

        Raises:
            NodesNotDeletedError: some nodes are left; the others are deleted.
        """
        ...

    def requeue(self, job_ids: Collection[int], nodes: Collection[str] | None = None) -> dict[int, str]:
        """Requeue jobs, and return those that Slurm refused to requeue, with Slurm's messages.

        Jobs that no longer hold a node are left alone. If `nodes` is given, so are jobs that hold none of these, as a
        requeued job may run elsewhere by now.

        Raises:
            NotRunningError: slurmctld stopped answering; some jobs may be requeued.
        """
        ...

    def cancel(self, job_ids: Collection[int], nodes: Collection[str] | None = None) -> dict[int, str]:
        """Cancel jobs, and return those that Slurm refused to cancel, with Slurm's messages.

        Jobs that no longer hold a node are left alone. If `nodes` is given, so are jobs that hold none of these, as a
        requeued job may run elsewhere by now.

        Raises:
            NotRunningError: slurmctld stopped answering; some jobs may be cancelled.
        """
        ...
