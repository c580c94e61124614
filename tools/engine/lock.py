"""One run at a time on a stack: a lock that the kernel frees when its holder ends, however that ends."""

import fcntl
import getpass
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from tools.console import UserError

_POLL_SECONDS = 0.2


@contextmanager
def stack_lock(path: Path, command: str, timeout_seconds: float, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a stack, waiting at most `timeout_seconds` for whoever has it.

    Raises:
        UserError: Somebody else still holds it; the message says who, since when, and what they do.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file, path, timeout_seconds, say)
        file.truncate(0)
        file.write(json.dumps(_self(command)))
        file.flush()
        yield
        file.truncate(0)


def _acquire(file: IO[str], path: Path, timeout_seconds: float, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + timeout_seconds
    told = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            if time.monotonic() >= deadline:
                raise UserError(
                    f"another run works on this stack: {holder}. Waited {timeout_seconds:.0f} s for it. "
                    "Try again when it has ended."
                ) from None
            if not told:
                say(f"waiting up to {timeout_seconds:.0f} s for another run on this stack: {holder}")
                told = True
            time.sleep(_POLL_SECONDS)
        else:
            return


def _self(command: str) -> dict[str, object]:
    return {
        "command": command,
        "pid": os.getpid(),
        "user": getpass.getuser(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return "one that has only just begun"
    return f"`{who['command']}`, process {who['pid']} of {who['user']} on {who['host']}, since {who['since']}"
