"""Running a program to its end: bounded, and with its own words when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.console import UserError

_LAST_LINES = 15


def output(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
    timeout_seconds: float = 60,
    what: str | None = None,
) -> str:
    """Run `command`, and return its standard output.

    `environment` is added to this process's own. Raises UserError with the last lines that the program printed when it
    fails, is missing, or takes longer than `timeout_seconds`; `what` says in it what was being done.
    """
    words = [str(word) for word in command]
    doing = what or " ".join(words[:4])
    try:
        done = subprocess.run(
            words,
            input=stdin,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except FileNotFoundError:
        raise UserError(f"{doing}: there is no program {words[0]} on this machine") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{doing}: {words[0]} did not end within {timeout_seconds:g} s") from None
    if done.returncode:
        last = "\n".join(f"    {line}" for line in (done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:])
        raise UserError(f"{doing} failed (exit {done.returncode}):\n{last}")
    return done.stdout


def succeeds(command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> bool:
    """Tell whether `command` ends with exit code 0: for questions whose answer is the exit code."""
    try:
        output(command, environment=environment)
    except UserError:
        return False
    return True
