"""Servers that outlive the program that starts them: with real processes."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from tools.console import UserError
from tools.kube.supervisor import Process, Server, Supervisor

PATH = {"PATH": os.defpath}


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    procs = tmp_path / "cgroup.procs"
    yield Supervisor(tmp_path / "run", tmp_path / "logs", procs)
    for record in (tmp_path / "run").glob("*.json"):
        process = Supervisor(tmp_path / "run", tmp_path / "logs", procs).process(record.stem)
        if process:
            os.kill(process.pid, signal.SIGKILL)


def a_part(script: str = "exec sleep 60", **changes: Any) -> Server:
    """Return a part that is well at once, and is asked to end for a short time only."""
    defaults: dict[str, Any] = {
        "name": "server",
        "command": ["/bin/sh", "-c", script],
        "well": lambda: None,
        "environment": PATH,
        "start_seconds": 60,
        "stop_seconds": 5,
    }
    return Server(**{**defaults, **changes})


def when(file: Path) -> Callable[[], str | None]:
    return lambda: None if file.exists() else f"there is no {file.name}"


def pid(supervisor: Supervisor) -> int:
    process = supervisor.process("server")
    assert process
    return process.pid


def test_a_part_that_runs_as_it_should_is_left_alone(supervisor: Supervisor) -> None:
    assert supervisor.ensure(a_part())
    before = pid(supervisor)
    assert not supervisor.ensure(a_part())
    assert pid(supervisor) == before


@pytest.mark.parametrize("change", [{"command": ["/bin/sleep", "61"]}, {"environment": {**PATH, "NEW": "1"}}])
def test_a_part_with_another_command_or_environment_is_started_again(
    supervisor: Supervisor, change: dict[str, Any]
) -> None:
    supervisor.ensure(a_part())
    before = Process.of(pid(supervisor))
    assert before
    assert supervisor.ensure(a_part(**change))
    assert not before.alive()
    assert supervisor.process("server")


def test_a_part_that_a_killed_start_has_left_without_a_record_is_started_again(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    part = a_part(command=["/bin/sleep", "60"])
    supervisor.ensure(part)
    left = Process.of(pid(supervisor))
    assert left
    (tmp_path / "run" / "server.json").unlink()
    (tmp_path / "cgroup.procs").write_text(f"{left.pid}\n{os.getpid()}\n")
    assert supervisor.ensure(part)
    assert not left.alive()
    assert supervisor.process("server")


def test_a_part_is_started_again_when_a_file_that_it_reads_changes(supervisor: Supervisor, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("one")
    part = a_part(reads=[config])
    supervisor.ensure(part)
    assert supervisor.current(part)
    config.write_text("two")
    assert not supervisor.current(part)
    assert supervisor.ensure(part)


def test_a_part_that_was_killed_is_started_again(supervisor: Supervisor) -> None:
    supervisor.ensure(a_part())
    killed = Process.of(pid(supervisor))
    assert killed
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(lambda: not killed.alive(), "the server has ended", timeout_seconds=10)
    assert supervisor.process("server") is None
    assert supervisor.ensure(a_part())


def test_a_process_that_got_the_id_of_ours_is_not_touched(supervisor: Supervisor, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        other = Process.of(stranger.pid)
        assert other
        supervisor.ensure(a_part())
        os.kill(pid(supervisor), signal.SIGKILL)
        record = tmp_path / "run" / "server.json"
        ours_started_before = {"pid": stranger.pid, "started_ticks": other.started_ticks - 1}
        record.write_text(json.dumps({**json.loads(record.read_text()), **ours_started_before}))
        assert supervisor.process("server") is None
        assert not supervisor.stop(a_part())
        assert stranger.poll() is None
        stranger.kill()


def test_a_zombie_does_not_count_as_running() -> None:
    with subprocess.Popen(["true"]) as child:
        state = Path(f"/proc/{child.pid}/stat")
        wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", "it is dead", timeout_seconds=10)
        assert Process.of(child.pid) is None


def test_a_part_is_well_when_it_says_so(supervisor: Supervisor, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    part = a_part(f"sleep 0.2; touch {ready}; exec sleep 60", well=when(ready))
    supervisor.ensure(part)
    supervisor.wait(part)
    assert ready.exists()


def start(supervisor: Supervisor, part: Server) -> None:
    supervisor.ensure(part)
    supervisor.wait(part)


def test_a_part_that_ends_fails_at_once_with_its_last_words(supervisor: Supervisor, tmp_path: Path) -> None:
    part = a_part("echo 'bind: address in use' >&2; exit 1", well=when(tmp_path / "never"), start_seconds=60)
    with pytest.raises(UserError, match=r"(?s)server ended\. The last lines of .*server\.log.*bind: address in use"):
        start(supervisor, part)


def test_a_part_that_does_not_get_well_in_its_time_fails_with_the_reason(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    part = a_part("echo waiting for etcd; exec sleep 60", well=when(tmp_path / "ready"), start_seconds=0.3)
    supervisor.ensure(part)
    wait_until(lambda: "\nwaiting for etcd" in supervisor.log("server").read_text(), "it has spoken")
    with pytest.raises(UserError, match=r"(?s)not well within 0\.3 s \(there is no ready\).*waiting for etcd"):
        supervisor.wait(part)


def test_a_program_that_is_missing_is_named(supervisor: Supervisor, tmp_path: Path) -> None:
    part = a_part(command=["/no/such/program"], well=when(tmp_path / "never"))

    def start() -> None:
        supervisor.ensure(part)
        supervisor.wait(part)

    with pytest.raises(UserError, match="/no/such/program"):
        start()


def test_a_part_that_does_not_end_when_asked_is_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    part = a_part(f"trap '' TERM; touch {ready}; while :; do sleep 1; done", well=when(ready), stop_seconds=0.2)
    supervisor.ensure(part)
    supervisor.wait(part)
    process = supervisor.process("server")
    assert process
    assert supervisor.stop(part)
    assert not process.alive()


def test_a_part_that_is_killed_is_not_asked_to_end(supervisor: Supervisor, tmp_path: Path) -> None:
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    script = f"trap 'touch {asked}; exit' TERM; touch {ready}; while :; do sleep 0.1; done"
    part = a_part(script, well=when(ready))
    supervisor.ensure(part)
    supervisor.wait(part)
    supervisor.kill("server")
    assert supervisor.process("server") is None
    assert not asked.exists()


def test_stopping_what_does_not_run_is_no_error(supervisor: Supervisor) -> None:
    assert not supervisor.stop(a_part())


def test_nothing_of_our_environment_is_passed_on(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "secret")
    done = tmp_path / "done"
    part = a_part(f"env > {tmp_path}/env; touch {done}; exec sleep 60", well=when(done))
    supervisor.ensure(part)
    supervisor.wait(part)
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {"PATH", "PWD", "SHLVL", "_"}


def test_a_part_is_a_session_of_its_own_and_no_ones_child(supervisor: Supervisor) -> None:
    supervisor.ensure(a_part())
    fields = Path(f"/proc/{pid(supervisor)}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) != os.getpid()
    assert os.getsid(pid(supervisor)) != os.getsid(0)


def test_a_part_enters_the_cgroup_before_it_starts(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.ensure(a_part())
    assert (tmp_path / "cgroup.procs").read_text().strip().isdigit()


def test_a_record_that_was_cut_short_counts_as_none(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "server.json").write_text('{"pid": 1')
    assert supervisor.process("server") is None
    assert supervisor.ensure(a_part())
