"""The watch of slurmctld and slurmdbd: when its port is open, and when it ends slurmctld."""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from daemon_watch import watch as module
from daemon_watch.questions import DAEMONS, Questions
from daemon_watch.watch import GRACE_SECONDS, RETRY_SECONDS, Watch, end, run_silently
from slurmd_watch.port import Port
from tests.waiting import wait_until
from tools.paths import ROOT

SLURMCTLD, SLURMDBD = DAEMONS["slurmctld"], DAEMONS["slurmdbd"]
FORMER_SECONDS = {"slurmctld": 7 + 7 + 5, "slurmdbd": 10 + 20 + 20 + 15, "mariadb": 7 + 7 + 5}
"""Time until a stopped daemon was not ready by probes that ran these commands: two of 7 s, or three of 10 s that
took 15 s."""
PROBE_SECONDS = 2


class Watched:
    """A watch in a time of its own, with a daemon that answers the commands as it is told."""

    def __init__(self, name: str, port: Port, folder: Path) -> None:
        self.name, self.port, self.seconds = name, port, 0.0
        self.answers = True
        self.works: bool | None = True
        self.stops_when_asked_for_jobs = False
        self.stopped = self.asked_open = 0.0
        """Times at which it has stopped so, and of the last question while the port was open."""
        self.ended: list[float] = []
        self.programs = 0
        self.questions: Questions = DAEMONS[name]
        self._mark = folder / "answered"
        self.start()

    def start(self) -> None:
        """Start a watch, as another one has ended."""
        self.port.close()
        self._watch = Watch(
            self.name, self.questions, self.port, self._mark, now=lambda: self.seconds, run=self._run, end=self._end
        )

    def _run(self, command: Sequence[str], limit: float) -> bool | None:
        self.programs += 1
        for_jobs = command != self.questions.answers.command
        if for_jobs and self.stops_when_asked_for_jobs and self.answers:
            self.answers, self.works, self.stopped = False, False, self.seconds
        if self.port.is_open:
            self.asked_open = self.seconds
        answered = self.works if for_jobs else self.answers
        self.seconds += 0 if answered else limit
        return answered

    def _end(self) -> None:
        self.ended.append(self.seconds)

    def until(self, condition: Callable[[], bool], limit: float) -> float:
        """Look until a condition holds, and return the seconds that this took."""
        start = self.seconds
        while not condition():
            assert self.seconds - start < limit, "it does not come about"
            pause = self._watch.look()
            if not condition():
                self.seconds += pause
        return self.seconds - start

    def run(self, seconds: float) -> None:
        """Look for so long."""
        end_of_run = self.seconds + seconds
        self.until(lambda: self.seconds >= end_of_run, seconds + 60)


@pytest.fixture
def port() -> Iterator[Port]:
    with Port(0) as made:
        yield made


@pytest.fixture
def slurmctld(port: Port, tmp_path: Path) -> Watched:
    return Watched("slurmctld", port, tmp_path)


@pytest.mark.parametrize("name", DAEMONS)
def test_a_stopped_daemon_is_not_ready_as_soon_as_by_probes_that_ran_its_commands(
    name: str, port: Port, tmp_path: Path
) -> None:
    watched = Watched(name, port, tmp_path)
    watched.until(lambda: port.is_open, 1)
    watched.answers = watched.works = False
    pause = watched.questions.answers.pause_seconds

    seconds = pause + watched.until(lambda: not port.is_open, 120)

    assert seconds + PROBE_SECONDS <= FORMER_SECONDS[name] + RETRY_SECONDS


def test_a_daemon_that_answers_again_is_ready_at_once(slurmctld: Watched) -> None:
    slurmctld.until(lambda: slurmctld.port.is_open, 1)
    slurmctld.answers = False
    slurmctld.until(lambda: not slurmctld.port.is_open, 60)
    slurmctld.answers = True
    assert slurmctld.until(lambda: slurmctld.port.is_open, 60) <= RETRY_SECONDS


def test_one_question_without_an_answer_leaves_the_port_open(slurmctld: Watched) -> None:
    slurmctld.run(30)
    slurmctld.answers = False
    slurmctld.run(1)
    assert slurmctld.port.is_open


@pytest.mark.parametrize("answers", [True, False], ids=["wedged", "stopped"])
def test_a_slurmctld_that_takes_no_jobs_ends_after_five_minutes(slurmctld: Watched, answers: bool) -> None:
    slurmctld.run(60)
    slurmctld.answers, slurmctld.works = answers, False

    seconds = slurmctld.until(lambda: bool(slurmctld.ended), 600)

    assert 270 <= seconds <= 10 * 30 + 29, "the time that ten questions of a probe took"


def test_a_slurmctld_that_stops_while_it_is_asked_for_its_jobs_is_not_ready_within_39_seconds(
    slurmctld: Watched,
) -> None:
    slurmctld.run(25)
    slurmctld.stops_when_asked_for_jobs = True
    slurmctld.until(lambda: not slurmctld.answers, 60)

    slurmctld.until(lambda: not slurmctld.port.is_open, 60)

    assert slurmctld.asked_open - slurmctld.stopped + slurmctld.questions.answers.answer_seconds <= 39


