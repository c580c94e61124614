"""A machine that runs one script on the lab's kernel: it reads the files of this machine, and can't write them."""

import shlex
import tempfile
from pathlib import Path

from tools.console import UserError
from tools.kube.process import watched
from tools.lab.uml_kernel import kernel

_MEMORY = "512M"
_END = "the lab's script ended with "
_POWER_OFF = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
sh {script} 2>&1
echo "{end}$?"
exec /usr/bin/python3 -I -c {power_off}
"""


def run_script(script: str, *, timeout_seconds: float = 600) -> str:
    """Return the output of a shell script that runs as root on a machine with the lab's kernel.

    The machine has no network and one processor. Its root is that of this machine, read-only; /run is empty.

    Raises:
        UserError: The kernel can't be built, the script failed, or the machine didn't end in time.

    """
    program = kernel()
    with tempfile.TemporaryDirectory(prefix="lab-", dir="/var/tmp") as folder:
        written, init = Path(folder, "script"), Path(folder, "init")
        written.write_text(script)
        init.write_text(_INIT.format(script=written, end=_END, power_off=shlex.quote(_POWER_OFF)))
        init.chmod(0o700)
        lines = watched(
            [program, *_arguments(init)],
            environment={"TMPDIR": folder},
            cwd=Path(folder),
            timeout_seconds=timeout_seconds,
            what="a machine of the lab",
            report=lambda _: None,
        )
    return answer(lines)


def _arguments(init: Path) -> list[str]:
    return [
        f"mem={_MEMORY}",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={init}",
        "seccomp=on",
        "security=apparmor",
        "apparmor=1",
        "quiet",
        "panic=1",
        "con0=null,fd:1",
        "con=null",
        "ssl=null",
    ]


def answer(lines: list[str]) -> str:
    """Return the output of a script in the lines of a console, which the kernel writes to, too.

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
