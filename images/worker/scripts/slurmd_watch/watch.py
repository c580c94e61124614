"""Actions that follow from slurmd's answers.

slurmctld would give the node of a hanging slurmd up, and end its jobs, SlurmdTimeout (120 s) after slurmd's last
answer, which may be 40 s older than the moment in which it stopped. A slurmd that starts again keeps them.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from slurmd_watch.port import Port

PAUSE_SECONDS = 15.0
"""Time between an answer and the next question."""

RETRY_SECONDS = 5.0
"""Time between a question without an answer and the next one."""

START_SECONDS = 1.0
"""The same before slurmd's first answer. If slurmd ends meanwhile, so does its container (services/slurmd/finish)."""

ANSWER_SECONDS = 10
HANGS = 3
"""Consecutive unanswered questions before slurmd is killed."""

PID_FILE = Path("/run/slurm/slurmd.pid")

LOST_SECONDS = 600
"""Time without an answer after which the container ends. By then Slurm has set the node to DOWN (SlurmdTimeout)."""


class Watch:
    """Opens the port while slurmd answers, and kills a slurmd that hangs.

    Args:
        port: The port that shows whether it answers.
        service: Directory of slurmd's service.
        now: Seconds, which only grow.
        run: Runs a command without its output, and returns its exit code; None if it hangs.
    """

    def __init__(
        self, port: Port, service: Path, now: Callable[[], float], run: Callable[[list[str], int], int | None]
    ) -> None:
        self._port, self._now, self._run = port, now, run
        self._has_answered = service / "answered"
        self._services = service.parent
        self._hangs = 0
        self._last_answer = now()

    def look(self) -> float:
        """Ask slurmd, act on its answer, and return the seconds until the next look."""
        if self._answers():
            self._hangs = 0
            self._last_answer = self._now()
            self._has_answered.touch()
            self._port.open()
            follow(PID_FILE)
            return PAUSE_SECONDS
        self._port.close()
        if self._hangs == HANGS:
            print(
                f"slurmd has left {HANGS} calls unanswered, each for {ANSWER_SECONDS} s. "
                "It is killed; running jobs continue.",
                file=sys.stderr,
            )
            self._hangs = 0
            self._run(["pkill", "-KILL", "-x", "-U", "root", "slurmd"], ANSWER_SECONDS)
        elif self._has_answered.exists() and self._now() - self._last_answer > LOST_SECONDS:
            print(
                f"slurmd has not answered for {LOST_SECONDS} s: its container ends, and Kubernetes starts it again.",
                file=sys.stderr,
            )
            (self._services / "exit-code").write_text("1\n")
            self._run(["s6-svscanctl", "-t", str(self._services)], ANSWER_SECONDS)
        return RETRY_SECONDS if self._has_answered.exists() else START_SECONDS

    def _answers(self) -> bool:
        """Ask slurmd, and count consecutive unanswered questions."""
        code = self._run(["scontrol", "show", "slurmd"], ANSWER_SECONDS)
        # Without munged slurmd cannot answer, whatever it does.
        if code is None and self._run(["munge", "--no-input", "--output=/dev/null"], ANSWER_SECONDS // 2) == 0:
            self._hangs += 1
        return code == 0


def run_silently(command: list[str], seconds: int) -> int | None:
    """Run a command without its output, and return its exit code; None if it has not ended in time."""
    nothing = subprocess.DEVNULL
    try:
        return subprocess.run(
            command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None


def follow(pid_file: Path) -> None:
    """Run on the CPUs of slurmd, which are the reserved cores if there are any, unless slurmd has just ended."""
    with suppress(OSError, ValueError):
        os.sched_setaffinity(0, os.sched_getaffinity(int(pid_file.read_text())))
