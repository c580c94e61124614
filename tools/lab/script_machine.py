"""A machine that runs one script on the lab's kernel. It can read the files of this machine, but not write them."""

import os
import shlex
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import tasks
from tools.console import UserError
from tools.kube.process import watched
from tools.lab import host_checks
from tools.lab.uml_kernel import kernel

_END = "the lab's script ended with "
_POWER_OFF = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o size=90% tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
{root}
setsid --ctty --wait sh {script} < /dev/tty0 > /dev/tty0 2>&1
echo "{end}$?" > {answer}
exec /usr/bin/python3 -I -c {power_off}
"""
"""First program of a machine. A terminal can be the controlling one of a session, which the console can't: without it
there is no Ctrl-C."""

_WRITABLE_ROOT = """
mkdir -p /run/upper /run/work /run/root
mount -t overlay overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work /run/root
cd /run/root
for folder in proc sys dev; do mount --move /$folder $folder; done
mkdir -p dev/pts dev/shm .before
mount -t devpts -o ptmxmode=666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
pivot_root . .before
umount --lazy /.before
cd /
mount -t tmpfs tmpfs /run
ip link set lo up
"""
"""A writable layer in memory over the root. With `umount --lazy`, the former root stays below the layer."""

_ENVIRONMENT = {"TMPDIR": str(host_checks.SHARED_MEMORY)}

_ARGUMENTS = (
    "root=/dev/root",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    "seccomp=on",
    "security=apparmor",
    "apparmor=1",
    "quiet",
    "noreboot",
    "panic=1",
    "con=null",
    "ssl=null",
)


def run_script(
    script: str,
    *,
    memory_mib: int = 512,
    processors: int = 1,
    writable: bool = False,
    timeout_seconds: float = 600,
) -> str:
    """Return the output of a shell script that runs as root on a machine with the lab's kernel.

    The machine has no network. Its root is that of this machine, read-only; /run is empty.

    Args:
        script: The script.
        memory_mib: Memory, of which the machine takes what it uses.
        processors: Number of processors.
        writable: Changes of files go to the machine's memory, and are gone at its end. Otherwise they fail.
        timeout_seconds: Longest time of the script.

    Raises:
        UserError: The kernel can't be built, this machine lacks something, the script failed, or the machine didn't
            end in time.

    """
    with _machine(script, memory_mib, processors, writable=writable, answer="/dev/tty0") as (command, folder):
        lines = watched(
            [*command, "con0=null,fd:1"],
            environment=_ENVIRONMENT,
            cwd=folder,
            timeout_seconds=timeout_seconds,
            what="a machine of the lab",
            report=lambda _: None,
        )
    return answer(lines)


def run_on_terminal(script: str, *, memory_mib: int, processors: int) -> int:
    """Return the exit code of a script that runs as root on a writable machine, and has this process's terminal.

    Without a terminal, the script has no input.

    Raises:
        UserError: The kernel can't be built, this machine lacks something, or the machine ended before the script.

    """
    terminal = sys.stdin.isatty()
    with (
        _machine(script, memory_mib, processors, writable=True, answer="/dev/tty1") as (command, folder),
        tempfile.TemporaryFile("w+") as end,
        _settings_kept(),
    ):
        consoles = (f"con0={'fd:0' if terminal else 'null'},fd:1", f"con1=null,fd:{end.fileno()}")

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command), *consoles],
                env={**os.environ, **_ENVIRONMENT},
                cwd=folder,
                stdin=None if terminal else subprocess.DEVNULL,
                pass_fds=[end.fileno()],
            )

        with tasks.program(start) as process:
            process.wait()
        end.seek(0)
        status = end.read().partition(_END)[2].strip()
    if not status:
        raise UserError("the machine of the lab ended before its script. Its last words are above")
    return int(status)


@contextmanager
def _machine(
    script: str, memory_mib: int, processors: int, *, writable: bool, answer: str
) -> Iterator[tuple[list[str | Path], Path]]:
    """Yield the command that starts a machine, all but its consoles, and a folder for it to run in."""
    host_checks.require(host_checks.host(), memory_mib)
    program = kernel()
    with tempfile.TemporaryDirectory(prefix="lab-", dir="/var/tmp") as name:
        folder = Path(name)
        written, init = folder / "script", folder / "init"
        written.write_text(script)
        root = _WRITABLE_ROOT if writable else ""
        init.write_text(
            _INIT.format(root=root, script=written, answer=answer, end=_END, power_off=shlex.quote(_POWER_OFF))
        )
        init.chmod(0o700)
        shape = [f"mem={memory_mib}M", f"ncpus={processors}", f"init={init}", f"uml_dir={folder}"]
        yield [program, *shape, *_ARGUMENTS], folder


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
    before, found, after = text.rpartition(_END)
    status = after.split("\n")[0].strip()
    if not found or status != "0":
        last = "\n".join(f"    {line}" for line in text.splitlines()[-15:])
        why = f"its script ended with exit code {status}" if found else "it ended before its script"
        raise UserError(f"a machine of the lab: {why}. Its console:\n{last}")
    return before
