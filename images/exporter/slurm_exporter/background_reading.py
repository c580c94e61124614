"""Samples from a source that can hang: files on a volume, or a server."""

import threading
from collections.abc import Callable

from slurm_exporter.samples import Samples


class BackgroundReading:
    """The last samples of a source, read in a thread of its own, so that a hanging volume or server delays no round.

    Args:
        name: Name of the source, for the log.
        read: Returns its samples.
        report: Takes a line for the log.
    """

    def __init__(self, name: str, read: Callable[[], Samples], report: Callable[[str], None]) -> None:
        self._name, self._read, self._report = name, read, report
        self._problem = ""
        self._ended = threading.Event()
        self.samples: Samples = {}
        """Samples of the last successful read."""

    def start(self, interval: float) -> None:
        """Start the thread. It ends with the process."""
        threading.Thread(target=self._run, args=(interval,), daemon=True).start()

    def _run(self, interval: float) -> None:
        while not self._ended.wait(interval):
            self.take()

    def take(self) -> None:
        """Read the source once. A failure keeps the previous samples, and is reported only when it begins."""
        try:
            self.samples, problem = self._read(), ""
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"{self._name}: {type(error).__name__}: {error}"
        if problem and problem != self._problem:
            self._report(problem)
        self._problem = problem
