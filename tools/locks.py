"""Locks between programs. A waiting program prints who holds the lock. A lock ends with its holder, even if killed."""

import fcntl
import getpass
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tools import console, tasks
from tools.console import UserError

_POLL_SECONDS = 0.2


@contextmanager
def held(path: Path, doing: str, *, wait_seconds: float, say: Callable[[str], None] = console.say) -> Iterator[int]:
    """Hold the lock of `path` inside the context. While another program holds it, `say` prints once which, and why.

    The body gets the descriptor that holds the lock: a program that inherits the descriptor holds the lock, too.

    Raises:
        UserError: The lock was not free within `wait_seconds`; the message names its holder.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a+", encoding="utf-8") as file:
        deadline = time.monotonic() + wait_seconds
        announced = False
        while not _taken(file.fileno()):
            file.seek(0)
            holder = file.read().strip() or "a program that has just begun"
            if time.monotonic() >= deadline:
                raise UserError(
                    f"another run is at work: {holder}. Waited {wait_seconds:g} s for it. "
                    "Rerun when it has ended, or end it."
                )
            if not announced:
                say(f"waiting up to {wait_seconds:g} s for {holder}")
                announced = True
            tasks.check()
            time.sleep(_POLL_SECONDS)
        file.truncate(0)
        file.write(_holder(doing))
        file.flush()
        yield file.fileno()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(doing: str) -> str:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return f"`{doing}`, process {os.getpid()} of {getpass.getuser()} on {socket.gethostname()}, since {since}\n"
