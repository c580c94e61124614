"""The preStop hook of login nodes: users are told, and waited for."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.login.farewell import STOP_SECONDS, Login, see_off
from soperator_pulumi.cluster.login import CAPABILITIES

USER_UID, TTY_GID = 2001, 5
END = b"<end>"
READ_SECONDS = 30
PROGRAM = Path(__file__).parents[3] / "images/login/farewell.py"


class LoginPod:
    """Terminals and processes of a login pod, in a time of its own."""

    def __init__(self, folder: Path) -> None:
        self.terminals, self.processes = folder / "pts", folder / "proc"
        self.terminals.mkdir()
        self.processes.mkdir()
        self.seconds = 0.0
        self.leaves_at: float | None = None
        self._written: dict[int, int] = {}

    def runs(self, pid: int, uid: int, state: str = "S (sleeping)") -> None:
        """Let a user have a process."""
        (self.processes / str(pid)).mkdir()
        status = f"Name:\ttmux: server\nState:\t{state}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        (self.processes / str(pid) / "status").write_text(status)

    def terminal(self, number: int, uid: int, mode: int = 0o620) -> int:
        """Return the end of a user's terminal that shows what programs write."""
        shown, written = os.openpty()
        os.set_blocking(shown, False)
        path = os.ttyname(written)
        os.chown(path, uid, TTY_GID)
        Path(path).chmod(mode)
        (self.terminals / str(number)).symlink_to(path)
        self._written[shown] = written
        return shown

    def shows(self, shown: int) -> str:
        """Return what a terminal shows, without carriage returns. The kernel passes it on with a delay."""
        os.write(self._written[shown], END)
        text = b""
        while not text.endswith(END):
            assert select.select([shown], [], [], READ_SECONDS)[0], f"nothing more is shown: {text!r}"
            text += os.read(shown, 65536)
        return text.removesuffix(END).decode().replace("\r", "")

    def see_off(self, grace_seconds: float) -> None:
        """Run the hook."""
        login = Login(self.terminals, self.processes)
        see_off(login, "login-0", grace_seconds, now=lambda: self.seconds, sleep=self._sleep)

    def close(self) -> None:
        """Close the terminals."""
        for ends in self._written.items():
            for opened in ends:
                os.close(opened)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.leaves_at is not None and self.seconds >= self.leaves_at:
            for status in self.processes.glob("*/status"):
                status.unlink()


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[LoginPod]:
    found = LoginPod(tmp_path)
    yield found
    found.close()


def test_a_pod_without_users_stops_at_once(pod: LoginPod) -> None:
    pod.runs(1, 0)
    pod.see_off(600)
    assert pod.seconds == 0


def test_users_are_told_how_long_the_pod_waits_and_what_continues(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    shown = pod.terminal(0, USER_UID)
    pod.leaves_at = 10
    pod.see_off(600)
    lines = pod.shows(shown).split("\n")
    assert lines[1].startswith("*** login-0 stops in 10 minutes at the latest, and ends all sessions on it.")
    assert lines[3] == "*** Jobs of sbatch continue. Those of srun and salloc end with their session."


def test_the_pod_stops_when_the_last_user_has_left(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    pod.leaves_at = 100
    pod.see_off(600)
    assert pod.seconds == 100


def test_sshd_has_time_to_end_within_the_grace_of_users_who_stay(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    pod.see_off(600)
    assert pod.seconds == 600 - STOP_SECONDS


def test_users_are_told_again_five_minutes_and_one_minute_before_the_end(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    shown = pod.terminal(0, USER_UID)
    pod.see_off(900)
    told = [
        line.split("stops in ")[1].split(" at the latest")[0]
        for line in pod.shows(shown).splitlines()
        if "stops in" in line
    ]
    assert told == ["15 minutes", "5 minutes", "60 seconds"]


def test_the_shortest_grace_is_told_once(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    shown = pod.terminal(0, USER_UID)
    pod.see_off(30)
    assert pod.shows(shown).count("stops in 30 seconds") == 1


@pytest.mark.parametrize("state", ["Z (zombie)", "X (dead)"])
def test_processes_that_have_ended_are_not_waited_for(pod: LoginPod, state: str) -> None:
    pod.runs(7, USER_UID, state)
    pod.see_off(600)
    assert pod.seconds == 0


def test_a_process_that_ends_while_it_is_read_is_passed_over(pod: LoginPod) -> None:
    (pod.processes / "9").mkdir()
    (pod.processes / "9/status").mkdir()  # cannot be read
    pod.see_off(600)
    assert pod.seconds == 0


def test_a_terminal_that_takes_nothing_more_holds_up_no_one(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    pod.terminal(0, USER_UID)
    full = os.open(pod.terminals / "0", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        while True:
            os.write(full, b"x" * 4096)
    except BlockingIOError:
        pass
    finally:
        os.close(full)
    shown = pod.terminal(1, USER_UID)
    pod.see_off(30)
    assert "stops in" in pod.shows(shown)


@pytest.mark.parametrize(("mode", "is_told"), [(0o620, True), (0o600, False)])
def test_the_rights_of_sshds_container_reach_terminals_that_are_open_to_messages(
    pod: LoginPod, mode: int, is_told: bool
) -> None:
    shown = pod.terminal(0, USER_UID, mode)
    bound = ",".join(["-all", *(f"+{capability.lower()}" for capability in CAPABILITIES)])
    tells = (
        f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import pathlib, farewell\n"
        f"farewell.Login(pathlib.Path({str(pod.terminals)!r})).tell('hello')"
    )
    # sshd's container holds no right to other users' files.
    drops = ["setpriv", f"--bounding-set={bound}", f"--inh-caps={bound}", "--clear-groups", "--regid=0"]
    pod.terminals.parent.chmod(0o755)
    subprocess.run([*drops, sys.executable, "-c", tells], check=True)
    assert ("hello" in pod.shows(shown)) is is_told


def test_terminals_of_root_are_left_alone(pod: LoginPod) -> None:
    pod.runs(7, USER_UID)
    shown = pod.terminal(0, 0)
    pod.see_off(30)
    assert pod.shows(shown) == ""
