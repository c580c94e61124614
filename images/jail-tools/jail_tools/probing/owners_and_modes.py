"""Owners, modes and times, compared as root sets them and as the volume returns them."""

import os
import stat
from pathlib import Path

from jail_tools.errors import reason
from jail_tools.probing.seen import Seen, missing

OTHERS = ((2001, 2001), (65534, 65534), (4_000_000, 4_000_001))
"""Owners to give a file: a user, the user `nobody`, and an id above 16 bits."""

MODES = (0o640, 0o755, 0o4755, 0o2755, 0o600)
_STICKY_FOLDER = 0o1777
_TIME = 1_234_567_890
STEP_SECONDS = 2
"""Coarsest resolution of times that a populate supports."""


def owners(place: Path) -> Seen:
    """Change a file's owner and change it back, which a squashed root cannot."""
    file = place / "file"
    file.touch()
    made = file.stat()
    if (made.st_uid, made.st_gid) != (0, 0):
        return missing(f"a file made by root belongs to {made.st_uid}:{made.st_gid}")
    for uid, gid in (*OTHERS, (0, 0)):
        try:
            os.chown(file, uid, gid)
        except OSError as error:
            return missing(f"chown to {uid}:{gid}: {reason(error)}")
        now = file.stat()
        if (now.st_uid, now.st_gid) != (uid, gid):
            return missing(f"chown to {uid}:{gid} gives {now.st_uid}:{now.st_gid}")
    return Seen("root gives files to any owner")


def modes(place: Path) -> Seen:
    """Give a file and a directory modes, set-user-ID, set-group-ID and sticky bits among them."""
    file = place / "file"
    file.touch()
    for mode in MODES:
        file.chmod(mode)
        if (now := stat.S_IMODE(file.stat().st_mode)) != mode:
            return missing(f"mode {mode:04o} becomes {now:04o}")
    place.chmod(_STICKY_FOLDER)
    if (now := stat.S_IMODE(place.stat().st_mode)) != _STICKY_FOLDER:
        return missing(f"mode {_STICKY_FOLDER:04o} of a directory becomes {now:04o}")
    return Seen("all bits are kept")


def times(place: Path) -> Seen:
    """Give a file a time in the past."""
    file = place / "file"
    file.touch()
    os.utime(file, (_TIME, _TIME))
    kept = file.stat().st_mtime
    return Seen("kept") if _TIME - STEP_SECONDS <= kept <= _TIME else missing(f"{_TIME} becomes {kept:.0f}")
