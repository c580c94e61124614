"""Process that plans or probes, as others see it: the holder of a Lease, the owner of probes."""

import getpass
import os
import socket
from pathlib import Path


def me() -> str:
    """Return this process as a holder: for people, and for `has_ended` on the same machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{_machine()} process {os.getpid()}"


def _machine() -> str:
    """Return the machine's name, with its boot and its PID namespace where the kernel gives them.

    Containers in the machine's network have its name, and processes of the same numbers.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{socket.gethostname()}/{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def has_ended(holder: str) -> bool:
    """Return True for a process of this machine that has ended."""
    who, _, process = holder.rpartition(" process ")
    machine = who.rpartition("@")[2]
    if "/" not in machine or machine != _machine() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)  # /proc may hide processes of other users
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # another user's, or a number that no process has
    return False
