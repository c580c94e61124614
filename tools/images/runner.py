"""Programs of a build: with a time limit and progress, and ended with this process."""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import tasks
from tools.console import UserError

TIMEOUT_SECONDS = 15 * 60
"""Time limit of one program. A base takes 20 seconds from a near mirror; a slow line may take minutes."""

_SILENCE_SECONDS = 5
"""Time without progress after which the program's last line is printed."""

_LAST_LINES = 15
_LINE_LENGTH = 90

CONFINED = (
    # Ends with us, even by kill -9, and so do its children; their mounts are in a namespace of their own.
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)
"""Prefix of all commands: util-linux, which every Debian has."""

Progress = Callable[[str], None]
Interesting = Callable[[str], str | None]
"""Function that returns the progress in a line that a program prints, if any."""


@dataclass(frozen=True)
class Runner:
    """Runs programs of a build.

    Attributes:
        environment: Whole environment of the programs.
        log: File of all output.
        lock: Descriptor of the build's lock. Programs inherit the lock, and hold it while they run.

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
        """Run one program to its end and return its lines.

        Args:
            what: Name of the step in an error: "Building the image login".
            command: Program and arguments.
            progress: Receives progress.
            interesting: Picks the lines that are progress.

        Raises:
            UserError: The program failed or exceeded `TIMEOUT_SECONDS`; with its last lines.

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
    """Return a text cut to the length of a line."""
    return text if len(text) <= _LINE_LENGTH else f"{text[: _LINE_LENGTH - 3]}..."
