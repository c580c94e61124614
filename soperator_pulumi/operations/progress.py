"""Progress of an operation: lines for users, and bounded waits."""

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
    """Time as a parameter, so that tests do not wait."""

    def now(self) -> float:
        """Return the seconds of a clock that never goes back."""
        ...

    def wall(self) -> float:
        """Return the seconds since 1970, as Slurm counts time."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


@dataclass(frozen=True)
class MachineClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the seconds since an arbitrary moment."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`.

        Raises:
            RunCancelledError: the run was cancelled.
        """
        CANCELLED.wait(seconds)
        unless_cancelled()


CANCELLED = Event()
"""Set once this process's run is cancelled: from then on no operation waits or acts."""


def unless_cancelled() -> None:
    """Raise an error in a cancelled run. Operations call this in every wait, and right before they act.

    Raises:
        RunCancelledError: the run was cancelled.
    """
    if CANCELLED.is_set():
        raise RunCancelledError("cancelled: unfinished work stays as it is. Run again to continue.")


Report = Callable[[str], None]

_shows: ContextVar[Report | None] = ContextVar("shows", default=None)
"""Function that reports the lines of the running operation if standard output does not reach the user."""


def report(text: str) -> None:
    """Print a line, which Pulumi shows next to the resource at once.

    Pulumi reads the port of the provider's process from standard output first; afterwards the stream is unused.

    Raises:
        BrokenPipeError: the engine was killed. The error ends a process that can no longer be reached or stopped.
    """
    if (show := _shows.get()) is not None:
        show(text)
        return
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def shown_by(show: Report) -> Iterator[None]:
    """Report the lines of operations inside the context through `show` instead of standard output."""
    token = _shows.set(show)
    try:
        yield
    finally:
        _shows.reset(token)


def until(
    deadline: float, clock: Clock, *, first: float = 0.2, longest: float = 1.0, say: Report | None = None
) -> Iterator[float]:
    """Yield the seconds left until `deadline`, at least once, with growing pauses in between.

    A pause is at least as long as the caller's look before it, up to five seconds.

    Args:
        deadline: Time of the clock at which the wait ends.
        clock: Clock that waits.
        first: Seconds of the first pause.
        longest: Seconds of the longest pause after quick looks.
        say: Called with the time left, in words, every ten seconds. Default: the caller reports its progress.
    """
    pause, said_at = first, clock.now()
    while True:
        looked_at = clock.now()
        left = deadline - looked_at
        yield max(0.0, left)
        if left <= 0:
            return
        if say is not None and clock.now() - said_at >= _SAY_SECONDS:
            said_at = clock.now()
            say(f"{left:.0f} s left")
        clock.sleep(min(max(pause, rest_seconds(looked_at, clock)), left))
        pause = min(pause * 1.1, longest)


def rest_seconds(looked_at: float, clock: Clock) -> float:
    """Return the shortest pause after a look that began then: its own time, up to five seconds.

    A look at thousands of nodes takes seconds of the API server and of slurmctld, which others use, too. A Lease that
    is held must be renewed meanwhile.
    """
    return min(clock.now() - looked_at, _LONGEST_REST_SECONDS)


def saying(report: Report, waits: str) -> Report:
    """Return a `say` for `until` that reports lines such as "waits for slurmctld, 90 s left"."""
    return lambda left: report(f"{waits}, {left}")


def report_pause_seconds(elapsed_seconds: float) -> float:
    """Return the time between two similar progress lines, which is longer in a long wait: it may take days."""
    return 60.0 if elapsed_seconds < _LONG_SECONDS else 300.0


_LONGEST_REST_SECONDS = 5.0
_LONG_SECONDS = 600.0
_SAY_SECONDS = 10.0
