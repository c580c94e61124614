"""A trace: a cluster, what its user wants one run after another, what happens meanwhile, and that the end is good."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unittest import mock

from soperator_pulumi.errors import DrainError, SoperatorError
from soperator_pulumi.operations.nodes.cluster_ref import CONTROLLER_LOST
from soperator_pulumi.operations.nodes.drain_override import SOPERATOR_DRAIN
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.types.int_or_percent import Share
from tests.fakes.objects import KilledError
from tests.unit.faults import outside
from tests.unit.faults.engine import Engine, NodeSet, Program
from tests.unit.faults.faults import ALL, QUIET, Choices, Faults
from tests.unit.faults.invariants import ViolationError, drained_by_us
from tests.unit.faults.user import CHANGES, User, overridden
from tests.unit.faults.world import World

_STRIDES_SECONDS = (30.0, 5.0, 60.0, 15.0)
_RUNS = 3
_FINAL_RUNS = 6
_JOB_SECONDS = 40.0


@dataclass(frozen=True)
class Focus:
    """Part of all that may happen that a series of traces is about."""

    kinds: Sequence[str] = ALL
    node_sets: int | None = None
    policies: Sequence[DrainSpec] | None = None
    first_kinds: Sequence[str] | None = None
    """Faults of the first run, where that is something else."""
    script: Sequence[str] | None = None
    """Acts of the user in each run; whatever is allowed where there is none."""
    quiet: int = QUIET
    """Of 256 calls so many meet nothing."""


EVERYTHING = Focus()


@dataclass
class Trace:
    """One trace, from its bytes."""

    data: bytes
    focus: Focus = EVERYTHING
    world: World = field(default_factory=World)
    choices: Choices = field(init=False)
    user: User = field(init=False)
    faults: Faults = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.choices = Choices(self.data)
        self.user = User(self.choices, self.focus.policies)
        self.faults = Faults(self.world, self.choices, self.focus.kinds, self.focus.quiet)
        self.engine = Engine(self.faults)

    def run(self) -> None:
        """Play it, and judge it.

        Raises:
            ViolationError: something happened that must not; the message is the trace's story.
        """
        try:
            self._play()
        except ViolationError as error:
            raise ViolationError(f"{error}\n" + "\n".join(self.world.log)) from None
        except Exception as error:
            error.add_note("\n".join(self.world.log))
            raise
        if self.world.watch.violations:  # someone swallowed it
            raise ViolationError("\n".join([*self.world.watch.violations, *self.world.log]))

    def _play(self) -> None:
        choices, world = self.choices, self.world
        world.stride = choices.of(_STRIDES_SECONDS)
        program = self.user.first_program(self.focus.node_sets)
        self._note_policies(program)
        self._expect(self._up(program), "the first up")
        for _ in range(choices.byte() % 5):
            outside.submit(world, choices.byte())
        world.settle()
        destroyed = False
        script = self.focus.script or [choices.of(CHANGES) for _ in range(1 + choices.byte() % _RUNS)]
        for number, what in enumerate(script):
            first = self.focus.first_kinds if number == 0 else None
            self.faults.kinds = first or self.focus.kinds
            destroyed, program = self._run(program, what)
            if destroyed:
                break
        self._end(program, destroyed=destroyed)

    # -- runs -----------------------------------------------------------------------------------------------------

    def _run(self, program: Program, what: str) -> tuple[bool, Program]:
        """Do one run, with all that goes wrong; return whether all is destroyed, and the program."""
        choices, world = self.choices, self.world
        if what == "wrong place":
            self._in_the_wrong_place(program)
            return False, program
        if what == "controller lost":
            self._without_controller(program)
            return True, program
        if what != "destroy":
            program = self.user.changed(program, what)
        override = self.user.override()
        world.tell(
            f"== {what} {override}: { {name: node_set.replicas for name, node_set in program.node_sets.items()} }"
        )
        self._note_policies(program, override)
        self.faults.on = True
        sets = {*world.kubernetes.sets}
        world.watch.disturbed = set()
        in_service = {name for name, node in world.slurm.nodes.items() if not node.drain}
        try:
            os.environ[SOPERATOR_DRAIN] = f"hpc: {override}"
            if what == "destroy":
                outcome = self._attempt(self.engine.destroy)
            else:
                if choices.byte() & 1:
                    self._previewed(program)
                outcome = self._up(program, refresh=bool(choices.byte() & 1))
        finally:
            self.faults.on = False
            del os.environ[SOPERATOR_DRAIN]
        # Once the gate has freed all, a guard that cannot free its node set puts back only that.
        one_pass = what != "destroy" or "DrainGate" in self.engine.state
        if isinstance(outcome, DrainError) and one_pass and not self.faults.unbearable:
            self._require_back(in_service, program)
        if isinstance(outcome, DrainError) and not self.faults.happened and what == "destroy":
            deleted = (sets & program.node_sets.keys()) - world.kubernetes.sets.keys()
            self._require(not deleted, f"aborted, and the StatefulSets {deleted} have been deleted before")
        return what == "destroy" and outcome is None, program

    def _require_back(self, in_service: set[str], program: Program) -> None:
        """After an abort all that stays and was in service is in service again."""
        policies = [policy for policies_of_set in self.world.watch.policies.values() for policy in policies_of_set]
        if not all(policy.wait for policy in policies) or not self.world.watch.has_seen_its_drains():
            return
        pods = self.world.kubernetes.pods.values()
        sizes = {name: self.engine.recorded_size(name) for name in program.node_sets}
        staying = {pod.name for pod in pods if pod.going_since is None and pod.ordinal < sizes.get(pod.node_set, 0)}
        left = drained_by_us(self.world.slurm, (in_service & staying) - self.world.watch.disturbed)
        # Those of a StatefulSet that was replaced come back with the next run: this one did not get so far.
        left = [name for name in left if ": replacement " not in self.world.slurm.nodes[name].reason]
        self._require(not left, f"aborted, and {left} stay drained")

    def _up(self, program: Program, *, refresh: bool = False) -> SoperatorError | KilledError | None:
        return self._attempt(lambda: self.engine.up(program, refresh=refresh))

    def _attempt(self, operation: Callable[[], None]) -> SoperatorError | KilledError | None:
        """Run, and return how it ended: None when well."""
        self.faults.begin_run()
        self.world.watch.begin_run(self.world.time)
        try:
            operation()
        except (SoperatorError, KilledError) as error:
            self.world.tell(f"== {type(error).__name__}: {error}")
            self._judge_run()
            return error
        self.world.tell("== done")
        self._judge_run()
        return None

    def _judge_run(self) -> None:
        if self.world.watch.violations:
            raise ViolationError("\n".join(self.world.watch.violations))
        self.world.watch.ends_run()

    def _previewed(self, program: Program) -> None:
        """Preview: whatever it meets, it changes nothing."""
        self.world.watch.previewing = True
        self._attempt(lambda: self.engine.preview(program))
        self.world.watch.previewing = False

    def _in_the_wrong_place(self, program: Program) -> None:
        """Run with a kubeconfig of another cluster, where everything has the same names.

        A StatefulSet whose guard has gone before is Pulumi's own to delete, wherever it is sent.
        """
        if any(f"DrainGate {name}" not in self.engine.state for name in self.engine.sets()):
            return
        kubernetes, watch = self.world.kubernetes, self.world.watch
        right, kubernetes.namespace_uid, watch.wrong_place = kubernetes.namespace_uid, "uid-of-another", True
        self.world.tell("== in the wrong place")
        smaller = {name: NodeSet(**{**vars(node_set), "replicas": 0}) for name, node_set in program.node_sets.items()}
        operations = (lambda: self.engine.up(Program(smaller)), self.engine.destroy)
        self._attempt(self.choices.of(operations))
        kubernetes.namespace_uid, watch.wrong_place = right, False

    def _without_controller(self, program: Program) -> None:
        """Destroy where slurmctld is gone for good, or the whole namespace: only when the user has said so.

        Where a killed run has deleted every gate, all nodes have been drained, and only records are left to delete.
        """
        world = self.world
        guarded = any(name.split()[0] == "DrainGate" for name in self.engine.state)
        self._note_policies(program)
        gone = self.choices.of(("its pod", "its namespace"))
        world.tell(f"== {gone} is gone for good")
        world.slurm.crash(1e9)
        world.kubernetes.controller = False
        if gone == "its namespace":
            for pod in [*world.kubernetes.pods.values()]:
                world.kubernetes.die(pod)
            world.kubernetes.sets.clear()
            world.kubernetes.namespace_uid = None
        outcome = self._attempt(self.engine.destroy)
        ran = any(pod.ran for pod in world.kubernetes.pods.values())
        may_be_there = guarded and (ran or gone == "its namespace")
        self._require(outcome is not None or not may_be_there, "destroyed though it may be there")
        os.environ[CONTROLLER_LOST], world.watch.controller_lost = "hpc", True
        self._expect(self._attempt(self.engine.destroy), "destroying what is lost")
        del os.environ[CONTROLLER_LOST]

    def _note_policies(self, program: Program, override: str = "{}") -> None:
        recorded = self.engine.recorded_policies()
        declared = {name: [node_set.policy] for name, node_set in program.node_sets.items()}
        names = {*recorded, *declared}
        self.world.watch.policies |= {
            name: [
                overridden(drain_spec, override) for drain_spec in (*declared.get(name, []), *recorded.get(name, []))
            ]
            for name in names
        }
        self.world.watch.budgets |= {
            name: Share(node_set.max_unavailable) for name, node_set in program.node_sets.items()
        }

    # -- the end --------------------------------------------------------------------------------------------------

    def _end(self, program: Program, *, destroyed: bool) -> None:
        """Without further faults everything becomes as it is wanted, and no protected job is lost."""
        self.world.tell("== the end")
        if destroyed:
            self._require(not self.world.kubernetes.sets, "a StatefulSet is left")
            return
        outcome = None
        for _ in range(_FINAL_RUNS):
            self._calm()
            self.world.watch.disturbed = set()
            self._note_policies(program)
            outcome = self._up(program, refresh=True)
            if outcome is None and not self._lacks(program):
                break
        self._expect(outcome, "the last up")
        self._require(not (lacks := self._lacks(program)), "; ".join(lacks))
        acts = self.world.watch.acts
        self._expect(self._up(program), "an up without a change")
        self._require(self.world.watch.acts == acts, "an up without a change did something")
        self._calm()
        self._require_kept_jobs()
        self._expect(self._attempt(self.engine.destroy), "the last destroy")
        self._require(not self.world.kubernetes.sets, "a StatefulSet is left")

    def _calm(self) -> None:
        """Let others mend what is theirs, and jobs come to their end."""
        outside.mend(self.world)
        for job in self.world.slurm.jobs.values():
            job.ends_at = min(job.ends_at, self.world.time + _JOB_SECONDS)
        self.world.advance(3 * _JOB_SECONDS)

    def _lacks(self, program: Program) -> list[str]:
        """Return what is not as the program wants it."""
        kubernetes, slurm = self.world.kubernetes, self.world.slurm
        wanted = {
            f"{name}-{ordinal}" for name, node_set in program.node_sets.items() for ordinal in range(node_set.replicas)
        }
        ready = {pod.name for pod in kubernetes.pods.values() if pod.ready and pod.going_since is None}
        old = [
            pod.name
            for pod in kubernetes.pods.values()
            if pod.node_set in program.node_sets
            and pod.revision != f"{pod.node_set}-{program.node_sets[pod.node_set].template}"
        ]
        # What someone else drained stays drained also without a pod: its drain is in force when the node is back.
        kept = {name for name, node in slurm.nodes.items() if (node.drain or node.fail) and name not in wanted}
        kept -= set(drained_by_us(slurm, kept))
        checks = {
            f"StatefulSets {sorted(kubernetes.sets)}": sorted(kubernetes.sets) == sorted(program.node_sets),
            f"pods {sorted(kubernetes.pods)} instead of {sorted(wanted)}": kubernetes.pods.keys() == wanted,
            f"not ready: {sorted(wanted - ready)}": wanted <= ready,
            f"of an older template: {old}": not old,
            f"records {sorted(slurm.nodes)} instead of {sorted(wanted)}": slurm.nodes.keys() - kept == wanted,
            f"still drained by this stack: {drained_by_us(slurm, wanted)}": not drained_by_us(slurm, wanted),
        }
        return [what for what, holds in checks.items() if not holds]

    def _require_kept_jobs(self) -> None:
        """No one's job ended but by its own work, by a policy, or by others."""
        slurm = self.world.slurm
        lost = [job.job_id for job in slurm.finished if job.state == "NODE_FAIL" and not job.by_others]
        self._require(not lost, f"jobs {lost} were lost")

    def _expect(self, outcome: SoperatorError | KilledError | None, what: str) -> None:
        self._require(outcome is None, f"{what} failed: {outcome}")

    def _require(self, holds: object, otherwise: str) -> None:
        if not holds:
            raise ViolationError(otherwise)


def play(data: bytes, focus: Focus = EVERYTHING) -> Trace:
    """Play a trace, and return it."""
    with mock.patch.dict(os.environ):
        os.environ.pop(CONTROLLER_LOST, None)
        os.environ.pop(SOPERATOR_DRAIN, None)
        trace = Trace(data, focus)
        trace.run()
    return trace
