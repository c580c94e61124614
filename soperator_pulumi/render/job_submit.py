"""job_submit.lua: which working directories and files of a job slurmctld takes, told before the job waits."""

from collections.abc import Iterable
from importlib import resources

from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import ALWAYS_BOUND, submounts
from soperator_pulumi.render.text import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.paths import UNREACHABLE, holds

_SCRIPT = resources.files(__package__).joinpath("job_submit.lua").read_text()


def shared_directories(spec: ClusterSpec) -> dict[str, bool]:
    """Return the directories that are at the same path in the jail and on a worker's own root, and which are read-only.

    Of the worker's own, users may enter nothing else.
    """
    own = {
        each.path: each.read_only
        for each in submounts(spec, SubmountRole.WORKER)
        if each.path != layout.SPOOL_DIR and not any(holds(closed, each.path) for closed in UNREACHABLE)
    }
    return {**dict.fromkeys(ALWAYS_BOUND, False), **own}


def job_submit_lua(spec: ClusterSpec) -> str:
    """Return job_submit.lua, which slurmctld reads from the folder of slurm.conf."""
    shared = sorted(shared_directories(spec).items())
    return lines(
        f"--{HEADER.removeprefix('#')}",
        f"local SHARED = {_list(path for path, _ in shared)}",
        f"local READ_ONLY = {_list(path for path, read_only in shared if read_only)}",
        f"local WRITABLE = {_list(path for path, read_only in shared if not read_only)}",
        "",
        _SCRIPT.removesuffix("\n"),
    )


def _list(paths: Iterable[str]) -> str:
    """Return a Lua list; paths of a spec have no character that means something in a Lua string."""
    return "{" + ", ".join(f'"{path}"' for path in paths) + "}"
