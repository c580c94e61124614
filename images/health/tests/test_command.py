"""The program as slurmd and people start it."""

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from health_testing import IMPORT_ROOTS
from node_health import bounded, noted_drains
from node_health.bounded import BoundedCall, BoundedProgram, is_there
from node_health.command import check, explain, main
from node_health.health_round import Slurm, load, save
from node_health.kernel_log import KernelLog, records
from node_health.node_record import NoAnswerError
from node_health.state_machine import NodeState
from tests.waiting import wait_until

FOLDER = Path(__file__).parents[1]


def settings(folder: Path, **checks: dict[str, object]) -> None:
    every = {
        "limit": None,
        "allowed": "none",
        "action": "drain",
        "undrain": "auto",
        "failures": 1,
        "passes": 1,
        "every_seconds": 0,
        "states": ["idle", "busy"],
    }
    given = {
        "format": 1,
        "seconds": 5,
        "interval_seconds": 60,
        "gpus": 0,
        "gpu_type": "",
        "memory_mib": 1,
        "volumes": [],
        "jail": "/",
        "program": ["/bin/sh", "-c", f"cat {folder}/words; exit $(cat {folder}/status)"],
        "program_seconds": 5,
        "checks": {name: {**every, **entry} for name, entry in checks.items()},
    }
    (folder / "cpu.json").write_text(json.dumps(given))


def answer(folder: Path, status: int, words: str = "") -> None:
    (folder / "status").write_text(str(status))
    (folder / "words").write_text(words)


class Calls:
    """slurmctld that knows one idle node."""

    def __init__(self) -> None:
        self.node, self.made = NodeState("IDLE", ""), list[str]()
        self.slurm = Slurm(lambda *_: self.node, self._drain, self._undrain, self._show)

    def _drain(self, node: str, reason: str, _seconds: float) -> None:
        self.made.append(f"{node}: {reason}")
        self.node = NodeState("IDLE+DRAIN", reason)

    def _show(self, node: str, text: str, _seconds: float) -> None:
        self.made.append(f"{node}: shows {text!r}")
        self.node = self.node._replace(extra=text)

    def _undrain(self, node: str, _seconds: float) -> None:
        self.made.append(f"{node}: undrain")
        self.node = NodeState("IDLE", "none")


def run(folder: Path, calls: Calls) -> int:
    return check("cpu-0", str(folder), str(folder), calls.slurm)


def test_a_volume_that_takes_no_file_stops_the_rounds_and_the_node_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path, program={"allowed": "status 0"})
    calls = Calls()
    answer(tmp_path, 0)
    taken = tmp_path / "health-memory.json.new"
    taken.mkdir()

    assert [run(tmp_path, calls), run(tmp_path, calls)] == [1, 0]
    stopped = json.loads(capsys.readouterr().out)
    assert stopped == {"health": "cpu-0", "event": "stopped", "problem": f"{taken}: Is a directory"}
    assert calls.node.extra == "health:round"

    taken.rmdir()
    assert run(tmp_path, calls) == 0
    assert calls.node.extra == ""


