"""A slurmctld with a few nodes, for runs of long checks. Jobs end as the speed of every node says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from long_checks.slurm_calls import JobRequest, SlurmCallError, SlurmCalls, SlurmJob, SlurmNode, parse_job_state
from node_health.state_machine import NodeState


@dataclass
class MadeNode:
    """A node with the speed that its jobs measure."""

    name: str
    speed: float = 10.0
    state: str = "IDLE+DYNAMIC_NORM"
    reason: str = ""
    busy: bool = False
    """A user's job holds the node, whatever its state shows: jobs of checks wait."""
    hangs: bool = False
    crashes: int = 0
    """Number of next jobs on the node whose program crashes."""
    suspends: bool = False
    """Another job suspends every job for a while."""
    node_set: str = "cpu"
    partitions: tuple[str, ...] = ("main",)
    reservation: str = ""
    """Reservation of an admin, in addition to those of the checks."""

    @property
    def drained(self) -> bool:
        """Return True if no job starts."""
        return "DRAIN" in self.state


@dataclass
class MadeSlurm(SlurmCalls):
    """Calls of slurmctld."""

    made: dict[str, MadeNode]
    outputs: Path
    told: list[str] = field(default_factory=list)
    jobs_of: dict[int, JobRequest] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    reserved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lately_reserved: set[str] = field(default_factory=set)
    """Nodes that still show a deleted reservation, as slurmctld does until its next scheduling cycle."""
    default_partition: str = "main"
    fails_at: str = ""
    """Call at which the run is killed."""
    open_unverified: list[str] = field(default_factory=list)
    """Watched nodes that were neither drained nor reserved at some call, so that users' jobs could have entered."""
    watched: set[str] = field(default_factory=set)

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes."""
        self._call("nodes")
        return [
            SlurmNode(
                *(
                    made_node.name,
                    NodeState(self._shown(made_node), made_node.reason),
                    "10.0.0.1",
                    (made_node.node_set,),
                    made_node.partitions,
                ),
                made_node.reservation,
            )
            for made_node in self.made.values()
        ]

    def jobs(self, user: str, name: str) -> list[SlurmJob]:
        """Return jobs with a name, of any user."""
        self._call(f"jobs of {user}")
        return [
            SlurmJob(number, self.states[number], job.name)
            for number, job in self.jobs_of.items()
            if job.name == name and self.states[number] in {"PENDING", "RUNNING"}
        ]

    def submit(self, job: JobRequest) -> int:
        """Accept a job, unless its partition lacks some of its nodes (EnforcePartLimits=ALL)."""
        self._call(f"submit {','.join(job.nodes)}")
        partition = job.partition or self.default_partition
        if not all(partition in self.made[name].partitions for name in job.nodes):
            raise SlurmCallError(
                "sbatch: error: Batch job submission failed: Requested node configuration is not available"
            )
        number = len(self.jobs_of) + 1
        self.jobs_of[number] = job
        self.states[number] = "PENDING"
        return number

    def job_state(self, job_id: int) -> str:
        """Return the state of a job, which starts and ends at once if its nodes accept it."""
        self._call("job_state")
        job = self.jobs_of[job_id]
        if self.states[job_id] == "PENDING" and all(self._takes(self.made[name], job) for name in job.nodes):
            self.states[job_id] = self._end(job_id, job)
        return self.states[job_id]

    def cancel(self, jobs: Sequence[int]) -> None:
        """Cancel jobs."""
        for job in jobs:
            self._call(f"cancel {job}")
            self.states[job] = "CANCELLED"

    def drain(self, node: str, reason: str) -> None:
        """Drain a node."""
        self._call(f"drain {node}")
        self.made[node].state, self.made[node].reason = "IDLE+DRAIN+DYNAMIC_NORM", reason
        self._look()

    def undrain(self, node: str) -> None:
        """End a drain."""
        self._call(f"undrain {node}")
        self.made[node].state, self.made[node].reason = "IDLE+DYNAMIC_NORM", "none"
        self._look()

    def reserve(self, name: str, nodes: Sequence[str], user: str) -> None:
        """Reserve nodes."""
        self._call(f"reserve {','.join(nodes)} for {user}")
        self.reserved[name] = tuple(nodes)

    def reservations(self) -> dict[str, str]:
        """Return reservations."""
        self._call("reservations")
        return {name: ",".join(nodes) for name, nodes in self.reserved.items()}

    def release(self, name: str) -> None:
        """Delete a reservation."""
        self._call(f"release {name}")
        self.lately_reserved |= {*self.reserved.pop(name)}
        self._look()

    def hosts(self, host_list: str) -> list[str]:
        """Return names."""
        return host_list.split(",") if host_list else []

    def _shown(self, node: MadeNode) -> str:
        """Return a node's state with the flags of a reservation, as slurmctld shows it after its next cycle."""
        closed = any(node.name in nodes for nodes in self.reserved.values())
        return node.state + ("+MAINTENANCE+RESERVED" if closed or node.name in self.lately_reserved else "")

    def _takes(self, node: MadeNode, job: JobRequest) -> bool:
        closed = {name for nodes in self.reserved.values() for name in nodes}
        return not node.drained and not node.busy and (node.name not in closed or bool(job.reservation))

    def _end(self, number: int, job: JobRequest) -> str:
        if any(self.made[name].hangs for name in job.nodes):
            return "TIMEOUT"
        crashing = [self.made[name] for name in job.nodes if self.made[name].crashes]
        if crashing:
            crashing[0].crashes -= 1
            (self.outputs / f"{number}.out").write_text("node: Test CUDA failure common.cu:1007 'busy'\n .. pid 1\n")
            return "FAILED"
        speed = min(self.made[name].speed for name in job.nodes)
        (self.outputs / f"{number}.out").write_text(f'{{"bench": "ring", "value": {speed}, "errors": 0}}\n')
        suspended = any(self.made[name].suspends for name in job.nodes)
        return parse_job_state(f"JobState=COMPLETED SuspendTime={'2026-11-25T12:00:00' if suspended else 'None'}")

    def _call(self, call: str) -> None:
        if self.fails_at and call.startswith(self.fails_at):
            self.fails_at = ""
            raise SlurmCallError(f"{call}: no answer")
        if call.split(maxsplit=1)[0] not in {"nodes", "job_state", "jobs", "reservations"}:
            self.told.append(call)

    def _look(self) -> None:
        closed = {name for nodes in self.reserved.values() for name in nodes}
        for name in self.watched:
            if not self.made[name].drained and name not in closed:
                self.open_unverified.append(name)
