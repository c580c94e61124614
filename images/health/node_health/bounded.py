"""Programs and calls that end within a time limit, whatever they do.

A process that waits in the kernel for a dead device or server cannot be killed. It is left behind, and its pid is
recorded. Until it ends, the same tool is not started again, so there is one such process per tool, not one per round.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

LARGEST_OUTPUT_BYTES = 4 * 1024**2

_KILL_SECONDS = 0.2
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_NOT_FOUND = 127


class ProgramEnd(NamedTuple):
    """End of a program."""

    status: int | None
    """Exit status, negative for a signal; None if the program had not ended in time."""
    output: str = ""
    errors: str = ""
    left: int = 0
    """Process that could not be ended; 0 if there is none."""

    @property
    def words(self) -> str:
        """First line that the program printed, or its status, in at most 80 printable characters."""
        lines = [line.strip() for line in (self.errors + "\n" + self.output).splitlines() if line.strip()]
        shown = "".join(line if line.isprintable() else "?" for line in (lines or [f"status {self.status}"])[0])
        return shown[:80]


class BoundedWork:
    """Work that another process does.

    Args:
        seconds: Time until it is killed.
        start: Starts the process with files for its output and its errors, and returns its pid.
    """

    def __init__(self, seconds: float, start: Callable[[int, int], int]) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._output, self._errors = (os.memfd_create(name) for name in ("output", "errors"))
        try:
            self._pid = start(self._output, self._errors)
        except OSError as error:
            self._pid = 0
            os.write(self._errors, f"{error.filename}: {error.strerror}".encode())

    def finish(self) -> ProgramEnd:
        """Wait for the end, at most until the bound, and return it."""
        try:
            return self._finish()
        finally:
            os.close(self._output)
            os.close(self._errors)

    def _finish(self) -> ProgramEnd:
        if not self._pid:
            return ProgramEnd(_NOT_FOUND, "", self._text(self._errors))
        status = self._status(self._deadline)
        if status is None:
            # The session's leader has the pid of its group: children of the program are killed as well.
            os.killpg(self._pid, signal.SIGKILL)
            left = self._status(time.monotonic() + _KILL_SECONDS) is None
            return ProgramEnd(None, self._text(self._output), self._text(self._errors), self._pid if left else 0)
        return ProgramEnd(status, self._text(self._output), self._text(self._errors))

    def _status(self, deadline: float) -> int | None:
        """Return the exit status; None if the process has not ended at the deadline."""
        watched = os.pidfd_open(self._pid)
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return None
        finally:
            os.close(watched)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    @staticmethod
    def _text(file: int) -> str:
        return os.pread(file, LARGEST_OUTPUT_BYTES, 0).decode(errors="replace")


class BoundedProgram(BoundedWork):
    """A program that has been started, with its own session and without any input.

    Args:
        command: Path and arguments. A path without a folder is looked up.
        seconds: Time until it is killed.
        variables: Further variables. Default: none.
    """

    def __init__(self, command: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None) -> None:
        def spawn(output: int, errors: int) -> int:
            null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
            to = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, errors, 2)]
            environment = {**_ENVIRONMENT, **(variables or {})}
            return os.posix_spawnp(command[0], [*command], environment, file_actions=[null, *to], setsid=True)

        super().__init__(seconds, spawn)


class BoundedCall(BoundedWork):
    """A function that runs in a forked process, without starting a program.

    Args:
        function: Returns what becomes output, piece by piece. An OSError ends the process with status 1 and its words.
        seconds: Time until the process is killed.
    """

    def __init__(self, function: Callable[[], Iterable[str]], seconds: float) -> None:
        def fork(output: int, errors: int) -> int:
            if pid := os.fork():
                return pid
            status = 1
            try:
                os.setsid()
                for text in function():
                    os.write(output, text.encode())
                status = 0
            except OSError as error:
                os.write(errors, (error.strerror or str(error)).encode())
            finally:
                os._exit(status)

        super().__init__(seconds, fork)


def is_there(pid: int) -> bool:
    """Return True for a process that has not ended. A zombie has ended."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False
