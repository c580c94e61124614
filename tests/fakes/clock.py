"""Time that passes only where a test lets it."""

from collections.abc import Callable
from dataclasses import dataclass, field

EPOCH = 1_790_000_000.0
"""The fakes' time 0 as Slurm counts, in seconds since 1970."""


@dataclass
class FakeClock:
    """Time that passes only in sleep."""

    time: float = 0.0
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    """Events to come, each with its time."""

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        """Seconds since 1970."""
        return EPOCH + self.time

    def sleep(self, seconds: float) -> None:
        self.reach(self.time + seconds)

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        self.later.append((self.time + seconds, happens))

    def reach(self, time: float) -> None:
        """Come to a time, and let happen what is due."""
        self.time = time
        due = [happens for at, happens in self.later if at <= time]
        self.later = [(at, happens) for at, happens in self.later if at > time]
        for happens in due:
            happens()
