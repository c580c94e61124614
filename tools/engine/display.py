"""Output of a run for a user: every finished step, its provider's messages below it, and a summary."""

import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence

from soperator_pulumi.cli.stack_changes import Failure, ResourceChange, StepOp
from soperator_pulumi.wording import listed

Say = Callable[[str], None]

_SIGNS = {
    StepOp.CREATE: "+",
    StepOp.UPDATE: "~",
    StepOp.REPLACE: "+-",
    StepOp.DELETE: "-",
    StepOp.READ: ">",
    StepOp.SAME: "",
}
_DONE = {
    StepOp.CREATE: "created",
    StepOp.UPDATE: "updated",
    StepOp.REPLACE: "replaced",
    StepOp.DELETE: "deleted",
    StepOp.READ: "read",
    StepOp.SAME: "unchanged",
}
_PATHS_SHOWN = 6
_CLASS = re.compile(r"(Exception|RuntimeError|\w+(\.\w+)+): ")


class Display:
    """Collects the steps of all resources, and prints them as they finish."""

    def __init__(self, say: Say, *, preview: bool) -> None:
        self._say = say
        self.preview = preview
        self._started = time.monotonic()
        self._began: dict[str, float] = {}
        self._messages: dict[str, list[str]] = {}
        self._changes: dict[tuple[str, StepOp], ResourceChange] = {}
        self._under = ""
        self.failures: list[Failure] = []

    @property
    def seconds(self) -> float:
        """Duration of the run so far."""
        return time.monotonic() - self._started

    def begin(self, urn: str) -> None:
        """Record the start of work on a resource."""
        self._began[urn] = time.monotonic()

    def say(self, urn: str, line: str) -> None:
        """Print a line below a resource, or below none."""
        self._messages.setdefault(urn, []).append(line)
        if urn and urn != self._under:
            self._say(f"{self._clock()}      {_title(urn)}")
        self._under = urn
        self._say(f"{self._clock()}          {line}")

    def step(self, urn: str, operation: StepOp, paths: Sequence[str] = ()) -> None:
        """Print a finished step or, in a preview, a planned one."""
        key = (urn, operation)
        self._changes[key] = ResourceChange(
            urn=urn, type=urn.split("::")[2].rpartition("$")[2], name=urn.rpartition("::")[2], operation=operation,
            paths=tuple(paths),
        )  # fmt: skip
        if operation is not StepOp.SAME:
            word = str(operation) if self.preview else _DONE[operation]
            took = time.monotonic() - self._began.get(urn, time.monotonic())
            took_text = f" ({took:.1f} s)" if took >= 0.1 and not self.preview else ""
            self._under = urn
            self._say(f"{self._clock()}  {_SIGNS[operation]:>2}  {_title(urn)}  {word}{took_text}{_diff(paths)}")

    def fail(self, urn: str, message: str) -> None:
        """Record and print a failure."""
        self.failures.append(Failure(urn=urn, message=message))
        title = _title(urn) if urn else "the program"
        self._under = ""
        self._say(f"{self._clock()}  !!  {title}  failed:")
        for line in message.splitlines():
            self._say(f"{'':19}{line}")

    def changes(self) -> tuple[ResourceChange, ...]:
        """Return the changes with the messages about their resources."""
        return tuple(
            ResourceChange(**{**vars(change), "messages": tuple(self._messages.get(change.urn, ()))})
            for change in self._changes.values()
        )

    def messages(self) -> tuple[str, ...]:
        """Return the messages that belong to no resource."""
        return tuple(self._messages.get("", ()))

    def summary(self) -> str:
        """Print and return the number of changes and the duration."""
        counts = Counter(change.operation for change in self._changes.values())
        words = [f"{counts[o]} {'to ' + o if self.preview else _DONE[o]}" for o in _DONE if counts[o]]
        if self.preview:
            words = [word.replace("to same", "unchanged") for word in words]
        text = f"{', '.join(words) or 'nothing to do'}; {self.seconds:.1f} s"
        self._say(f"{self._clock()}      {text}")
        return text

    def _clock(self) -> str:
        return f"{self.seconds:7.1f} s"


def _title(urn: str) -> str:
    return f"{urn.split('::')[2].rpartition('$')[2]}  {urn.rpartition('::')[2]}"


def _diff(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    return f"  [diff: {listed(paths, _PATHS_SHOWN)}]"


def last_words(text: str) -> str:
    """Return an exception's message without traceback and class; other texts unchanged."""
    lines = text.rstrip().splitlines()
    last_frame = max((i for i, line in enumerate(lines) if line.startswith('  File "')), default=-1)
    if last_frame < 0:
        return text
    message = "\n".join(itertools.dropwhile(lambda line: line.startswith("    "), lines[last_frame + 1 :]))
    return (message[match.end() :] if (match := _CLASS.match(message)) else message) or text


def failed(command: str, failures: list[Failure]) -> str:
    """Return the message of a failed run."""
    lines = [f"{f.name}: {f.message}" if f.urn else f.message for f in failures]
    return f"{command} failed:\n" + "\n".join(lines)
