"""Progress of an operation: lines for people, and bounded waits."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


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
        """Sleep."""
        time.sleep(seconds)


Report = Callable[[str], None]


def report(text: str) -> None:
    """Print lines, which Pulumi shows beside the resource at once.

    Pulumi reads the port of the provider's process from standard output first; after that the stream is free.

    Raises:
        BrokenPipeError: the engine was killed. The error ends a process that nobody can reach or stop any more.
    """
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def until(deadline: float, clock: Clock, *, first: float = 0.2, longest: float = 1.0) -> Iterator[float]:
    """Yield the seconds left until `deadline`, at least once, with growing pauses between."""
    pause = first
    while True:
        left = deadline - clock.now()
        yield max(0.0, left)
        if left <= 0:
            return
        clock.sleep(min(pause, left))
        pause = min(pause * 1.1, longest)
