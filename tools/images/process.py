"""Running a build's programs: bounded, with progress, and so that nothing outlives us."""

import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.console import UserError

TIMEOUT_SECONDS = 15 * 60
"""Of one program. A whole base takes 20 seconds with a near mirror; a slow line may take minutes."""

_LAST_LINES = 15

CONFINED = (
    # Dies with us, even by kill -9, and takes its children along: their mounts and processes are in namespaces of its own.
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)


@dataclass(frozen=True)
class Runner:
    """Runs programs of a build.

    Attributes:
        environment: Of the programs, whole.
        log: Where their output goes.
        keep_open: Descriptors that they inherit: the lock, which so is held as long as any of them runs.

    """

    environment: Mapping[str, str]
    log: Path
    keep_open: Sequence[int] = field(default=())

    def __call__(
        self, what: str, command: Sequence[str], progress: Callable[[str], None] = lambda _: None, prefix: str = ""
    ) -> list[str]:
        """Run one program to its end and return the lines that it printed.

        Args:
            what: Names the step in an error: "Building image login".
            command: The program and its arguments.
            progress: Gets each line that starts with `prefix`.
            prefix: Of the lines that say how far it is; none without.

        Raises:
            UserError: It failed or took longer than `TIMEOUT_SECONDS`; says its last lines.

        """
        printed: list[str] = []
        with (
            self.log.open("a") as log,
            subprocess.Popen(
                [*CONFINED, *command],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=tuple(self.keep_open),
            ) as process,
        ):
            watchdog = threading.Timer(TIMEOUT_SECONDS, process.kill)
            watchdog.start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(line)
                    printed.append(line.rstrip("\n"))
                    if prefix and line.startswith(prefix):
                        progress(line.removeprefix(prefix).strip())
            except BaseException:
                process.kill()
                raise
            finally:
                watchdog.cancel()
        if process.returncode != 0:
            late = process.returncode == -signal.SIGKILL and not watchdog.is_alive()
            raise UserError(_failure(what, process.returncode, printed, self.log, late=late))
        return printed


def _failure(what: str, code: int, printed: Sequence[str], log: Path, *, late: bool) -> str:
    how = f"took longer than {TIMEOUT_SECONDS // 60} minutes" if late else f"failed (exit code {code})"
    last = "\n".join(f"    {line}" for line in deque((line for line in printed if line.strip()), _LAST_LINES))
    return f"{what} {how}. Its last lines:\n{last}\nAll of its output: {log}"
