"""A machine that runs one script on the lab's kernel. It can read the files of this machine, but not write them."""

import os
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from tools import tasks
from tools.console import UserError
from tools.kube.process import watched
from tools.lab.boot import END, ENVIRONMENT, machine
from tools.lab.further_machines import Further, switchable

_ALONE = Further()


def run_script(
    script: str,
    *,
    memory_mib: int = 512,
    processors: int = 1,
    writable: bool = False,
    timeout_seconds: float = 600,
    further: Further = _ALONE,
) -> str:
    """Return the output of a shell script that runs as root on a machine with the lab's kernel.

    The machine has no network but its links to further ones. Its root is that of this machine, read-only; /run is
    empty.

    Args:
        script: The script.
        memory_mib: Memory, of which the machine takes what it uses.
        processors: Number of processors.
        writable: Changes of files go to the machine's memory, and are gone at its end. Otherwise they fail.
        timeout_seconds: Longest time of the script.
        further: Machines that the script can switch on.

    Raises:
        UserError: The kernel can't be built, this machine lacks something, the script failed, or the machine didn't
            end in time.

    """
    with (
        machine(script, memory_mib, processors, writable=writable, answer="/dev/tty0") as (command, folder),
        switchable(further) as wires,
    ):
        lines = watched(
            [*command, *wires.arguments, "con0=null,fd:1"],
            environment=ENVIRONMENT,
            cwd=folder,
            timeout_seconds=timeout_seconds,
            what="a machine of the lab",
            report=lambda _: None,
            pass_fds=wires.descriptors,
        )
        return answer(lines)


def run_on_terminal(script: str, *, memory_mib: int, processors: int, further: Further = _ALONE) -> int:
    """Return the exit code of a script that runs as root on a writable machine, and has this process's terminal.

    Without a terminal, the script has no input. It can switch on the `further` machines.

    Raises:
        UserError: The kernel can't be built, this machine lacks something, or the machine ended before the script.

    """
    terminal = sys.stdin.isatty()
    with (
        machine(script, memory_mib, processors, writable=True, answer="/dev/tty1") as (command, folder),
        switchable(further) as wires,
        tempfile.TemporaryFile("w+") as end,
        _settings_kept(),
    ):
        consoles = (f"con0={'fd:0' if terminal else 'null'},fd:1", f"con1=null,fd:{end.fileno()}")

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command), *wires.arguments, *consoles],
                env={**os.environ, **ENVIRONMENT},
                cwd=folder,
                stdin=None if terminal else subprocess.DEVNULL,
                pass_fds=[end.fileno(), *wires.descriptors],
            )

        with tasks.program(start) as process:
            process.wait()
        end.seek(0)
        status = end.read().partition(END)[2].strip()
    if not status:
        raise UserError("the machine of the lab ended before its script. Its last words are above")
    return int(status)


@contextmanager
def _settings_kept() -> Iterator[None]:
    """Restore the terminal's settings, which a machine changes, and leaves so if it is killed."""
    if not sys.stdin.isatty():
        yield
        return
    settings = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)


def answer(lines: list[str]) -> str:
    """Return the output of a script from the lines of a console, which the kernel also writes to.

    Raises:
        UserError: The script failed, or the machine ended before it.
    """
    text = "\n".join(line.rstrip() for line in lines)
    before, found, after = text.rpartition(END)
    status = after.split("\n")[0].strip()
    if not found or status != "0":
        last = "\n".join(f"    {line}" for line in text.splitlines()[-15:])
        why = f"its script ended with exit code {status}" if found else "it ended before its script"
        raise UserError(f"a machine of the lab: {why}. Its console:\n{last}")
    return before
