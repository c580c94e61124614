"""A worker's slurmd as a service: what its watch kills, and what its end means. The cluster tier has the real ones."""

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from slurmd_watch.port import Port
from slurmd_watch.watch import PID_FILE, Watch, follow
from soperator_pulumi.render import layout
from tests.unit.cluster.worker_container import Worker
from tests.waiting import wait_until

PROBE_SECONDS = 5.0
SLURMD_TIMEOUT_SECONDS = 120
"""That of slurm.conf: slurmctld gives the node up."""

DAEMON = "scontrol show slurmd"
MUNGE = "munge --no-input --output=/dev/null"
KILL = "pkill -KILL -x -U root slurmd"
ANSWERS, REFUSES, HANGS = 0, 1, None


class Watched:
    """A watch of a slurmd that gives the answers of a list, one a look, while time stands still."""

    def __init__(self, port: Port, folder: Path, *answers: int | None, munge: int | None = ANSWERS) -> None:
        self.service = folder / "slurmd"
        self.service.mkdir(exist_ok=True)
        self.seconds = 0.0
        self.did: list[str] = []
        self._answers, self._munge = iter(answers), munge
        watch = Watch(port, self.service, lambda: self.seconds, self._run)
        self.pauses = [watch.look() for _ in answers]
        self.look = watch.look

    def _run(self, command: list[str], _: int) -> int | None:
        if (line := " ".join(command)) == DAEMON:
            return next(self._answers, HANGS)
        if line == MUNGE:
            return self._munge
        self.did.append(line)
        return 0


def a_free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def port() -> Iterator[Port]:
    with Port(a_free_port()) as made:
        yield made


def connects(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), PROBE_SECONDS):
            return True
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:  # it was open, and has ended the connection
        return True


def test_a_slurmd_that_has_not_answered_three_times_is_killed_and_looked_at_again(port: Port, tmp_path: Path) -> None:
    assert Watched(port, tmp_path, HANGS, HANGS).did == []
    assert Watched(port, tmp_path, *[HANGS] * 5).did == [KILL]


@pytest.mark.parametrize(
    "answers",
    [
        [HANGS, HANGS, ANSWERS, HANGS, HANGS],
        [REFUSES] * 6,  # as while it starts
    ],
)
def test_a_slurmd_that_answers_late_or_refuses_is_left_alone(
    port: Port, tmp_path: Path, answers: list[int | None]
) -> None:
    assert Watched(port, tmp_path, *answers).did == []


@pytest.mark.parametrize("munge", [HANGS, REFUSES])
def test_a_slurmd_is_not_killed_for_a_munged_that_hangs(port: Port, tmp_path: Path, munge: int | None) -> None:
    assert Watched(port, tmp_path, *[HANGS] * 6, munge=munge).did == []


def test_a_slurmd_that_has_answered_is_asked_four_times_a_minute_and_known_to_have_started(
    port: Port, tmp_path: Path
) -> None:
    watched = Watched(port, tmp_path, REFUSES, ANSWERS, ANSWERS, REFUSES)
    assert watched.pauses == [1, 15, 15, 5]
    assert (watched.service / "answered").exists()


def test_a_slurmd_that_never_answered_is_not_known_to_have_started(port: Port, tmp_path: Path) -> None:
    assert not (Watched(port, tmp_path, HANGS, REFUSES).service / "answered").exists()


def test_a_container_whose_slurmd_is_lost_for_long_after_slurm_gave_the_node_up_ends(
    port: Port, tmp_path: Path
) -> None:
    watched = Watched(port, tmp_path, ANSWERS, REFUSES)
    watched.seconds = 5 * SLURMD_TIMEOUT_SECONDS
    watched.look()
    assert watched.did == []

    watched.seconds += 1
    watched.look()

    assert watched.did == [f"s6-svscanctl -t {tmp_path}"]
    assert (tmp_path / "exit-code").read_text() == "1\n"


def test_the_port_is_open_as_long_as_slurmd_answers(port: Port, tmp_path: Path) -> None:
    watched = Watched(port, tmp_path, ANSWERS)
    assert connects(port.number)
    watched.look()
    assert not connects(port.number)


def test_a_closed_port_is_opened_again_and_no_other_process_gets_it_meanwhile(port: Port) -> None:
    for _ in range(2):
        assert not connects(port.number)
        with pytest.raises(OSError, match="Address already in use"):
            socket.create_server(("127.0.0.1", port.number)).close()
        port.open()
        assert connects(port.number)
        port.close()


def test_a_port_that_another_process_has_is_taken_once_it_is_free(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        number = other.getsockname()[1]
        port = Port(number)
        port.open()
    with port:
        assert not connects(number)
        port.open()
        assert connects(number)
    assert f"Port {number} cannot be had (Address already in use)" in capsys.readouterr().err


def test_a_flood_of_connections_keeps_no_probe_out_and_no_processor_busy(port: Port) -> None:
    port.open()
    with ExitStack() as flood:
        for _ in range(100):
            flood.enter_context(socket.create_connection(("127.0.0.1", port.number), PROBE_SECONDS))
        before = time.thread_time()
        port.attend(0.5)
        assert time.thread_time() - before < 0.25
        assert connects(port.number)


def test_a_watch_that_was_killed_starts_again_and_gets_its_port_although_connections_were_made(worker: Worker) -> None:
    port = a_free_port()
    worker.start()
    layout = worker.root / "scripts/layout.sh"
    layout.write_text(re.sub("ANSWERS_PORT=.*", f"ANSWERS_PORT={port}", layout.read_text()))
    for _ in range(2):
        with worker.running(["sh", "-c", "cd services/watch && exec ./run"]):
            wait_until(lambda: connects(port), "the port is open")
            assert (worker.root / "services/slurmd/answered").exists()
        assert not connects(port)


@pytest.mark.parametrize(("code", "signal", "words"), [(1, 0, "exit code 1"), (256, 9, "signal 9")])
@pytest.mark.parametrize("answered", [True, False])
def test_the_end_of_slurmd_ends_the_container_only_if_it_has_never_answered(
    worker: Worker, answered: bool, code: int, signal: int, words: str
) -> None:
    worker.start()
    if answered:
        worker.write(**{"services/slurmd/answered": ""})
    worker.write(**{"bin/s6-svscanctl": '#!/bin/sh\necho "s6-svscanctl $*" >> "$CALLS"\n'})
    (worker.root / "bin/s6-svscanctl").chmod(0o755)

    done = worker.run(["sh", "-c", f"cd services/slurmd && exec ./finish {code} {signal}"])

    assert f"slurmd ended with {words}" in done.stderr
    assert ("s6-svscanctl -t .." in worker.calls.read_text()) != answered
    if not answered:
        assert (worker.root / "services/exit-code").read_text() == f"{code if code < 256 else 128 + signal}\n"


def test_the_watch_runs_on_the_cpus_of_slurmd_and_stays_where_it_is_once_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    itself, daemon, gone = 0, 11, 12
    cpus = {itself: {0, 1, 2}, daemon: {2}}

    def cpus_of(process: int) -> set[int]:
        if process not in cpus:
            raise ProcessLookupError
        return cpus[process]

    monkeypatch.setattr(os, "sched_getaffinity", cpus_of)
    monkeypatch.setattr(os, "sched_setaffinity", cpus.__setitem__)
    pid_file = tmp_path / "slurmd.pid"
    for content in (f"{daemon}\n", f"{gone}\n", ""):
        pid_file.write_text(content)
        follow(pid_file)
        assert cpus[itself] == {2}
    assert str(PID_FILE) == f"{layout.RUN_DIR}/slurmd.pid"
