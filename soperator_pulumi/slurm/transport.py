"""How commands reach Slurm.

Everything above knows only `Transport`, so that another way (slurmrestd) can take its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_ENDED_BY_OTHERS = (124, 137)  # what `timeout` ends with, and a program that was killed


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was over, or for want of memory: what it has done is not known."""
        return self.returncode in _ENDED_BY_OTHERS

    @property
    def words(self) -> str:
        """What the command printed to say why it failed: standard error, or standard output when that is empty."""
        return self.stderr.strip() or self.stdout.strip()


class Transport(Protocol):
    """Runs one command where Slurm's client programs are."""

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command` and return its answer, whatever its exit code.

        It gets `stdin` without an end of file: it must know how much to read.

        Raises:
            TransportError: the command was not run, or its answer did not arrive in time. It may have been run.
        """
        ...
