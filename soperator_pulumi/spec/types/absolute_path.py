"""Paths of volumes inside the jail: which are allowed, and why others are not."""

from collections.abc import Mapping
from typing import Annotated

from soperator_pulumi.spec.validation.base import Matches

AbsolutePath = Annotated[
    str,
    Matches(
        r"/|(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)+",
        "needs an absolute path of letters, digits, '.', '_' and '-', with no \"//\", \".\" or \"..\" in it and no '/' "
        'at the end, such as "/data".',
        255,
    ),
]
"""An absolute path in its shortest form, without characters that have another meaning in a file."""

HOMES = "/home"
TEMPORARY = "/tmp"  # noqa: S108 the jail's own, which a spec may replace
SHARED_MEMORY = "/dev/shm"  # noqa: S108 the jail's own, which a spec may replace
SPOOL = "/var/spool/slurmd"

REPLACEABLE = (HOMES, TEMPORARY, SHARED_MEMORY, SPOOL)
"""Paths of default volumes, which other volumes may replace."""

_PROGRAMS = "programs and libraries of the jail"
_OURS = "our own"
_WITH_ALL_BELOW: Mapping[str, str] = {
    "/.jail": _OURS,
    "/.jail-tools": _OURS,
    "/.tree": _OURS,
    "/bin": _PROGRAMS,
    "/boot": "the jail's own",
    "/dev": "the node's devices",
    "/etc": "the jail's configuration and users",
    HOMES: "the volume of homes",
    "/jail": "the volume that holds the jail itself",
    "/lib": _PROGRAMS,
    "/lib32": _PROGRAMS,
    "/lib64": _PROGRAMS,
    "/libx32": _PROGRAMS,
    "/opt/slurm": "Slurm's client programs, which are mounted there",
    "/proc": "the kernel's",
    "/root": "the home of root, who exists in the admin shell only",
    "/run": "sockets of munge and Slurm",
    "/sbin": _PROGRAMS,
    "/sys": "the kernel's",
    TEMPORARY: "a separate volume",
    "/usr": _PROGRAMS,
    "/var/cache": "data of installed packages",
    "/var/lib": "data of installed packages and the users that Slurm knows",
    "/var/lock": "a link to /run in most distributions",
    "/var/log": "logs of the daemons",
    "/var/run": "a link to /run in most distributions",
    "/var/spool": "Slurm's spool",
}
"""Directories that no volume may replace or be in, with their content."""

_ITSELF: Mapping[str, str] = {
    "/": "the jail itself",
    "/opt": "around /opt/slurm, where Slurm's client programs are mounted",
    "/usr/local": "around directories of programs",
    "/var": "around data of installed packages and Slurm's spool",
}
"""Directories that a volume may be in, but not replace, with their content."""

_LOCAL = "/usr/local"
_LOCAL_PROGRAMS = tuple(f"{_LOCAL}/{name}" for name in ("bin", "lib", "sbin"))

UNREACHABLE = ("/opt", "/usr")
"""Directories of the worker's own root that only root may enter. slurmd opens working directory and output as the user
before the job is in the jail, so no job can start or write output below them, whatever volume is mounted there."""

_ALLOWED = 'Choose another place, such as "/data" or "/mnt/local".'


def holds(outer: str, inner: str) -> bool:
    """Return True if `inner` is below `outer`, both in their shortest form."""
    return inner != outer and inner.startswith(outer.rstrip("/") + "/")


def overlap(one: str, other: str) -> bool:
    """Return True if the paths are the same, or one is below the other."""
    return one == other or holds(one, other) or holds(other, one)


def jail_path_problem(path: str) -> str | None:
    """Return the reason against a volume at this path inside the jail, as the end of a sentence; None if allowed."""
    if path in REPLACEABLE:
        return None
    if path in _ITSELF:
        return f"which is {_ITSELF[path]}. {_ALLOWED}"
    below_local = holds(_LOCAL, path) and not any(
        path == program or holds(program, path) for program in _LOCAL_PROGRAMS
    )
    for kept, content in _WITH_ALL_BELOW.items():
        if path == kept:
            return f"where the jail has {content}. {_ALLOWED}"
        if holds(kept, path) and not below_local:
            return f"which lies inside {kept}, where the jail has {content}. {_ALLOWED}"
    return None
