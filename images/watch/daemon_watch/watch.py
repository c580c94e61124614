"""Actions that follow from a daemon's answers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from daemon_watch.questions import Question, Questions
from slurmd_watch.port import Port

RETRY_SECONDS = 1.0
"""Time between a question without an answer and the next one."""

OPEN_QUESTIONS = 2
"""Consecutive unanswered questions after which the port is closed."""

LOST_QUESTIONS = 5
"""Consecutive unanswered questions before slurmctld is ended. Time alone also passes on a suspended machine."""

GRACE_SECONDS = 60
"""Time for slurmctld to save its state on SIGTERM. A stopped process does not react at all."""


class Watch:
    """Opens the port while the daemon answers, and ends a daemon that is lost.

    Args:
        daemon: Name of the daemon, for messages.
        questions: Its questions.
        port: The port that shows whether it answers.
        mark: File that is there once the daemon has answered. A watch that starts again finds it.
        now: Seconds, which only grow.
        run: Runs a command for at most so many seconds, and returns True if it succeeded; None if it has not started.
        end: Ends the daemon, and the container with it.
    """

    def __init__(
        self,
        daemon: str,
        questions: Questions,
        port: Port,
        mark: Path,
        *,
        now: Callable[[], float],
        run: Callable[[Sequence[str], float], bool | None],
        end: Callable[[], None],
    ) -> None:
        self._daemon, self._questions, self._port = daemon, questions, port
        self._has_answered = mark
        self._now, self._run, self._end = now, run, end
        self._open_questions = self._lost_questions = 0
        self._worked = self._asked = now()

    def look(self) -> float:
        """Ask the daemon, act on its answer, and return the seconds until the next look."""
        question = self._questions.answers
        answered = self._run(question.command, question.answer_seconds)
        if answered:
            self._open_questions = 0
            if not self._has_answered.exists():
                self._has_answered.touch()
                self._worked = self._now()
            self._port.open()
        else:
            self._open_questions += 1
            if self._port.is_open and self._open_questions >= OPEN_QUESTIONS:
                print(
                    f"{self._daemon} has not answered {OPEN_QUESTIONS} times: not ready.", file=sys.stderr, flush=True
                )
                self._port.close()
        works = self._questions.works
        # Kubernetes ends one that never answers (the startup probe). The first open question is asked again at once.
        if works is not None and self._has_answered.exists() and (answered or not self._port.is_open):
            answered = self._takes_jobs(works) and answered
        return question.pause_seconds if answered else RETRY_SECONDS

    def _takes_jobs(self, question: Question) -> bool:
        """Ask at intervals, and end a slurmctld that accepts no jobs. Return False after a failure."""
        if self._now() - self._asked < question.pause_seconds:
            return True
        self._asked = self._now()
        # A question that could not be asked says nothing of slurmctld.
        if self._run(question.command, question.answer_seconds) is not False:
            self._worked, self._lost_questions = self._now(), 0
            return True
        self._lost_questions += 1
        lost = self._now() - self._worked >= self._questions.lost_seconds
        if lost and self._lost_questions >= LOST_QUESTIONS:
            print(
                f"{self._daemon} has taken no jobs for {self._questions.lost_seconds:g} s: it ends, and Kubernetes "
                "starts its container again. Running jobs continue.",
                file=sys.stderr,
                flush=True,
            )
            self._end()
        return False


def run_silently(command: Sequence[str], seconds: float) -> bool | None:
    """Run a command without its output. Return True if it succeeded in time, or None if no process can be started."""
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        return None
    return done.returncode == 0


def end(process: int) -> None:
    """End a process with SIGTERM, and with SIGKILL after a grace period. This process ends with its container."""
    os.kill(process, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(process, signal.SIGKILL)
