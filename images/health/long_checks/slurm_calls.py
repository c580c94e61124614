"""Calls to slurmctld with time limits. No other module parses their text."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from node_health.bounded import BoundedProgram
from node_health.state_machine import NodeState
from slurm_wire import records

_MEASURED = {"COMPLETED", "FAILED", "TIMEOUT"}
"""Final job states that say something about the nodes."""

_SECONDS = 30


class SlurmCallError(Exception):
    """slurmctld refused, or did not answer: no conclusion about any node."""


class SlurmNode(NamedTuple):
    """A node's record in slurmctld."""

    name: str
    state: NodeState
    address: str
    features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    reservation: str = ""

    def is_idle(self, reservation: str = "") -> bool:
        """Return True if a check's job starts at once: the node has no job, and its state accepts jobs.

        Args:
            reservation: Reservation of the check's jobs, which run on its nodes alone. Default: none.
        """
        words = set(self.state.state.split("+"))
        if reservation:
            words -= {"MAINTENANCE", "RESERVED"} if reservation in self.reservation.split(",") else words
        return "IDLE" in words and not words & {
            *("COMPLETING", "DRAIN", "FAIL", "MAINTENANCE", "NOT_RESPONDING", "PLANNED", "POWERED_DOWN"),
            *("POWERING_DOWN", "POWERING_UP", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED"),
        }


class SlurmJob(NamedTuple):
    """A job of the checks' user."""

    job_id: int
    state: str
    name: str


class JobRequest(NamedTuple):
    """A job to submit."""

    name: str
    nodes: tuple[str, ...]
    script: str
    output: str
    """Path of its output, with %j for its id."""
    folder: str
    uid: int
    time_limit_seconds: float
    deadline_seconds: float
    """Time after which slurmctld itself removes the job, even if the run that submitted it has ended."""
    nice: int
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    gpus: int = 0
    """GPUs of each node."""

    def options(self) -> list[str]:
        """Return the options of sbatch.

        The job is never requeued: after a preemption no run would wait for it.
        """
        limit = max(1, round(self.time_limit_seconds / 60 + 0.49))
        return [
            *("--parsable", "--no-requeue", "--exclusive", "--mem=0", f"--nice={self.nice}"),
            # Without the group, the job would have root's.
            *(f"--uid={self.uid}", f"--gid={self.uid}"),
            *(f"--job-name={self.name}", f"--nodelist={','.join(self.nodes)}", f"--nodes={len(self.nodes)}"),
            *("--ntasks-per-node=1", f"--time={limit}", f"--deadline=now+{limit * 60 + self.deadline_seconds:.0f}"),
            *(f"--chdir={self.folder}", f"--output={self.output}"),
            *([f"--partition={self.partition}"] if self.partition else []),
            *([f"--qos={self.qos}"] if self.qos else []),
            *([f"--reservation={self.reservation}"] if self.reservation else []),
            *([f"--gpus-per-node={self.gpus}"] if self.gpus else []),
            f"--wrap={self.script}",
        ]


def parse_nodes(shown: str) -> list[SlurmNode]:
    """Return the nodes of `scontrol show nodes --oneliner`."""
    found = []
    for line in records.lines(shown):
        fields, reason = records.fields(line), records.reason(line)
        if "NodeName" not in fields:
            continue
        found.append(
            SlurmNode(
                fields["NodeName"],
                NodeState(fields.get("State", "UNKNOWN"), reason.text if reason else ""),
                fields.get("NodeAddr", ""),
                records.words(fields.get("ActiveFeatures", "")),
                records.words(fields.get("Partitions", "")),
                fields.get("ReservationName", ""),
            )
        )
    return found


def parse_jobs(shown: str) -> list[SlurmJob]:
    """Return the jobs of `squeue`, by id, state and name."""
    rows = [line.split("|") for line in shown.split("\n") if line.count("|") == 2]
    return [SlurmJob(int(job_id), state, name) for job_id, state, name in rows]


def parse_job_state(shown: str) -> str:
    """Return the state in `scontrol show job --oneliner`; empty if there is none.

    A job that was suspended has a state of its own, as its measurement contains the pause.
    """
    fields = records.fields(shown)
    state, suspended = fields.get("JobState", ""), fields.get("SuspendTime", "None")
    return f"{state} after a suspension" if suspended != "None" and state in _MEASURED else state


def reservation_nodes(shown: str) -> dict[str, str]:
    """Return the nodes of each reservation of `scontrol show reservations --oneliner`, as a host list."""
    rows = map(records.fields, records.lines(shown))
    return {row["ReservationName"]: row.get("Nodes", "") for row in rows if "ReservationName" in row}


class SlurmCalls:
    """slurmctld, for a run of a long check."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes."""
        return parse_nodes(self._run("scontrol", "show", "nodes", "--oneliner"))

    def jobs(self, user: str, name: str) -> list[SlurmJob]:
        """Return the jobs of a user with a name that have not ended."""
        shown = self._run("squeue", "--noheader", f"--user={user}", f"--name={name}", "--format=%i|%T|%j")
        return parse_jobs(shown)

    def job_state(self, job_id: int) -> str:
        """Return the state of a job (`parse_job_state`); empty if slurmctld no longer has it."""
        return parse_job_state(self._outcome("scontrol", "show", "job", str(job_id), "--oneliner"))

    def submit(self, job: JobRequest) -> int:
        """Submit a job, and return its id."""
        printed = self._run("sbatch", *job.options())
        try:
            return int(printed.strip().split(";")[0])
        except ValueError:
            raise SlurmCallError(f"sbatch printed no id: {printed[:80]!r}") from None

    def cancel(self, jobs: Sequence[int]) -> None:
        """Cancel jobs. Ended jobs stay as they are."""
        if jobs:
            self._outcome("scancel", *map(str, jobs))

    def drain(self, node: str, reason: str) -> None:
        """Drain a node with a reason."""
        self._run("scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}")

    def undrain(self, node: str) -> None:
        """End the drain of a node; other states stay."""
        self._run("scontrol", "update", f"nodename={node}", "state=undrain", "reason=none")

    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        """Reserve nodes for one user, without an end. Jobs of other users may still run on them."""
        self._run(
            *("scontrol", "create", "reservation", f"reservationname={name}", f"user={user}", "starttime=now"),
            *("duration=infinite", f"nodes={','.join(nodes)}", "flags=maint,ignore_jobs"),
        )

    def reservations(self) -> dict[str, str]:
        """Return the nodes of each reservation, as a host list."""
        outcome = self._outcome("scontrol", "show", "reservations", "--oneliner")
        return reservation_nodes(outcome)

    def release(self, name: str) -> None:
        """Delete a reservation."""
        self._run("scontrol", "delete", f"reservationname={name}")

    def hosts(self, host_list: str) -> list[str]:
        """Return the names in a host list."""
        return self._run("scontrol", "show", "hostnames", host_list).split() if host_list else []

    def _run(self, *command: str) -> str:
        outcome = BoundedProgram(command, _SECONDS, self._variables).finish()
        if outcome.status is None:
            raise SlurmCallError(f"{command[0]}: no answer in {_SECONDS} s")
        if outcome.status:
            raise SlurmCallError(f"{command[0]}: {outcome.words}")
        return outcome.output

    def _outcome(self, *command: str) -> str:
        """Return the output of a command that also fails if it has nothing to show."""
        outcome = BoundedProgram(command, _SECONDS, self._variables).finish()
        if outcome.status is None or "Unable to contact" in outcome.errors:
            raise SlurmCallError(f"{command[0]}: no answer")
        return outcome.output
