"""Programs run to their end, with a time limit, and with their last lines in an error."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tools import tasks
from tools.console import UserError

_LAST_LINES = 15
_REPORT_SECONDS = 5


def output(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
    timeout_seconds: float = 60,
    what: str | None = None,
) -> str:
    """Run `command`, and return its standard output. `environment` adds to this process's own.

    Raises:
        UserError: The program is missing, failed (with its last lines) or took too long; `what` names the act.
    """
    words = [str(word) for word in command]
    act = what or " ".join(words[:4])

    def start() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    try:
        with tasks.program(start) as process:
            printed, errors = process.communicate(stdin, timeout=timeout_seconds)
    except FileNotFoundError:
        raise UserError(f"{act}: {words[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{act}: {words[0]} did not end within {timeout_seconds:g} s") from None
    if process.returncode:
        lines = (errors or printed).strip().splitlines()
        raise UserError(f"{act} failed (exit {process.returncode}):\n{_last(lines)}")
    return printed


def watched(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    cwd: Path,
    timeout_seconds: float,
    what: str,
    report: Callable[[list[str]], None],
    pass_fds: Sequence[int] = (),
) -> list[str]:
    """Run a long `command`, and return its lines, errors included.

    `report` receives the lines so far every few seconds. The command inherits the descriptors `pass_fds`. Failures are
    as with `output`. Programs that the command has started end with it, and it ends with this process, even if this is
    killed.
    """
    with tempfile.TemporaryFile("w+") as log:

        def lines() -> list[str]:
            log.seek(0)
            return log.read().splitlines()

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                env={**os.environ, **environment},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                pass_fds=pass_fds,
            )

        deadline = time.monotonic() + timeout_seconds
        with tasks.program(start) as process:
            try:
                while not _ended(process):
                    report(lines())
                    if time.monotonic() > deadline:
                        raise UserError(f"{what} did not end within {timeout_seconds:g} s")
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise UserError(f"{what} failed (exit {process.returncode}):\n{_last(lines())}")
        return lines()


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_REPORT_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _last(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])
