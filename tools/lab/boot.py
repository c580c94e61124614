"""Command that starts a machine of the lab: user-mode Linux with this machine's root, and one script."""

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.lab import host_checks
from tools.lab.uml_kernel import kernel

END = "the lab's script ended with "
"""Words before the script's exit code in a machine's answer."""

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

ENVIRONMENT = {"TMPDIR": str(host_checks.SHARED_MEMORY)}
"""Variables of the command, in addition to this process's own."""

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


@contextmanager
def machine(
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
            _INIT.format(root=root, script=written, answer=answer, end=END, power_off=shlex.quote(_POWER_OFF))
        )
        init.chmod(0o700)
        shape = [f"mem={memory_mib}M", f"ncpus={processors}", f"init={init}", f"uml_dir={folder}"]
        yield [program, *shape, *_ARGUMENTS], folder
