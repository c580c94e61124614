"""What follows from a daemon's answers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from daemon_watch.questions import Question, Questions
from slurmd_watch.port import Port

RETRY_SECONDS = 1.0
"""Time between a question without an answer and the next one."""

OPEN_QUESTIONS = 2
"""Questions in a row without an answer after which the port is closed."""

GRACE_SECONDS = 60
"""Time in which slurmctld saves its state on SIGTERM. A process that is stopped takes none."""


class Watch:
    """What follows from a daemon's answers.

    Args:
        daemon: Name of the daemon, for messages.
        questions: Its questions.
        port: The port that shows whether it answers.
        now: Seconds, which only grow.
        run: Runs a command for at most so many seconds, and returns True if it succeeded.
        end: Ends the daemon, and the container with it.
    """

    def __init__(
        self,
        daemon: str,
        questions: Questions,
        port: Port,
        *,
        now: Callable[[], float],
        run: Callable[[Sequence[str], float], bool],
        end: Callable[[], None],
    ) -> None:
        self._daemon, self._questions, self._port = daemon, questions, port
        self._now, self._run, self._end = now, run, end
        self._open_questions = 0
        self._has_answered = False
        self._worked = self._asked = now()

    def look(self) -> float:
        """Ask the daemon, act on its answer, and return the seconds until the next look."""
        question = self._questions.answers
        answered = self._run(question.command, question.answer_seconds)
        if answered:
            self._open_questions = 0
            if not self._has_answered:
                self._has_answered, self._worked = True, self._now()
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
        if works is not None and self._has_answered and (answered or not self._port.is_open):
            self._look_at_work(works)
        return question.pause_seconds if answered else RETRY_SECONDS

    def _look_at_work(self, question: Question) -> None:
        if self._now() - self._asked < question.pause_seconds:
            return
        self._asked = self._now()
        if self._run(question.command, question.answer_seconds):
            self._worked = self._now()
        elif self._now() - self._worked >= self._questions.lost_seconds:
            print(
                f"{self._daemon} has taken no jobs for {self._questions.lost_seconds:g} s: it ends, and Kubernetes "
                "starts its container again. Running jobs go on.",
                file=sys.stderr,
                flush=True,
            )
            self._end()


def run_silently(command: Sequence[str], seconds: float) -> bool:
    """Run a command without its output, and return True if it succeeded within the seconds."""
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):  # no process can be started, or it hangs
        return False
    return done.returncode == 0


def end(process: int) -> None:
    """End a process by SIGTERM, and by SIGKILL after the time of grace. Its container takes this one along."""
    os.kill(process, signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(process, signal.SIGKILL)
