"""The jail as files and arguments: trees, mounts of a view, plugstack.conf and job_submit.lua."""

import hashlib
from collections.abc import Iterable
from importlib import resources

from soperator_pulumi.render import layout
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import SubmountRole, SubmountSpec
from soperator_pulumi.spec.types.absolute_path import UNREACHABLE, holds

_ID_DIGITS = 12

ALWAYS_BOUND = (layout.SHARED_MEMORY_DIR, layout.HOMES_DIR, layout.TEMPORARY_DIR)
"""Paths that every view shares with the node's own root, whatever their volumes."""


def source_name(spec: ClusterSpec) -> str:
    """Return the name of the jail's source, for people and `tree_id`: `image:<reference>`, `tarball:<sha256>`."""
    source = spec.jail.source
    if source is not None and source.tarball is not None:
        return f"tarball:{source.tarball.sha256}"
    return f"image:{spec.images.jail if source is None else source.image}"


def tree_id(spec: ClusterSpec) -> str:
    """Return the id of the source's tree, which depends only on the source's text."""
    return hashlib.sha256(source_name(spec).encode()).hexdigest()[:_ID_DIGITS]


def active_tree(spec: ClusterSpec) -> str:
    """Return the id of the tree for new sessions and jobs."""
    return spec.jail.active or tree_id(spec)


def submounts(spec: ClusterSpec, role: SubmountRole, *names: str) -> tuple[SubmountSpec, ...]:
    """Return the submounts of a role, or those that all of its named pods have, sorted by path.

    Args:
        spec: The cluster.
        role: The role.
        names: Names of node sets of workers, or of StatefulSets of login nodes. Default: the submounts of any of them.
    """
    chosen = (
        submount for submount in spec.jail.submounts if all(submount.is_on(role, name) for name in names or (None,))
    )
    return tuple(sorted(chosen, key=lambda submount: submount.path))


def jail_binds(spec: ClusterSpec, role: SubmountRole, *names: str) -> list[str]:
    """Return the paths of a pod to bind over a tree, as arguments of the plugin and of `jail-login`.

    slurmd's spool is not among them, as a job sees only its own part.
    """
    own = {
        submount.path: submount.read_only
        for submount in submounts(spec, role, *names)
        if submount.path != layout.SPOOL_DIR
    }
    bound = {**dict.fromkeys(ALWAYS_BOUND, False), **own}
    return [f"bind={path}{':ro' if bound[path] else ''}" for path in sorted(bound)]


def login_arguments(spec: ClusterSpec, *names: str) -> list[str]:
    """Return the arguments of `jail-login`, for the view of sessions on the login nodes of a StatefulSet."""
    welcome = f"bind={layout.WELCOME}:ro"
    return [f"jail={layout.JAIL_DIR}", *jail_binds(spec, SubmountRole.LOGIN, *names), welcome, *_user_namespaces(spec)]


def plugstack_conf(spec: ClusterSpec) -> str:
    """Return plugstack.conf. The plugin is required: if it fails, no task starts.

    The list of bound paths is a file of the worker's pod, not part of this one: a new submount reaches a pod only when
    the pod is recreated, after its jobs.
    """
    isolation = spec.jail.isolation
    namespaces = ",".join(name for name in ("pid", "ipc") if getattr(isolation, name))
    apart = [f"isolation={namespaces}"] if namespaces else []
    arguments = [f"jail={layout.JAIL_DIR}", f"binds={layout.JAIL_BINDS}", *apart, *_user_namespaces(spec)]
    return lines(HEADER, " ".join(["required", layout.SPANK_PLUGIN, *arguments]))


def _user_namespaces(spec: ClusterSpec) -> list[str]:
    return ["user_namespaces"] if spec.jail.isolation.user_namespaces else []


_SCRIPTS = tuple(
    resources.files(__package__).joinpath(name).read_text() for name in ("job_limits.lua", "job_submit.lua")
)


def shared_directories(spec: ClusterSpec) -> dict[str, bool]:
    """Return the directories that have the same path in the jail and on a worker's root: True for read-only ones.

    Users may enter no other directory of the worker. A directory that only some node sets have is included, as
    slurmctld does not know where a job will run. It is read-only if all of these node sets have it read-only.
    """
    own: dict[str, bool] = {}
    for submount in submounts(spec, SubmountRole.WORKER):
        if submount.path != layout.SPOOL_DIR and not any(holds(closed, submount.path) for closed in UNREACHABLE):
            own[submount.path] = own.get(submount.path, True) and submount.read_only
    return {**dict.fromkeys(ALWAYS_BOUND, False), **own}


def job_submit_lua(spec: ClusterSpec) -> str:
    """Return job_submit.lua, with which slurmctld refuses jobs that exceed limits or use files outside the jail.

    slurmctld reads it from the folder of slurm.conf.
    """
    shared = sorted(shared_directories(spec).items())
    return lines(
        f"--{HEADER.removeprefix('#')}",
        f"local SHARED = {_list(path for path, _ in shared)}",
        f"local READ_ONLY = {_list(path for path, read_only in shared if read_only)}",
        f"local WRITABLE = {_list(path for path, read_only in shared if not read_only)}",
        f"local MAX_HOSTS = {spec.slurm.hosts_in_a_list}",
        f"local MAX_JOBS_PER_USER = {spec.slurm.max_jobs_per_user}",
        f"local MAX_SCRIPT_KIB = {spec.slurm.max_script_kib}",
        f"local MAX_ENVIRONMENT_KIB = {spec.slurm.max_environment_kib}",
        f"local MAX_ARGUMENTS_KIB = {min(spec.slurm.max_arguments_kib, spec.slurm.max_environment_kib)}",
        "",
        "\n".join(_SCRIPTS).removesuffix("\n"),
    )


def _list(paths: Iterable[str]) -> str:
    """Return a Lua list. Paths of a spec contain no character that is special in a Lua string."""
    return "{" + ", ".join(f'"{path}"' for path in paths) + "}"
