"""Reads of Slurm's state, shared by all who ask at the same time."""

from collections.abc import Hashable, Sequence
from functools import partial

from soperator_pulumi.slurm.shared_answers import SharedAnswers
from soperator_pulumi.slurm.transport import Answer, Transport

_READS = (("scontrol", "show"), ("squeue",))
"""How commands begin that change nothing."""


class SharedReads:
    """Runs a command that only reads once for all who have asked before it begins.

    The resources of every node set look at all nodes at the same moment.
    """

    def __init__(
        self,
        transport: Transport,
        answers: SharedAnswers | None = None,
        *,
        where: Hashable = None,
        max_age_seconds: float = 0.0,
    ) -> None:
        """Prepare.

        Args:
            transport: Runs the commands.
            answers: Shared with others; by default none are.
            where: Tells the places apart where commands run, among those who share answers.
            max_age_seconds: How long before the question the command may have begun.
        """
        self._transport = transport
        self._answers = answers or SharedAnswers()
        self._where = where
        self._max_age_seconds = max_age_seconds

    def __str__(self) -> str:
        """Where commands run, for messages."""
        return str(self._transport)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command`, or wait for a run of it that others have asked for."""
        words = tuple(command)
        run = partial(self._transport.run, command, stdin=stdin, timeout_seconds=timeout_seconds)
        if stdin or not any(words[: len(read)] == read for read in _READS):
            return run()
        return self._answers.ask((self._where, words), run, max_age_seconds=self._max_age_seconds)
