"""Reads of Slurm's state, shared by all who ask at the same time."""

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock

from soperator_pulumi.errors import TransportError
from soperator_pulumi.slurm.transport import Answer, Transport

_READS = (("scontrol", "show"), ("squeue",))
"""How commands begin that change nothing."""


class SharedReads:
    """Runs a command that only reads once for all who have asked before it begins.

    The resources of every node set look at all nodes at the same moment. None of them gets an answer that is older
    than its question: who comes while the command runs waits for the next run of it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = Lock()
        self._next: dict[tuple[str, ...], Future[Answer]] = {}
        """Runs that have not begun, by their commands."""
        self._running: dict[tuple[str, ...], Lock] = {}

    def __str__(self) -> str:
        """Where commands run, for messages."""
        return str(self._transport)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command`, or wait for a run of it that begins now or later."""
        words = tuple(command)
        if stdin or not any(words[: len(read)] == read for read in _READS):
            return self._transport.run(command, stdin=stdin, timeout_seconds=timeout_seconds)
        with self._lock:
            joined = self._next.get(words)
            answer = joined or self._next.setdefault(words, Future())
            running = self._running.setdefault(words, Lock())
        if joined is None:
            self._carry_out(answer, running, words, timeout_seconds)
        return answer.result()

    def _carry_out(self, answer: Future[Answer], running: Lock, words: tuple[str, ...], timeout_seconds: int) -> None:
        """Run a command for all who wait for it. They get its error, too, and are not left waiting by a Ctrl-C."""
        try:
            with running:
                self._begin(words, answer)
                answer.set_result(self._transport.run(words, timeout_seconds=timeout_seconds))
        except Exception as error:  # noqa: BLE001 - each of those who wait raises it
            answer.set_exception(error)
        except BaseException:
            self._begin(words, answer)
            answer.set_exception(TransportError(f"{self}: the one who asked first was interrupted."))
            raise

    def _begin(self, words: tuple[str, ...], answer: Future[Answer]) -> None:
        """Let nobody join any more."""
        with self._lock:
            if self._next.get(words) is answer:
                del self._next[words]
