"""A slurmctld with four nodes to drain, for tests of one run at freeing them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.errors import TransportError
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.drained_nodes import DrainResult
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.slurmctld import Job
from tests.unit.faults.world import World

OWNER = "dev-hpc"
NAMES = tuple(f"gpu-{ordinal}" for ordinal in range(4))
DEFAULT = DrainSpec()


@dataclass
class Bench:
    """A slurmctld with four nodes, and what goes wrong at its calls."""

    world: World = field(default_factory=World)
    commands: list[str] = field(default_factory=list)
    before: Callable[[Sequence[str]], Answer | None] = lambda _command: None
    """Called before each command; its answer, if it gives one, comes in place of slurmctld's."""

    def __post_init__(self) -> None:
        self.world.slurm.answers_slurmd = lambda _name: True
        for ordinal, name in enumerate(NAMES):
            self.world.slurm.register(name, weight=1 + ordinal)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert timeout_seconds
        self.commands.append(" ".join(command))
        instead = self.before(command)
        return self.world.programs.run(command) if instead is None else instead

    def draining(self) -> Draining:
        client = ScontrolClient(self, pause=self.world.sleep)
        world = self.world
        return Draining(DrainContext(client, OWNER, "hpc", world.report, world))

    def free(
        self, *names: str, policy: DrainSpec = DEFAULT, operation: Operation = Operation.SCALE_DOWN
    ) -> DrainResult:
        return self.draining().free([leaving(*names, policy=policy)], operation)

    def submit(self, **job: Any) -> Job:
        found = self.world.slurm.submit(Job(0, **job))
        self.world.settle()
        return found

    def reasons(self) -> dict[str, str]:
        """Return the reasons of the nodes that are drained."""
        return {name: node.reason for name, node in self.world.slurm.nodes.items() if node.drain}

    def kinds(self) -> list[str]:
        """Return which commands were run."""
        return [" ".join(command.split()[:2]) for command in self.commands]


def leaving(*names: str, policy: DrainSpec = DEFAULT, never_started: Sequence[str] = ()) -> DrainRequest:
    staying = tuple(name for name in NAMES if name not in names)
    return DrainRequest("gpu", names, staying, policy, len(NAMES), len(staying), frozenset(never_started))


def a_policy(**values: Any) -> DrainSpec:
    return DrainSpec.model_validate(values)


def ours(operation: Operation, run: str = "abcdef") -> str:
    return str(Marker(OWNER, operation, "" if operation.of_a_pod else run))


def lost() -> Answer:
    raise TransportError("pod hpc/controller-0: the connection broke.")
