"""What a person sees of a long command: one line a second at most."""

import multiprocessing
import sys
import time

from jail_tools.errors import encoded

MIB = 1024 * 1024
INTERVAL_SECONDS = 1.0


def say(line: str) -> None:
    """Print one line to standard output at once."""
    sys.stdout.buffer.write(encoded(line) + b"\n")
    sys.stdout.buffer.flush()


class Progress:
    """Counts files and bytes in this process and in those that it forks, and says how far they are."""

    def __init__(self, title: str, files: int | None = None, size: int | None = None) -> None:
        """Begin at nothing.

        Args:
            title: what the lines begin with.
            files: how many files there will be; None when nobody knows.
            size: how many bytes there will be; None when nobody knows.
        """
        context = multiprocessing.get_context("fork")
        self._title = title
        self._all_files = files
        self._all_bytes = size
        self._files = context.Value("q", 0)
        self._bytes = context.Value("q", 0)
        self._said_at = time.monotonic()

    def add_files(self, files: int) -> None:
        """Count files that are done."""
        with self._files:
            self._files.value += files

    def add_bytes(self, size: int) -> None:
        """Count bytes that are done."""
        with self._bytes:
            self._bytes.value += size

    def line(self) -> str:
        """Return how far it is: `populate: 12,345 of 30,000 files, 512 of 900 MiB`."""
        of_files = "" if self._all_files is None else f" of {self._all_files:,}"
        of_bytes = "" if self._all_bytes is None else f" of {self._all_bytes // MIB:,}"
        return f"{self._title}: {self._files.value:,}{of_files} files, {self._bytes.value // MIB:,}{of_bytes} MiB"

    def tell(self, more: str = "", *, now: bool = False) -> None:
        """Say how far it is, and `more` behind it, if the last time is a second ago or `now`."""
        moment = time.monotonic()
        if now or moment - self._said_at >= INTERVAL_SECONDS:
            self._said_at = moment
            say(self.line() + more)
