"""Progress of an operation: lines for people, and bounded waits."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from soperator_pulumi.errors import RunCancelledError


class Clock(Protocol):
    """Time, as a parameter: tests do not wait."""

    def now(self) -> float:
        """Return seconds that never go back."""
        ...

    def wall(self) -> float:
        """Return the seconds since 1970, Slurm's time."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""
        ...


@dataclass(frozen=True)
class MachineClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep.

        Raises:
            RunCancelledError: somebody cancelled the run.
        """
        CANCELLED.wait(seconds)
        unless_cancelled()


CANCELLED = Event()
"""Set once somebody has cancelled the run of this process: no operation waits or acts any more."""


def unless_cancelled() -> None:
    """Let an operation continue: it asks in each wait, and right before it acts.

    Raises:
        RunCancelledError: somebody cancelled the run.
    """
    if CANCELLED.is_set():
        raise RunCancelledError("cancelled: what was begun stays as it is. Run again to continue.")


Report = Callable[[str], None]

_shows: ContextVar[Report | None] = ContextVar("shows", default=None)
"""Shows the lines of the operation that runs, where standard output does not reach a person."""


def report(text: str) -> None:
    """Show lines, which Pulumi prints beside the resource at once.

    Pulumi reads the port of the provider's process from standard output first; after that the stream is free.

    Raises:
        BrokenPipeError: the engine was killed. The error ends a process that nobody can reach or stop any more.
    """
    if (show := _shows.get()) is not None:
        show(text)
        return
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def shown_by(show: Report) -> Iterator[None]:
    """Have the lines of an operation shown in another way than on standard output."""
    token = _shows.set(show)
    try:
        yield
    finally:
        _shows.reset(token)


def until(
    deadline: float, clock: Clock, *, first: float = 0.2, longest: float = 1.0, say: Report | None = None
) -> Iterator[float]:
    """Yield the seconds left until `deadline`, at least once, with growing pauses between.

    Args:
        deadline: Time of the clock at which the wait ends.
        clock: Waits.
        first: Seconds of the first pause.
        longest: Seconds of the longest pause.
        say: Gets the time left in words, every ten seconds. Default: the caller shows its progress itself.
    """
    pause, said_at = first, clock.now()
    while True:
        left = deadline - clock.now()
        yield max(0.0, left)
        if left <= 0:
            return
        if say is not None and clock.now() - said_at >= _SAY_SECONDS:
            said_at = clock.now()
            say(f"{left:.0f} s left")
        clock.sleep(min(pause, left))
        pause = min(pause * 1.1, longest)


def saying(report: Report, waits: str) -> Report:
    """Return the `say` of a wait, which reports lines such as "waits for slurmctld, 90 s left"."""
    return lambda left: report(f"{waits}, {left}")


def report_pause_seconds(elapsed_seconds: float) -> float:
    """Return the time between two lines of progress that are alike: longer in a long wait, which may take days."""
    return 60.0 if elapsed_seconds < _LONG_SECONDS else 300.0


_LONG_SECONDS = 600.0
_SAY_SECONDS = 10.0
