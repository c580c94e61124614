"""Identity of the process that plans or probes: as the holder of a Lease, or the owner of probes."""

import getpass
import os
import socket
from pathlib import Path


def me() -> str:
    """Return the name of this process as a holder: for users, and for `has_ended` on the same machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{_machine()} process {os.getpid()}"


def _machine() -> str:
    """Return the machine's name, with its boot id and PID namespace if the kernel shows them.

    Containers in the machine's network have the same name, and processes with the same numbers.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{socket.gethostname()}/{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def has_ended(holder: str) -> bool:
    """Return True if the holder is a process of this machine that has ended."""
    who, _, process = holder.rpartition(" process ")
    machine = who.rpartition("@")[2]
    if "/" not in machine or machine != _machine() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)  # /proc may hide processes of other users
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # another user's process, or an unused number
    return False
