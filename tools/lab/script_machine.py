"""A machine that runs one script on the lab's kernel: it reads the files of this machine, and can't write them."""

import shlex
import tempfile
from pathlib import Path

from tools.console import UserError
from tools.kube.process import watched
from tools.lab.uml_kernel import kernel

_END = "the lab's script ended with "
_POWER_OFF = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"

_LARGE_MIB = 2048
_MAPS = Path("/proc/sys/vm/max_map_count")
_LARGE_MAPS = 1_048_576
"""Mappings of a process for a large machine. User-mode Linux maps the pages of its processes one by one: with the usual
65,530, a process of 256 MiB may hang."""

_INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o size=90% tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
{root}
sh {script} 2>&1
echo "{end}$?"
exec /usr/bin/python3 -I -c {power_off}
"""

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
"""Layer of memory over the root. With `umount --lazy`, the former root stays below the layer."""


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
        UserError: The kernel can't be built, a limit of this machine is too low, the script failed, or the machine
            didn't end in time.

    """
    if memory_mib >= _LARGE_MIB:
        _require_maps()
    program = kernel()
    with tempfile.TemporaryDirectory(prefix="lab-", dir="/var/tmp") as folder:
        written, init = Path(folder, "script"), Path(folder, "init")
        written.write_text(script)
        root = _WRITABLE_ROOT if writable else ""
        init.write_text(_INIT.format(root=root, script=written, end=_END, power_off=shlex.quote(_POWER_OFF)))
        init.chmod(0o700)
        lines = watched(
            [program, f"mem={memory_mib}M", f"ncpus={processors}", f"init={init}", f"uml_dir={folder}", *_ARGUMENTS],
            environment={"TMPDIR": "/dev/shm"},  # noqa: S108 - the machine's memory, a file without a name
            cwd=Path(folder),
            timeout_seconds=timeout_seconds,
            what="a machine of the lab",
            report=lambda _: None,
        )
    return answer(lines)


_ARGUMENTS = (
    "root=/dev/root",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    "seccomp=on",
    "security=apparmor",
    "apparmor=1",
    "quiet",
    "panic=1",
    "con0=null,fd:1",
    "con=null",
    "ssl=null",
)


def _require_maps() -> None:
    allowed = int(_MAPS.read_text())
    if allowed < _LARGE_MAPS:
        raise UserError(
            f"a machine of the lab: vm.max_map_count is {allowed} here, and a machine of {_LARGE_MIB} MiB and more "
            f"needs {_LARGE_MAPS}. Raise it: sysctl -w vm.max_map_count={_LARGE_MAPS}"
        )


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
