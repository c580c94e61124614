"""A lock between programs that says who holds it, and ends with the one who holds it however that ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import tasks
from tools.console import UserError, say

_POLL_SECONDS = 0.2


@contextmanager
def held(path: Path, doing: str, *, wait_seconds: float) -> Iterator[int]:
    """Hold the lock of `path` while the body runs; wait for another holder, and say who that is.

    The body gets the descriptor that holds it: a program that inherits the descriptor holds the lock, too.

    Raises:
        UserError: It was not free within `wait_seconds`.

    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a+") as file:
        deadline = time.monotonic() + wait_seconds
        announced = False
        while not _taken(file.fileno()):
            file.seek(0)
            holder = file.read().strip() or "another program"
            if time.monotonic() > deadline:
                raise UserError(
                    f"{path} is held by {holder} for more than {wait_seconds:g} s: let it end, or end it, and try again"
                )
            if not announced:
                say(f"waiting for {holder}")
                announced = True
            tasks.check()
            time.sleep(_POLL_SECONDS)
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} ({doing}, since {time.strftime('%Y-%m-%d %H:%M:%S')})\n")
        file.flush()
        yield file.fileno()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
