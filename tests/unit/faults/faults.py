"""Faults, and acts of others meanwhile: chosen by bytes, before and around every call that our code makes.

A trace is a string of bytes. Each call takes one: small values, and all past the end, are quiet, so that what
hypothesis takes away is what the trace does not need.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from soperator_pulumi.errors import KubernetesError, TransportError
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.objects import KilledError
from tests.fakes.slurm_programs import expand
from tests.unit.faults import outside
from tests.unit.faults.world import World

T = TypeVar("T")

QUIET = 210
"""Of 256 values so many are quiet."""

_CALL_SECONDS = 0.06
_OTHERS_SECONDS = 1.0
_LOST_SECONDS = 3.0
_SLOW_SECONDS = 20.0
_LATE_SECONDS = 10.0
_REFUSED_SECONDS = 9.0
"""So long Slurm's client programs try to reach a slurmctld that is down."""

_SOCKET_TIMED_OUT = Answer(1, "", "slurm_load_node error: Socket timed out on send/recv operation")

ANSWERS = (
    "lost before",
    "lost after",
    "lost, done later",
    "truncated",
    "stale",
    "duplicated",
    "slow answer",
    "slow command",
    "timed out, not done",
    "timed out, done",
)
UNBEARABLE = ("lost, done later", "crash", "crash and forget", "state lost")
UPDATES_ONLY = " update"
"""Ends a kind that befalls no other command."""

KILLS = ("killed before", "killed after")
ALL = (*ANSWERS, *KILLS, *outside.EVENTS, *outside.USUAL, *outside.USUAL)


@dataclass
class Choices:
    """The bytes of a trace, read from left to right; 0 past the end."""

    data: bytes
    position: int = 0

    def byte(self) -> int:
        """Return the next one."""
        self.position += 1
        return self.data[self.position - 1] if self.position <= len(self.data) else 0

    def of(self, options: Sequence[T]) -> T:
        """Choose; the first is the simplest."""
        return options[self.byte() % len(options)]


@dataclass(frozen=True)
class Given:
    """An answer that was given before."""

    moment: int
    second: int
    """When the node table had changed last: Slurm tells whole seconds, and no stale answer within one can be known."""
    answer: Answer


@dataclass
class Faults:
    """Decides what happens at each call, as long as it is on."""

    world: World
    choices: Choices
    kinds: Sequence[str] = ALL
    quiet: int = QUIET
    on: bool = False
    dead: bool = False
    """True if the process that makes the calls was killed."""
    happened: int = 0
    """In this run."""
    unbearable: int = 0
    """Of these, those after which a run need not put back what it drained."""
    answers: dict[tuple[str, ...], list["Given"]] = field(default_factory=dict)

    def begin_run(self) -> None:
        """A new process."""
        self.dead, self.happened, self.unbearable = False, 0, 0

    def next(self) -> str:
        """Return what goes wrong with this call; what others do before it is done."""
        if self.dead:
            raise KilledError
        self.world.watch.calls += 1
        byte = self.choices.byte() if self.on else 0
        if byte < self.quiet or not self.kinds:
            return ""
        kind = self.choices.of(self.kinds)
        if not kind:
            return ""
        self.unbearable += kind in UNBEARABLE
        if kind in outside.EVENTS:
            reported = outside.EVENTS[kind](self.world, self.choices.byte())
            if reported:
                self.happened += 1
                self.world.tell(f"({kind}: {reported})")
                self.world.watch.happens()
                self.world.advance(_OTHERS_SECONDS)
            return ""
        self.happened += 1
        self.world.tell(f"[{kind}]")
        return kind

    def die(self) -> None:
        """End the process."""
        self.dead = True
        raise KilledError

    def act(self, kind: str, what: str, act: Callable[[], T], lost: Callable[[], Exception]) -> T:
        """Do one call, with what goes wrong before and after it."""
        world = self.world
        if kind == "killed before":
            self.die()
        if kind == "lost before":
            world.advance(_LOST_SECONDS)
            raise lost()
        if kind == "slow command":
            world.advance(_SLOW_SECONDS)
        done = act()
        world.tell(what)
        if kind == "duplicated":
            done = act()
        if kind == "killed after":
            self.die()
        if kind == "lost after":
            world.advance(_LOST_SECONDS)
            raise lost()
        return done


