"""A stack of one node set on the model of slurmctld and Kubernetes: the real providers, in the order of Pulumi."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.types.int_or_percent import Share
from tests.fakes.objects import KilledError
from tests.fakes.slurmctld import Job, Record
from tests.fakes.workers import Pod
from tests.unit.faults.engine import Engine, NodeSet, Program
from tests.unit.faults.faults import Choices, Faults
from tests.unit.faults.stage import STAGE, provider, set_up
from tests.unit.faults.world import World

NAME = "NodesReady gpu"


@dataclass
class Model:
    """Acts of a test on it. Nothing fails by chance."""

    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.faults = Faults(self.world, Choices(b""))
        self.engine = Engine(self.faults)
        self.program = Program({})
        self.commands = self.world.programs.commands

    def up(self, replicas: int = 3, *, policy: DrainSpec | None = None, **changes: Any) -> list[str]:
        """Bring a node set about, and return what was said."""
        node_set = NodeSet(replicas, policy or DrainSpec(), **changes)
        self.program = Program({"gpu": node_set})
        # What may be missing does not count against what may be out of service.
        self.world.watch.budgets["gpu"] = Share(node_set.max_unavailable + node_set.max_unready)
        return self.again()

    def again(self) -> list[str]:
        """Run the same program once more, as a new process."""
        self.begin()
        self.engine.up(self.program)
        self.world.advance(5)
        return [*self.world.reported]

    def preview(self, replicas: int = 3, *, policy: DrainSpec | None = None, **changes: Any) -> list[str]:
        """Return what a preview says of that."""
        self.begin()
        self.engine.preview(Program({"gpu": NodeSet(replicas, policy or DrainSpec(), **changes)}))
        return [*self.world.reported]

    def differs(self) -> bool:
        """Return True if NodesReady sees something to do for the program as it is."""
        self.begin()
        olds = self.engine.state[NAME]
        news = dict(self.engine._wanted(self.program))[NAME]
        return bool(provider("NodesReady").diff(NAME, olds, self.engine._with_outputs(NAME, news)).changes)

    def refresh(self) -> dict[str, Any]:
        """Return what a refresh reads."""
        self.begin()
        return provider("NodesReady").read(NAME, self.engine.state[NAME]).outs or {}

    def begin(self) -> None:
        """Be a new process."""
        STAGE.begin(self.faults)
        self.faults.begin_run()
        self.world.reported.clear()
        self.commands.clear()

    def kill_at(self, happens: Callable[[], bool]) -> None:
        """Have the next run's process be killed at the first call at which something is so."""
        usual = self.faults.next

        def next_fault() -> str:
            if happens():
                self.faults.next = usual  # type: ignore[method-assign]
                self.faults.die()
            return usual()

        self.faults.next = next_fault  # type: ignore[method-assign]

    def killed(self, replicas: int = 3, **changes: Any) -> None:
        """Bring it about by a run that is killed on its way."""
        with pytest.raises(KilledError):
            self.up(replicas, **changes)
        self.faults.begin_run()

    def submit(self, seconds: float = float("inf"), **more: Any) -> Job:
        """Have a job start now."""
        job = self.world.slurm.submit(Job(0, seconds=seconds, **more))
        self.world.settle()
        return job

    @property
    def records(self) -> dict[str, Record]:
        return self.world.slurm.nodes

    @property
    def pods(self) -> dict[str, Pod]:
        return self.world.kubernetes.pods

    def revisions(self) -> list[str]:
        """Return of which template each pod is, in their order."""
        return [self.pods[name].revision.removeprefix("gpu-") for name in sorted(self.pods)]

    def drained(self) -> dict[str, str]:
        """Return the reasons of the nodes that are drained."""
        return {name: record.reason for name, record in self.records.items() if record.drain}


@contextmanager
def a_model() -> Iterator[Model]:
    """Set up the model, in the place of cluster and machine."""
    with set_up():
        yield Model()
