"""Running a build's programs: bounded, with progress, and so that nothing of them outlives us."""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import tasks
from tools.console import UserError

TIMEOUT_SECONDS = 15 * 60
"""Of one program. A whole base takes 20 seconds with a near mirror; a slow line may take minutes."""

_SILENCE_SECONDS = 5
"""After so long without progress, the program's own last line is shown."""

_LAST_LINES = 15
_LINE_LENGTH = 90

CONFINED = (
    # Dies with us, even by kill -9, and takes its children along; their mounts are in an own namespace.
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)
"""What starts each program: util-linux, on every Debian."""

Progress = Callable[[str], None]
Interesting = Callable[[str], str | None]
"""Gives what to show of a line that a program prints, if anything."""


@dataclass(frozen=True)
class Runner:
    """Runs programs of a build.

    Attributes:
        environment: Of the programs, whole.
        log: Where all of their output goes.
        lock: The descriptor of the build's lock. They inherit it, so it is held as long as any of them runs.

    """

    environment: Mapping[str, str]
    log: Path
    lock: int

    def __call__(
        self,
        what: str,
        command: Sequence[str],
        progress: Progress = lambda _: None,
        interesting: Interesting = lambda _: None,
    ) -> list[str]:
        """Run one program to its end and return the lines that it printed.

        Args:
            what: Names the step in an error: "Building the image login".
            command: The program and its arguments.
            progress: Is told how far it is.
            interesting: Chooses the lines that say so.

        Raises:
            UserError: It failed or took longer than `TIMEOUT_SECONDS`; with its last lines.

        """
        printed: list[str] = []
        shown = time.monotonic()
        with self.log.open("a") as log, tasks.program(lambda: self._start(command)) as process:
            watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)
            watchdog.start()
            try:
                for line in process.stdout or ():
                    log.write(line)
                    printed.append(line.rstrip())
                    text = interesting(line.strip())
                    if text is None and " " in line.strip() and time.monotonic() - shown > _SILENCE_SECONDS:
                        text = line.strip()
                    if text:
                        progress(shortened(text))
                        shown = time.monotonic()
            finally:
                late = watchdog.finished.is_set()
                watchdog.cancel()
        if process.returncode != 0:
            how = f"took longer than {TIMEOUT_SECONDS // 60} minutes" if late else f"failed ({process.returncode})"
            last = "\n".join(f"    {line}" for line in [line for line in printed if line][-_LAST_LINES:])
            raise UserError(f"{what} {how}. Its last lines:\n{last}\nAll of its output: {self.log}")
        return printed

    def _start(self, command: Sequence[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*CONFINED, *command],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[self.lock],
        )


def shortened(text: str) -> str:
    """Return a text that fits on a line."""
    return text if len(text) <= _LINE_LENGTH else f"{text[: _LINE_LENGTH - 3]}..."