def test_a_round_prints_json_and_ends_with_1_where_there_is_something_to_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path, program={"allowed": "status 0"})
    calls = Calls()
    answer(tmp_path, 0)
    assert run(tmp_path, calls) == 0
    assert capsys.readouterr().out == ""

    answer(tmp_path, 3, "raid is degraded\n")
    assert run(tmp_path, calls) == 1
    failed, drained = map(json.loads, capsys.readouterr().out.splitlines())
    reason = "health program: status 3: raid is degraded, allowed status 0"
    assert failed == {
        "health": "cpu-0",
        "event": "failed",
        "check": "program",
        "value": "status 3: raid is degraded",
        "allowed": "status 0",
        "action": "drain",
    }
    assert drained == {"health": "cpu-0", "event": "drained", "reason": reason}
    result = json.loads((tmp_path / "health.json").read_text())
    assert (result["format"], result["node"], result["healthy"]) == (1, "cpu-0", False)
    assert result["held"]["reason"] == reason

    assert explain("cpu-0", str(tmp_path), str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert re.split("  +", shown.splitlines()[0]) == [
        *("CHECK", "STATE", "READING", "LIMIT", "ACTION", "UNDRAIN", "SOURCE OF THE LIMIT")
    ]
    assert f"cpu-0 is drained: {reason}" in shown

    answer(tmp_path, 0)
    assert run(tmp_path, calls) == 1
    assert calls.made == [f"cpu-0: {reason}", "cpu-0: undrain"]


def test_settings_that_are_missing_or_of_another_version_are_reported_once_and_drain_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = Calls()
    assert [run(tmp_path, calls), run(tmp_path, calls)] == [1, 0]
    assert "is missing" in capsys.readouterr().out
    (tmp_path / "cpu.json").write_text('{"format": 2}')
    assert [run(tmp_path, calls), run(tmp_path, calls)] == [1, 0]
    assert "another version" in capsys.readouterr().out
    assert calls.made == ["cpu-0: shows 'health:round'"]

    settings(tmp_path, program={})
    answer(tmp_path, 0)
    assert [run(tmp_path, calls), run(tmp_path, calls)] == [0, 0]
    assert calls.made[1:] == ["cpu-0: shows ''"]


@pytest.mark.parametrize(
    ("age", "extra", "shown"), [(200, "", []), (400, "", ["cpu-0: shows 'health:round'"]), (400, "rack 7", [])]
)
def test_a_round_that_never_ends_is_shown_once_by_those_after_it(
    tmp_path: Path, age: int, extra: str, shown: list[str]
) -> None:
    settings(tmp_path, program={})
    answer(tmp_path, 0)
    calls = Calls()
    calls.node = calls.node._replace(extra=extra)
    with (tmp_path / "health.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(f"{time.time() - age:.0f}")
        held.flush()
        assert [run(tmp_path, calls) for _ in range(3)] == [int(age > 300), 0, 0]
        assert calls.made == shown

    run(tmp_path, calls)
    assert calls.node.extra == extra


def test_checks_that_this_version_does_not_know_are_left_out(tmp_path: Path) -> None:
    settings(tmp_path, program={}, of_a_later_version={})
    answer(tmp_path, 0)

    assert run(tmp_path, Calls()) == 0


@pytest.mark.parametrize("damage", ["", "{", "[]", "\x00"])
def test_a_damaged_memory_is_none(tmp_path: Path, damage: str) -> None:
    settings(tmp_path, program={})
    answer(tmp_path, 0)
    (tmp_path / "health-memory.json").write_text(damage)

    assert load(str(tmp_path / "health-memory.json")) == {}
    assert run(tmp_path, Calls()) == 0


def test_a_second_round_at_the_same_time_does_nothing(tmp_path: Path) -> None:
    settings(tmp_path, program={})
    answer(tmp_path, 3)
    calls = Calls()
    holder = subprocess.Popen(
        ["flock", tmp_path / "health.lock", "sh", "-c", "echo held; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout
        holder.stdout.readline()
        assert run(tmp_path, calls) == 0
        holder.communicate("end\n")
    assert calls.made == []
    assert run(tmp_path, calls) == 1


def test_the_program_runs_with_nothing_but_python(tmp_path: Path) -> None:
    """As in the image: without the project's packages and without `site`."""
    script = (
        f"import sys; sys.path[:0] = {IMPORT_ROOTS}\nfrom node_health.command import main; sys.exit(main(['help']))"
    )
    done = subprocess.run(
        [sys.executable, "-IS", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 64
    assert done.stderr == "usage: health-check [explain]\n"


def test_the_program_loads_no_module_that_takes_as_long_as_a_round() -> None:
    """A round starts on every node once a minute."""
    script = f"import sys; sys.path[:0] = {IMPORT_ROOTS}\nimport node_health.command; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-IS", "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()

    assert {"ctypes", "dataclasses", "inspect", "pathlib", "subprocess"} & {*loaded} == set()


def test_the_program_in_the_image_starts_the_same_command() -> None:
    text = (FOLDER / "health-check").read_text()

    assert text.startswith("#!/usr/bin/python3 -IS\n")
    assert "from node_health.command import main" in text
    assert os.access(FOLDER / "health-check", os.X_OK)
    assert main.__module__ == "node_health.command"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer than usual to end a killed process."""
    monkeypatch.setattr(bounded, "_KILL_SECONDS", 60)


@pytest.mark.usefixtures("patient")
def test_a_program_ends_with_its_children_at_its_bound(tmp_path: Path) -> None:
    began = time.monotonic()
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    end = BoundedProgram(["sh", "-c", script], 0.3).finish()

    assert end.status is None
    assert end.left == 0
    assert time.monotonic() - began < 300
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_there(child), "the child has ended")


def test_a_program_that_is_missing_or_killed_ends_with_words() -> None:
    missing = BoundedProgram(["/no/such/program"], 5).finish()
    killed = BoundedProgram(["sh", "-c", "kill -9 $$"], 5).finish()

    assert (missing.status, missing.words) == (127, "/no/such/program: No such file or directory")
    assert (killed.status, killed.words) == (-9, "status -9")


@pytest.mark.usefixtures("patient")
def test_a_call_that_waits_for_ever_ends_at_its_bound_with_what_it_has_said() -> None:
    def wait() -> Iterator[str]:
        yield "begun"
        threading.Event().wait()

    end = BoundedCall(wait, 0.3).finish()

    assert (end.status, end.output, end.left) == (None, "begun", 0)


def test_a_call_that_the_kernel_refuses_ends_with_its_words() -> None:
    def refuse() -> Iterator[str]:
        yield Path("/no/such/folder").read_text()

    end = BoundedCall(refuse, 5).finish()

    assert (end.status, end.words) == (1, "No such file or directory")


def test_a_call_runs_in_a_session_and_a_process_of_its_own() -> None:
    waiting = os.getpid()
    end = BoundedCall(lambda: [f"{os.getsid(0) == os.getpid()} {os.getpid() != waiting}"], 5).finish()

    assert end.output == "True True"


def test_output_of_any_bytes_and_length_is_bounded() -> None:
    script = "head -c 9000000 /dev/zero; printf '\\377\\033[31m words' >&2; exit 1"
    end = BoundedProgram(["sh", "-c", script], 30).finish()

    assert len(end.output) == 4 * 1024**2
    assert end.words.isprintable()
    assert len(end.words) <= 80


KILLED = "total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB,"

LINES = {
    "6,100,1000000,-;usb 1-1: new device\n": {},
    "4,101,2000000,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus.\n": {
        "xid": ["Xid 79 of 0000:1b:00 (fallen off the bus; reboot)"]
    },
    "4,101,2000000,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=4711, name=python, Ch 00000008\n": {},
    "3,101,2000000,-;mlx5_core 0000:0c:00.0: poll_health:820:(pid 0): device's health compromised\n": {
        "network": ["mlx5_core 0000:0c:00.0: poll_health:820:(pid 0): device's he"]
    },
    "2,101,2000000,-;EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2\n": {
        "disk": ["EXT4-fs error (device"]
    },
    "1,101,2000000,-;XFS (nvme0n1): Filesystem has been shut down due to log error, Corruption of in-memory data\n": {
        "disk": ["XFS (nvme0n1): Filesystem has been shut down due to log erro"]
    },
    "3,101,2000000,-;blk_update_request: I/O error, dev nvme0n1, sector 2048\n": {
        "disk": ["blk_update_request: I/O error, dev nvme"]
    },
    "0,101,2000000,-;mce: [Hardware Error]: Machine check events logged\n": {
        "machine_check": ["mce: [Hardware Error]: Machine check events logged"]
    },
    f"3,101,2000000,-;Memory cgroup out of memory: Killed process 4711 (slurmstepd) {KILLED} UID:0 pgtables:4kB\n": {
        "killed_slurm": ["Memory cgroup out of memory: Killed process 4711 (slurmstepd"]
    },
    f"3,101,2000000,-;Memory cgroup out of memory: Killed process 4711 (python) {KILLED} UID:0 pgtables:4kB\n": {},
    "garbage": {},
    "": {},
    "4,x,y,-;NVRM: Xid (PCI:0000:1b:00): 79": {},
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_kernel_is_known_by_its_signature(line: str) -> None:
    log = KernelLog({}, "one")
    log.add(iter([line]))

    assert log.failures(10) == LINES[line]


CRASH = "segfault at 0 ip 0000555d4e0c1131 sp 00007ffe2a1b1f20 error 6 in"

MADE_BY_USERS = [
    f"6,101,2000000,-;a.out[4711]: {CRASH} NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen[1131,555d4e0c1000+1000]\n",
    f"6,101,2000000,-;NVRM: Xid (PCI:[4711]: {CRASH} 0000:1b:00): 79[1131,555d4e0c1000+1000]\n",
    f"6,101,2000000,-;mlx5_core 0000:[4711]: {CRASH} fw fatal[1131,555d4e0c1000+1000]\n",
    f"6,101,2000000,-;EXT4-fs error[4711]: {CRASH} a.out[1131,555d4e0c1000+1000]\n",
    f"6,101,2000000,-;a: XFS (b): c[4711]: {CRASH} Corruption[1131,555d4e0c1000+1000]\n",
    f"6,101,2000000,-;EDAC MC0: 1 UE [4711]: {CRASH} a.out[1131,555d4e0c1000+1000]\n",
    f"3,101,2000000,-;Memory cgroup out of memory: Killed process 4711 (slurmstepd) {KILLED} UID:1001 pgtables:4kB\n",
    f"3,101,2000000,-;Memory cgroup out of memory: Killed process 1 (slurmd) UID:0 ) {KILLED} UID:1001 pgtables:4kB\n",
    "12,101,2000000,-;NVRM: Xid (PCI:0000:1b:00): 79, written to /dev/kmsg\n",
]


@pytest.mark.parametrize("line", MADE_BY_USERS)
def test_a_line_with_names_that_a_user_has_chosen_is_no_failure(line: str) -> None:
    log = KernelLog({}, "one")
    log.add(iter([line]))

    assert log.failures(10) == {}


def test_failures_that_come_again_and_again_push_no_others_out() -> None:
    xid, disk, killed = (next(line for line in LINES if word in line) for word in ("79, pid", "EXT4", "(slurmstepd)"))
    lines = [xid]
    for number in range(1000):
        lines.append(disk.replace(",101,", f",{200 + 2 * number},"))
        lines.append(killed.replace(",101,", f",{201 + 2 * number},").replace("4711", str(number)))
    memory: dict[str, list[object]] = {}
    log = KernelLog(memory, "one")
    log.add(iter(lines))

    assert log.failures(10)["xid"] == ["Xid 79 of 0000:1b:00 (fallen off the bus; reboot)"]
    assert log.failures(10)["disk"] == ["EXT4-fs error (device"]
    assert log.failures(10)["killed_slurm"][-1] == "Memory cgroup out of memory: Killed process 999 (slurmstepd)"
    assert len(memory["found"]) == 22


def test_failures_of_the_kernel_count_for_an_hour_and_errors_of_gpus_until_the_next_boot() -> None:
    memory: dict[str, object] = {}
    xid, disk = (line for line in LINES if "79, pid" in line or "EXT4" in line)
    log = KernelLog(memory, "one")
    log.add(iter([xid, disk.replace(",101,", ",102,"), xid]))
    memory = json.loads(json.dumps(memory))
    later = KernelLog(memory, "one")
    later.add(iter([xid]))

    assert later.failures(4000) == {"xid": ["Xid 79 of 0000:1b:00 (fallen off the bus; reboot)"], "disk": []}
    assert KernelLog(memory, "two").failures(4000) == {}


def test_a_device_without_records_is_read_to_its_end(tmp_path: Path) -> None:
    fifo = tmp_path / "kmsg"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(reader, b"6,1,1,-;one\n")
        assert list(records(str(fifo))) == ["6,1,1,-;one\n"]
    finally:
        os.close(reader)
    with pytest.raises(FileNotFoundError):
        list(records(str(tmp_path / "none")))


def test_a_file_is_written_as_a_whole(tmp_path: Path) -> None:
    save(str(tmp_path / "file"), {"a": 1})
    with pytest.raises(TypeError):
        save(str(tmp_path / "file"), {"a": object()})

    assert load(str(tmp_path / "file")) == {"a": 1}


def test_an_unknown_node_is_no_state() -> None:
    calls = Slurm()
    with pytest.raises(NoAnswerError):
        calls.ask("no-such-node", 5)


def test_a_drain_that_a_hook_of_jobs_has_made_is_taken_over_and_ends_by_passes_of_its_own(tmp_path: Path) -> None:
    settings(tmp_path, program={"passes": 2, "failures": 60})
    calls = Calls()
    answer(tmp_path, 0)
    for _ in range(3):
        run(tmp_path, calls)
    calls.node = NodeState("IDLE+DRAIN", "health program: status 3, allowed status 0")
    run(tmp_path, calls)
    assert calls.made == [], "a healthy node asks nothing"

    noted_drains.note("program", str(tmp_path))
    run(tmp_path, calls)
    assert calls.made == [], "passes from before the drain do not count"
    run(tmp_path, calls)
    assert calls.made == ["cpu-0: undrain"]
    run(tmp_path, calls)
    assert calls.made == ["cpu-0: undrain"]
