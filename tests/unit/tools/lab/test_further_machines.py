"""Switching further machines of the lab, with programs in place of their kernel."""

import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tools.console import UserError
from tools.lab import further_machines
from tools.lab.further_machines import Further, Wires, log, switchable

Switch = Callable[[str], None]


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have machines run their script on this machine, with the arguments of their kernel as parameters."""

    @contextmanager
    def machine(script: str, *_: int, writable: bool, answer: str) -> Iterator[tuple[list[str], Path]]:
        assert writable
        assert answer == "/dev/tty0"
        yield ["sh", "-c", script], tmp_path

    monkeypatch.setattr(further_machines, "machine", machine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    log(2).parent.mkdir(parents=True)


@contextmanager
def first(further: Further) -> Iterator[tuple[Wires, list[socket.socket], Switch]]:
    """Yield the first machine's wires, its ends of the links, and its switch."""
    with ExitStack() as stack:
        wires = stack.enter_context(switchable(further))
        *links, switch = (os.dup(number) for number in wires.descriptors)
        stack.callback(os.close, switch)

        def say(request: str) -> None:
            os.write(switch, f"{request}\r\n".encode())  # as a terminal ends lines

        ends = [stack.enter_context(socket.socket(fileno=number)) for number in links]
        for end in ends:
            end.settimeout(30)
        yield wires, ends, say


def printed(number: int) -> list[str]:
    return log(number).read_text().splitlines() if log(number).exists() else []


def test_without_further_machines_nothing_is_connected() -> None:
    with switchable(Further()) as wires:
        assert wires == Wires()


def test_every_machine_has_an_interface_of_the_first_one_and_one_of_its_own() -> None:
    with first(Further(3, lambda _, command: f"{command}; echo $0; exec sleep 60")) as (wires, _, switch):
        assert [argument.partition(":")[0] for argument in wires.arguments] == ["vec0", "vec1", "con2=null,fd"]
        switch("3 on echo before")
        wait_until(lambda: len(printed(3)) > 1, "machine 3 has printed", timeout_seconds=30)
    told, interface = printed(3)
    assert told == "before"
    assert re.fullmatch(r"vec0:transport=fd,fd=\d+,mac=52:54:00:00:02:03", interface)
    assert not printed(2)


def test_a_machine_that_is_off_takes_all_packets_and_answers_none() -> None:
    with first(Further(2)) as (_, (link,), _):
        for _ in range(20_000):  # 28 MB, seven times what a link holds
            link.send(bytes(1400))


def test_a_machine_switched_off_ends_at_once_with_all_that_it_runs(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = f"trap '' TERM HUP; (sleep 3600 & echo $! > {alive}.new; mv {alive}.new {alive}; wait)"
    with first(Further(2, lambda *_: script)) as (_, _, switch):
        for _ in range(2):
            switch("2 on")
            wait_until(alive.exists, "the machine runs", timeout_seconds=30)
            pid = alive.read_text().strip()
            assert running(pid)
            switch("2 off")
            wait_until(partial(ended, pid), "all of it has ended", timeout_seconds=30)
            alive.unlink()


def running(pid: str) -> bool:
    """Return True if the process runs: nothing may have collected one that was killed."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def ended(pid: str) -> bool:
    return not running(pid)


def test_a_machine_that_ends_by_itself_can_be_switched_on_again() -> None:
    with first(Further(2, lambda _, command: command)) as (_, (link,), switch):
        switch("2 on echo once")
        wait_until(lambda: printed(2) == ["once"], "it has ended", timeout_seconds=30)
        for _ in range(5_000):
            link.send(bytes(1400))
        switch("2 on echo twice")
        wait_until(lambda: printed(2) == ["twice"], "it has started again", timeout_seconds=30)


def test_machines_end_with_the_first_one(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with first(Further(2, lambda *_: f"echo $$ > {pid}; exec sleep 3600")) as (_, _, switch):
        switch("2 on")
        wait_until(lambda: pid.exists() and bool(pid.read_text()), "it runs", timeout_seconds=30)
    assert ended(pid.read_text().strip())


def test_a_request_for_a_machine_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with first(Further(2)) as (_, _, switch):
        switch("4 on")
    assert "no machine to switch by the request: 4 on" in capsys.readouterr().err


def test_a_failure_of_the_first_machine_has_the_last_words_of_the_others() -> None:
    def fail() -> None:
        with first(Further(2, lambda *_: "echo no room on n2")) as (_, _, switch):
            switch("2 on")
            wait_until(lambda: bool(printed(2)), "it has printed", timeout_seconds=30)
            raise UserError("its script ended with exit code 1")

    with pytest.raises(UserError, match=r"exit code 1\nThe console of n2:\n    no room on n2"):
        fail()


def test_a_machine_that_is_switched_on_again_outlives_the_end_of_the_one_before() -> None:
    """Its end and the requests come at the same time, while machine 3 takes long to start."""
    starting, go_on = threading.Event(), threading.Event()

    def script(number: int, _: str) -> str:
        if number == 3:
            starting.set()
            assert go_on.wait(30)
        return "echo $$; exec sleep 3600"

    with first(Further(3, script)) as (_, _, switch):
        switch("2 on")
        wait_until(lambda: bool(printed(2)), "machine 2 runs", timeout_seconds=30)
        (before,) = printed(2)
        switch("3 on")
        assert starting.wait(30)
        switch("2 off\n2 on")
        os.kill(int(before), signal.SIGKILL)
        wait_until(partial(ended, before), "the first machine 2 has ended", timeout_seconds=30)
        go_on.set()
        wait_until(lambda: printed(2) not in ([], [before]), "the second machine 2 runs", timeout_seconds=30)
        switch("3 off")
        wait_until(lambda: bool(printed(3)) and ended(printed(3)[0]), "machine 3 is off", timeout_seconds=30)
        assert running(printed(2)[0])


def test_bytes_that_are_no_text_are_a_request_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with first(Further(2, lambda *_: "echo on")) as (wires, _, switch):
        os.write(wires.descriptors[-1], b"\xff\n")
        switch("2 on")
        wait_until(lambda: printed(2) == ["on"], "machine 2 runs", timeout_seconds=30)
    assert "no machine to switch by the request: \ufffd" in capsys.readouterr().err


def test_a_request_to_switch_on_a_machine_that_is_on_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with first(Further(2, lambda *_: "exec sleep 3600")) as (_, _, switch):
        switch("2 on\n2 on")
    assert "n2 is on already" in capsys.readouterr().err


def test_a_machine_whose_program_is_missing_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with first(Further(2)) as (_, _, switch):
        switch("2 on")
    assert "n2 does not start: [Errno 2] No such file or directory: 'setpriv'" in capsys.readouterr().err


def test_a_failure_is_told_although_the_switchboard_has_ended() -> None:
    def fail() -> None:
        with first(Further(2)) as (_, _, switch):
            switch("end")
            wait_until(partial(is_broken, switch), "the switchboard has ended", timeout_seconds=30)
            raise UserError("its script ended with exit code 1")

    with pytest.raises(UserError, match=r"^its script ended with exit code 1$"):
        fail()


def is_broken(switch: Switch) -> bool:
    try:
        switch("")
    except BrokenPipeError:
        return True
    return False
