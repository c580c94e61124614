"""Transport of commands to Slurm's programs.

Clients know only `Transport`, so other implementations are possible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_ENDED_BY_OTHERS = (124, 137)  # exit codes of `timeout`, and of a killed program


@dataclass(frozen=True)
class Answer:
    """Output and exit code of a command."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def timed_out(self) -> bool:
        """True if the command ran out of time or memory: its effect is unknown."""
        return self.returncode in _ENDED_BY_OTHERS

    @property
    def message(self) -> str:
        """Error message of the command: standard error, or standard output if that is empty."""
        return self.stderr.strip() or self.stdout.strip()


class Transport(Protocol):
    """Runs commands in a place that has Slurm's client programs."""

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command` and return its answer, also if the exit code is not 0.

        The command gets `stdin` without an end of file, so it must know how much to read.

        Raises:
            TransportError: no answer arrived in time. The command may have run.
        """
        ...
