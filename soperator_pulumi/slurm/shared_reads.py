"""Reads of Slurm's state and of Kubernetes, shared between threads that ask at about the same time."""

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
    """Answers to questions, which are asked once for all threads that wait for them.

    A thread never gets an answer older than its question, unless it allows an age: a thread that asks while the
    question runs waits for the next run.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Create an empty set of answers.

        Args:
            now: Clock in seconds that never goes back.
        """
        self._now = now
        self._lock = Lock()
        self._next: dict[Hashable, Future[Any]] = {}
        """Runs that have not started."""
        self._last: dict[Hashable, tuple[float, Future[Any]]] = {}
        """The newest started runs, with their start times."""
        self._running: dict[Hashable, Lock] = {}

    def ask(self, question: Hashable, look: Callable[[], T], *, max_age_seconds: float = 0.0) -> T:
        """Return the result of `look`, which runs now or later, or started at most `max_age_seconds` ago.

        Raises:
            TransportError: the thread that ran `look` was interrupted.
            Exception: the error of `look`, in every waiting thread.
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
        """Run `look` for all waiting threads. An error or a Ctrl-C reaches all of them."""
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
        """Start the run: from now on only threads that allow an age join it."""
        with self._lock:
            if self._next.get(question) is answer:
                del self._next[question]
                self._last[question] = (self._now(), answer)


class SharedReads:
    """A transport that runs a reading command once for all threads that wait for it.

    The resources of all node sets read all nodes at the same moment.
    """

    def __init__(
        self,
        transport: Transport,
        answers: SharedAnswers | None = None,
        *,
        where: Hashable = None,
        max_age_seconds: float = 0.0,
    ) -> None:
        """Create a transport over another one.

        Args:
            transport: Transport that runs the commands.
            answers: Answers shared with other transports. Default: not shared.
            where: Key of the place where commands run, among transports that share answers.
            max_age_seconds: Largest accepted age of an answer.
        """
        self._transport = transport
        self._answers = answers or SharedAnswers()
        self._where = where
        self._max_age_seconds = max_age_seconds

    def __str__(self) -> str:
        """Return the place where commands run, for messages."""
        return str(self._transport)

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        """Run `command`, or wait for a run that another thread has started or will start."""
        parts = tuple(command)
        run = partial(self._transport.run, command, stdin=stdin, timeout_seconds=timeout_seconds)
        if stdin or not any(parts[: len(read)] == read for read in _READS):
            return run()
        return self._answers.ask((self._where, parts), run, max_age_seconds=self._max_age_seconds)
