"""Output of a long command, at most one progress line per second."""

import multiprocessing
import sys
import time

from jail_tools.errors import encoded

MIB = 1024 * 1024
INTERVAL_SECONDS = 1.0


def log(line: str) -> None:
    """Print one line to standard output at once."""
    sys.stdout.buffer.write(encoded(line) + b"\n")
    sys.stdout.buffer.flush()


class Progress:
    """Counts files and bytes in this process and in those that it forks, and reports them."""

    def __init__(self, title: str, files: int | None = None, size: int | None = None) -> None:
        """Start at zero.

        Args:
            title: beginning of each line.
            files: number of all files; None when it is not known.
            size: number of all bytes; None when it is not known.
        """
        context = multiprocessing.get_context("fork")
        self._title = title
        self._all_files = files
        self._all_bytes = size
        self._files = context.Value("q", 0)
        self._bytes = context.Value("q", 0)
        self._reported_at = time.monotonic()

    def add_files(self, files: int) -> None:
        """Count finished files."""
        with self._files:
            self._files.value += files

    def add_bytes(self, size: int) -> None:
        """Count finished bytes."""
        with self._bytes:
            self._bytes.value += size

    def line(self) -> str:
        """Return the progress as a line: `populate: 12,345 of 30,000 files, 512 of 900 MiB`."""
        of_files = "" if self._all_files is None else f" of {self._all_files:,}"
        of_bytes = "" if self._all_bytes is None else f" of {self._all_bytes // MIB:,}"
        return f"{self._title}: {self._files.value:,}{of_files} files, {self._bytes.value // MIB:,}{of_bytes} MiB"

    def report(self, more: str = "", *, now: bool = False) -> None:
        """Print the line, followed by `more`, if the last one is at least a second old or `now` is set."""
        moment = time.monotonic()
        if now or moment - self._reported_at >= INTERVAL_SECONDS:
            self._reported_at = moment
            log(self.line() + more)
