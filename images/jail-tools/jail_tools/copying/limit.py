"""A limit on how fast all processes together write."""

import multiprocessing
import time
from multiprocessing.context import ForkContext

MIB = 1024 * 1024


class Limit:
    """A number of MiB a second, shared by this process and those that it forks.

    Each piece of data reserves the time that it takes at that rate; who finds the time taken waits for its own.
    """

    def __init__(self, mib_per_second: float | None) -> None:
        """Make a limit; None is none."""
        context: ForkContext = multiprocessing.get_context("fork")
        self._seconds_per_byte = 1 / (mib_per_second * MIB) if mib_per_second else 0.0
        self._free_at = context.Value("d", 0.0)

    def pace(self, size: int) -> None:
        """Wait until a number of bytes may be written."""
        if not self._seconds_per_byte:
            return
        with self._free_at:
            now = time.monotonic()
            begins = max(now, self._free_at.value)
            self._free_at.value = begins + size * self._seconds_per_byte
        if begins > now:
            time.sleep(begins - now)
