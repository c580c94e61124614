"""The mount of a volume, as the kernel lists it (proc_pid_mountinfo(5)), and its flags."""

import mmap
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from jail_tools.errors import reason
from jail_tools.probing.seen import FindingLevel, Seen, missing

MOUNTINFO = Path("/proc/self/mountinfo")

LOCAL_LOCKS = frozenset({"nolock", "local_lock=all", "local_lock=flock", "local_lock=posix", "localflock", "nobrl"})
"""Options that limit locks to one machine: of NFS (nfs(5)), Lustre (mount.lustre(8)) and SMB."""

_FLAGS = {os.ST_NOSUID: "nosuid", os.ST_NODEV: "nodev"}


@dataclass(frozen=True)
class ClaimMount:
    """Type and options of a mount. Options can hold secrets (SMB), so messages show only known ones."""

    filesystem: str
    options: frozenset[str]


def claim_mount(folder: Path, mountinfo: str | None = None) -> ClaimMount:
    """Return the mount that a directory is on."""
    text = MOUNTINFO.read_text(errors="surrogateescape") if mountinfo is None else mountinfo
    longest, found = "", ClaimMount("unknown", frozenset())
    for line in text.splitlines():
        before, after = (part.split() for part in line.split(" - ", 1))
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before[4])
        inside = folder.is_relative_to(point)
        if inside and len(point) >= len(longest):  # of mounts on one point the last is on top
            longest = point
            found = ClaimMount(after[0], frozenset((*before[5].split(","), *after[2].split(","))))
    return found


def shared_locks(place: Path) -> Seen:
    """Check that no mount option limits locks to one machine."""
    local = sorted(LOCAL_LOCKS & claim_mount(place).options)
    return missing(f"mounted with {', '.join(local)}") if local else Seen("no option against it")


def execution(place: Path) -> Seen:
    """Map a file as the loader maps a library, and start a script."""
    script = place / "script"
    script.write_text(f"#!{sys.executable} -I\nprint('started')\n")
    script.chmod(0o755)
    with script.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC):
        pass
    try:
        done = subprocess.run([script], capture_output=True, text=True, check=False)
    except OSError as error:
        return missing(reason(error))
    return Seen("a program starts") if done.stdout == "started\n" else missing(f"a script ended with {done.returncode}")


def flags(place: Path) -> Seen:
    """Return the flags that switch off set-user-ID programs and devices."""
    there = os.statvfs(place).f_flag
    found = [name for flag, name in _FLAGS.items() if there & flag]
    return Seen(f"mounted with {', '.join(found)}", FindingLevel.NOTED) if found else Seen("neither nosuid nor nodev")
