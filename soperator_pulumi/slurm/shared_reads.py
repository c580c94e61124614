"""Reads of Slurm's state and of Kubernetes, shared by all who ask at the same time or a moment later."""

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from soperator_pulumi.errors import TransportError
from soperator_pulumi.slurm.transport import Answer, Transport

T = TypeVar("T")

_READS = (("scontrol", "show"), ("squeue",))
"""First words of commands that change nothing."""


class SharedAnswers:
    """Answers of questions, each asked once for all threads that wait for it.

    No thread gets an answer older than its own question, unless it allows an age: a thread that comes while the
    question runs waits for the next run.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Prepare.

        Args:
            now: Returns seconds of a clock that never goes back.
        """
        self._now = now
        self._lock = Lock()
        self._next: dict[Hashable, Future[Any]] = {}
        """Runs that have not begun."""
        self._last: dict[Hashable, tuple[float, Future[Any]]] = {}
        """The newest run that has begun, and its time."""
        self._running: dict[Hashable, Lock] = {}

    def ask(self, question: Hashable, look: Callable[[], T], *, max_age_seconds: float = 0.0) -> T:
        """Return the answer of `look`, run now or later, or begun at most `max_age_seconds` ago.

        Raises:
            TransportError: the thread that ran `look` was interrupted.
            Exception: the error of `look`, for each thread that waits.
        """
        with self._lock:
            joined = self._recent(question, max_age_seconds) or self._next.get(question)
            answer: Future[T] = joined or self._next.setdefault(question, Future())
            running = self._running.setdefault(question, Lock())
        if joined is None:
            self._carry_out(question, answer, running, look)
        return answer.result()

    def _recent(self, question: Hashable, max_age_seconds: float) -> Future[Any] | None:
        began_at, answer = self._last.get(question, (0.0, None))
        if answer is None or self._now() - began_at >= max_age_seconds:
            return None
        failed = answer.done() and answer.exception() is not None
        return None if failed else answer

    def _carry_out(self, question: Hashable, answer: Future[T], running: Lock, look: Callable[[], T]) -> None:
        """Run `look` for all threads that wait. An error or a Ctrl-C reaches each of them."""
        try:
            with running:
                self._begin(question, answer)
                answer.set_result(look())
        except Exception as error:  # noqa: BLE001 - each waiting thread raises it
            answer.set_exception(error)
        except BaseException:
            self._begin(question, answer)
            answer.set_exception(TransportError("The thread that asked first was interrupted."))
            raise

    def _begin(self, question: Hashable, answer: Future[Any]) -> None:
        """Begin the run: only threads that allow an age join it from now on."""
        with self._lock:
            if self._next.get(question) is answer:
                del self._next[question]
                self._last[question] = (self._now(), answer)


class SharedReads:
    """A transport that runs a reading command once for all threads that wait for it.

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
            answers: Answers shared with other transports; by default its own.
            where: Key of the place where commands run, among transports that share answers.
            max_age_seconds: Age that an answer may have.
        """
        self._transport = transport
        self._answers = answers or SharedAnswers()
        self._where = where
        self._max_age_seconds = max_age_seconds

    def __str__(self) -> str:
        """Return the place, for messages."""
        return str(self._transport)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command`, or wait for a run that another thread has begun or will begin."""
        parts = tuple(command)
        run = partial(self._transport.run, command, stdin=stdin, timeout_seconds=timeout_seconds)
        if stdin or not any(parts[: len(read)] == read for read in _READS):
            return run()
        return self._answers.ask((self._where, parts), run, max_age_seconds=self._max_age_seconds)
