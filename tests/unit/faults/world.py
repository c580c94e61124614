"""The world of a trace: slurmctld and Kubernetes side by side, and the time that passes in both."""

from dataclasses import dataclass, field

from tests.fakes.clock import FakeClock
from tests.fakes.kubernetes import Kubernetes
from tests.fakes.slurm_programs import Programs
from tests.fakes.slurmctld import Slurmctld
from tests.fakes.workers import Pod
from tests.unit.faults.invariants import Watch

_STEP_SECONDS = 2.0
_STEPS = 6


@dataclass
class World(FakeClock):
    """Everything that our code acts on. It is also the clock that our code is given."""

    stride: float = 1.0
    """At least this long is every sleep: a slow machine looks seldom."""
    slurm: Slurmctld = field(default_factory=Slurmctld)
    programs: Programs = field(init=False)
    kubernetes: Kubernetes = field(init=False)
    watch: Watch = field(init=False)
    reported: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    """Events in their order: the story of a trace that fails."""

    def __post_init__(self) -> None:
        self.programs = Programs(self.slurm)
        self.kubernetes = Kubernetes(self.slurm)
        self.watch = Watch(self.slurm, self.kubernetes)
        self.slurm.answers_slurmd = self.kubernetes.answers_slurmd
        self.slurm.on_command = self.watch.slurm_changes
        self.slurm.on_change = self._changed
        self.kubernetes.on_leave = self.watch.pods_leave
        self.kubernetes.on_pod = self._pod_changed

    def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, self.stride))

    def report(self, text: str) -> None:
        self.reported.append(text)
        self.log.append(f"{self.time:8.1f}      says: {text}")

    def tell(self, text: str) -> None:
        """Note what happened."""
        self.log.append(f"{self.time:8.1f}  {text}")

    def advance(self, seconds: float) -> None:
        """Let time pass for all."""
        end = self.time + seconds
        step = max(_STEP_SECONDS, seconds / _STEPS)
        while self.time < end:
            self.reach(min(end, self.time + step))
            self.settle()

    def settle(self) -> None:
        """Let everything react to what is there now."""
        self.slurm.step(self.time)
        self.kubernetes.step(self.time)

    def _changed(self, job: int) -> None:
        self.watch.placed[job] = self.watch.happens()

    def _pod_changed(self, pod: Pod) -> None:
        moment = self.watch.appeared[pod.name] = self.watch.happens()
        if not pod.ran:
            self.watch.made[pod.name] = moment