def test_a_watch_that_starts_again_ends_a_slurmctld_that_hangs(slurmctld: Watched) -> None:
    slurmctld.run(60)
    slurmctld.answers = slurmctld.works = False
    slurmctld.start()

    assert slurmctld.until(lambda: bool(slurmctld.ended), 600) <= 10 * 30 + 29


def test_one_failure_after_a_stand_still_ends_no_slurmctld(slurmctld: Watched) -> None:
    slurmctld.run(60)
    slurmctld.seconds += 400
    slurmctld.works = False
    slurmctld.run(35)
    assert slurmctld.ended == []


def test_questions_that_cannot_be_asked_end_no_slurmctld(slurmctld: Watched) -> None:
    slurmctld.run(60)
    slurmctld.answers, slurmctld.works = False, None
    slurmctld.run(1200)
    assert not slurmctld.port.is_open
    assert slurmctld.ended == []


def test_a_slurmctld_that_takes_jobs_again_in_time_stays(slurmctld: Watched) -> None:
    slurmctld.run(60)
    for _ in range(4):
        slurmctld.works = False
        slurmctld.run(200)
        slurmctld.works = True
        slurmctld.run(60)
    assert slurmctld.ended == []


def test_a_slurmctld_that_has_never_answered_is_for_kubernetes_to_end(slurmctld: Watched) -> None:
    slurmctld.answers = slurmctld.works = False
    slurmctld.run(1200)
    assert slurmctld.ended == []


def test_a_slow_start_does_not_count_as_time_without_jobs(slurmctld: Watched) -> None:
    slurmctld.answers = slurmctld.works = False
    slurmctld.run(550)
    slurmctld.answers = True
    slurmctld.run(100)
    assert slurmctld.ended == []


@pytest.mark.parametrize("name", ["slurmdbd", "mariadb"])
def test_a_daemon_that_no_restart_makes_quicker_is_never_ended(name: str, port: Port, tmp_path: Path) -> None:
    watched = Watched(name, port, tmp_path)
    watched.run(60)
    watched.answers = False
    watched.run(1200)
    assert watched.ended == []


@pytest.mark.parametrize(("name", "most"), [("slurmctld", 9), ("slurmdbd", 3), ("mariadb", 7)])
def test_a_daemon_that_answers_takes_few_programs_a_minute(name: str, most: int, port: Port, tmp_path: Path) -> None:
    watched = Watched(name, port, tmp_path)
    watched.run(60)
    before = watched.programs
    watched.run(600)
    assert (watched.programs - before) / 10 <= most


def test_a_stopped_process_is_killed_after_its_time_of_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0)
    with subprocess.Popen(["sleep", "600"]) as process:
        process.send_signal(signal.SIGSTOP)
        end(process.pid)
        assert process.wait(10) < 0, "one that is stopped takes no SIGTERM"
    assert GRACE_SECONDS == 60


@pytest.mark.parametrize(
    ("command", "succeeds"), [(["true"], True), (["false"], False), (["sleep", "60"], False), (["/none"], None)]
)
def test_a_command_that_fails_or_hangs_is_no_answer_and_one_that_cannot_be_started_says_nothing(
    command: list[str], succeeds: bool | None
) -> None:
    assert run_silently(command, 2) is succeeds


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read, without the modes of pytest's own."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        yield folder


def test_a_watch_that_ends_is_started_again_even_if_no_process_could_be_started_meanwhile(open_folder: Path) -> None:
    script, starts = open_folder / "keep-watch", open_folder / "starts"
    shutil.copy(ROOT / "images/watch/keep-watch", script)
    watch = open_folder / "daemon_watch"
    watch.mkdir()
    (watch / "__main__.py").write_text("import sys\nopen(sys.argv[4], 'a').write(f'{sys.argv[1:4]}\\n')\n")
    # The limit counts the processes of a user, and none of root. Root may lack the right to set it for another user.
    user: dict[str, Any] = {"user": 54321, "group": 54321, "extra_groups": []} if os.geteuid() == 0 else {}
    usual = resource.getrlimit(resource.RLIMIT_NPROC)[0]

    def limit_processes(process: int, most: int) -> None:
        subprocess.run(["prlimit", f"--pid={process}", f"--nproc={most}:"], check=True, **user)

    with subprocess.Popen(
        [script, "slurmctld", "17", starts],
        env={"PATH": os.environ["PATH"], "ANSWERS_PORT": "6816"},
        stderr=subprocess.PIPE,
        text=True,
        **user,
    ) as process:
        try:
            wait_until(starts.exists, "the watch starts")
            limit_processes(process.pid, 1)
            assert process.stderr is not None
            assert "Cannot fork" in process.stderr.readline()
            had = len(starts.read_text().splitlines())
            limit_processes(process.pid, usual)
            wait_until(lambda: len(starts.read_text().splitlines()) > had + 1, "it starts again, and again")
        finally:
            process.kill()
    assert set(starts.read_text().splitlines()) == {"['slurmctld', '6816', '17']"}