@dataclass(frozen=True)
class FaultyTransport:
    """Runs commands in the controller's pod, or does not."""

    faults: Faults

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        assert not stdin
        assert timeout_seconds > 0
        kind, world = self.faults.next(), self.faults.world
        if kind.endswith(UPDATES_ONLY):
            kind = kind.removesuffix(UPDATES_ONLY) if command[:2] == ["scontrol", "update"] else ""
        world.time += _CALL_SECONDS
        world.slurm.now = world.time
        if not world.kubernetes.controller or world.kubernetes.namespace_uid is None:
            raise _lost()
        if kind == "timed out, not done":
            return _SOCKET_TIMED_OUT
        if command[:2] in (["scontrol", "show"], ["squeue", "--json"]):
            return self._read(kind, command)
        if kind == "lost, done later":
            world.after(_LATE_SECONDS, lambda: self._late(command))
            kind = "lost before"
        return self._answered(kind, command)

    def _read(self, kind: str, command: Sequence[str]) -> Answer:
        """Ask, and note which answers are true."""
        faults, world, key = self.faults, self.faults.world, tuple(command)
        before = faults.answers.get(key, [])
        older = [given for given in before[::-1] if given.second < int(world.slurm.changed_at)]
        if kind == "stale" and older:
            world.tell(f"{' '.join(command)} -> stale")
            stale = faults.choices.of(older)
            world.watch.looked(_kind(command), stale.moment, stale=True)
            return stale.answer
        moment = world.watch.happens()
        answer = self._answered("lost before" if kind == "lost, done later" else kind, command)
        if answer.returncode == 0 and kind != "truncated":
            faults.answers[key] = [*before[-3:], Given(moment, int(world.slurm.changed_at), answer)]
            world.watch.looked(_kind(command), moment)
        return answer

    def _answered(self, kind: str, command: Sequence[str]) -> Answer:
        world = self.faults.world
        answer = self.faults.act(kind, " ".join(command), lambda: world.programs.run(command), _lost)
        if answer.returncode:
            world.tell(f"  -> {answer.stderr}")
        if not world.slurm.up:
            world.advance(_REFUSED_SECONDS)
        if kind == "slow answer":
            world.advance(_SLOW_SECONDS)
        if kind == "timed out, done":
            return _SOCKET_TIMED_OUT
        return self._truncated(answer) if kind == "truncated" else answer

    def _truncated(self, answer: Answer) -> Answer:
        share = self.faults.choices.byte() / 256
        cut = {name: text[: int(len(text) * share)] for name, text in vars(answer).items() if name != "returncode"}
        return dataclasses.replace(answer, **cut)

    def _late(self, command: Sequence[str]) -> None:
        """Do what no one waits for any more. Who looked before could not know."""
        world = self.faults.world
        names = [name for word in command if word.startswith("nodename=") for name in expand(word[9:])]
        if "delete" in command or not world.slurm.up:
            return
        world.tell(f"done late: {' '.join(command)}")
        self.faults.unbearable += 1  # for the run of now, whose command it is not
        moment = world.watch.happens()
        world.watch.disturbed |= set(names)
        for name in names:
            if "state=drain" not in command:
                world.watch.lifted[name] = moment
        world.watch.belated = True
        world.programs.run(command)
        world.watch.belated = False


def _lost() -> TransportError:
    return TransportError("pod hpc/controller-0: the connection broke.")


def _kind(command: Sequence[str]) -> str:
    return "jobs" if command[0] == "squeue" else command[2]


@dataclass(frozen=True, eq=False)
class FaultyKube:
    """The Kubernetes API, which may not be reached."""

    faults: Faults

    def __str__(self) -> str:
        return "https://model"

    def get(self, path: str) -> Json | None:
        return self._call(f"get {path}", lambda: self.faults.world.kubernetes.get(path))

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        watch, world = self.faults.world.watch, self.faults.world
        moment = watch.happens()
        found = self._call(f"find {path}", lambda: world.kubernetes.find(path, labels, fields))
        watch.looked("pods", moment)
        return found

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = "soperator-pulumi") -> Json:
        del manager
        return self._call(f"create {path}", lambda: self.faults.world.kubernetes.create(path, body, dry_run=dry_run))

    def apply(self, path: str, body: Json, *, manager: str = "soperator-pulumi") -> Json:
        del manager
        return self._call(f"apply {path}", lambda: self.faults.world.kubernetes.apply(path, body))

    def merge(self, path: str, body: Json) -> Json | None:
        return self._call(f"merge {path}", lambda: self.faults.world.kubernetes.merge(path, body))

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        assert not dependents_first
        self._call(f"delete {path}", lambda: self.faults.world.kubernetes.delete(path))

    def log(
        self, path: str, container: str, *, previous: bool = False, since_seconds: int | None = None, lines: int = 50
    ) -> str:
        del path, container, previous, since_seconds, lines
        return ""

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> FaultyTransport:
        assert (namespace, pod, container, coreutils) == ("hpc", "controller-0", "slurmctld", True)
        return FaultyTransport(self.faults)

    def _call(self, what: str, act: Callable[[], T]) -> T:
        kind = self.faults.next()
        self.faults.world.time += _CALL_SECONDS / 10
        kind = kind if kind in {*KILLS, "lost before", "lost after", "slow command"} else ""
        return self.faults.act(kind, what, act, lambda: KubernetesError(f"The Kubernetes API is not reached: {what}."))
