"""`make check`: format and lint, then types, layers and the quick tests in parallel."""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from tools import console, paths
from tools.console import UserError, say


@dataclass(frozen=True)
class SourceCheck:
    """A program that checks the source tree and reports by its exit code.

    Attributes:
        name: Its name in the report.
        line: The program and its arguments, to be run in the root of the tree, as a shell takes them.
        live: Print its output as it comes. By default it is printed at the end, and only if the check fails.
    """

    name: str
    line: str
    live: bool = False


FIRST = (
    SourceCheck("format", ".venv/bin/ruff format --check ."),
    SourceCheck("lint", ".venv/bin/ruff check ."),
)
"""Checks that take a second."""

THEN = (
    SourceCheck("types", ".venv/bin/mypy"),
    SourceCheck(
        "layers",
        "env PYTHONPATH=images/containers:images/exporter:images/health:images/jail-tools:images/wire "
        ".venv/bin/lint-imports --no-logo",
    ),
    SourceCheck(
        "tests",
        # pytest keeps what it compiles of tests, or would compile for half a minute of each processor in every run.
        "env -u PYTHONDONTWRITEBYTECODE "
        ".venv/bin/python -m pytest -n auto --dist loadfile tests/unit tests/rendered images",
        live=True,
    ),
)
"""Checks that take longer. The tests have a process per processor; the others use what these leave."""


@dataclass(frozen=True)
class EndedCheck:
    """A check that has ended.

    Attributes:
        check: The check.
        passed: True if its program ended with 0.
        seconds: Time that it took.
        output: Everything that it printed, empty if that was printed as it came.
    """

    check: SourceCheck
    passed: bool
    seconds: float
    output: str

    @property
    def text(self) -> str:
        """One line, followed by the output if the check failed."""
        line = f"==> {self.check.name}: {'passed' if self.passed else 'FAILED'} after {self.seconds:.0f} s"
        return line if self.passed else f"{line}\n{self.output}".rstrip()


def carry_out(*stages: Sequence[SourceCheck]) -> None:
    """Run the checks of every stage in parallel, one stage after another, and report every check when it ends.

    All of them run, whatever fails.

    Raises:
        UserError: Checks failed. Their output stands above it.
    """
    ended = [ended_check for stage in stages for ended_check in _reported(stage)]
    failed = [ended_check for ended_check in ended if not ended_check.passed]
    for ended_check in failed:
        if ended_check is not ended[-1]:  # others have printed since
            say(ended_check.text)
    if failed:
        names = ", ".join(ended_check.check.name for ended_check in failed)
        raise UserError(
            "\n    ".join(
                [f"failed: {names}. To repeat that alone:", *(ended_check.check.line for ended_check in failed)]
            )
        )


def _reported(stage: Sequence[SourceCheck]) -> Iterator[EndedCheck]:
    with ThreadPoolExecutor(len(stage)) as pool:
        for future in as_completed([pool.submit(_run, source_check) for source_check in stage]):
            ended = future.result()
            say(ended.text)
            yield ended


def _run(check: SourceCheck) -> EndedCheck:
    began = time.monotonic()
    output = None if check.live else subprocess.PIPE
    done = subprocess.run(
        [
            "setpriv",
            "--pdeathsig",
            "TERM",
            "--",
            *shlex.split(check.line),
        ],  # it ends with this process, however that does
        cwd=paths.ROOT,
        stdout=output,
        stderr=output and subprocess.STDOUT,
        text=True,
        check=False,
    )
    return EndedCheck(check, done.returncode == 0, time.monotonic() - began, done.stdout or "")


def main() -> None:
    """Check the source tree."""
    carry_out(FIRST, THEN)


if __name__ == "__main__":
    sys.exit(console.run(main))
