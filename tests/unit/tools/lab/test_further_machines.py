"""Switching further machines of the lab, with programs in place of their kernel."""

import os
import re
import socket
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
