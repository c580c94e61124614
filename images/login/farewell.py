"""Stop of a login pod: tells users on their terminals, and waits for their processes. Run as farewell.py GRACE_SECONDS.

The preStop hook of sshd's container. Kubernetes removes a pod that stops from the Service at once, so that no one else
logs in, and kills the container GRACE_SECONDS after the hook began. All processes of a user count, so a tmux that no
terminal shows is waited for as well.
"""

import contextlib
import os
import pwd
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

STOP_SECONDS = 5
"""Left of the grace for sshd and the sidecars to end."""

REMINDERS_SECONDS = (300, 60)
"""Time before the end at which users are told once more."""

_SYSTEM_USERS = ("root", "sshd", "nobody")
"""Users of sshd itself: the part that authenticates, and the command that prints keys."""


class Login:
    """The sessions in a login pod.

    Args:
        terminals: Directory of the terminals.
        processes: Directory of the processes.
    """

    def __init__(self, terminals: Path = Path("/dev/pts"), processes: Path = Path("/proc")) -> None:
        self._terminals, self._processes = terminals, processes
        self._system = {user.pw_uid for user in pwd.getpwall() if user.pw_name in _SYSTEM_USERS}

    def users(self) -> set[int]:
        """Return the uids of users with a process."""
        return {*self._uids()} - self._system

    def tell(self, text: str) -> None:
        """Write a text to the terminals of users, but for those that are closed to messages (`mesg n`) or are full."""
        group = os.getegid()
        for terminal in self._terminals.glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = terminal.stat()
                if status.st_uid in self._system:
                    continue
                # Root has no right to other users' files here. Messages are for the terminal's group.
                os.setegid(status.st_gid)
                opened = os.open(terminal, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
                try:
                    os.write(opened, text.replace("\n", "\r\n").encode())
                finally:
                    os.close(opened)
        os.setegid(group)

    def _uids(self) -> Iterator[int]:
        for status in self._processes.glob("[0-9]*/status"):
            with contextlib.suppress(OSError):  # it has ended
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                if not lines["State"].split()[0].startswith(("Z", "X")):
                    yield int(lines["Uid"].split()[0])


def see_off(
    login: Login,
    pod: str,
    grace_seconds: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no user has a process, or `STOP_SECONDS` before the end of the grace; tell users meanwhile."""
    end = now() + grace_seconds - STOP_SECONDS
    due = [grace_seconds, *(seconds for seconds in REMINDERS_SECONDS if seconds < grace_seconds)]
    while login.users() and (left := end - now()) > 0:
        if due and left <= due[0]:
            login.tell(_words(pod, due.pop(0)))
        sleep(min(2, left))


def _words(pod: str, seconds: float) -> str:
    span = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} seconds"
    return (
        f"\n*** {pod} stops in {span} at the latest, and ends all sessions on it.\n"
        "*** Save your work, log out, and log in again.\n"
        "*** Jobs of sbatch continue. Those of srun and salloc end with their session.\n"
    )


if __name__ == "__main__":
    see_off(Login(), socket.gethostname(), float(sys.argv[1]))
