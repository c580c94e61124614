"""Submounts: volumes inside the jail, at the same path in jobs and sessions."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.login import LoginSpec
from soperator_pulumi.spec.node_set import NodeSetName, NodeSetSpec
from soperator_pulumi.spec.storage import MAX_GIB, VolumeSpec
from soperator_pulumi.spec.types.absolute_path import (
    HOMES,
    SHARED_MEMORY,
    SPOOL,
    TEMPORARY,
    AbsolutePath,
    holds,
    jail_path_problem,
    overlap,
)
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.types.quantity import GIB, amount
from soperator_pulumi.spec.validation.base import Matches, Model, number, whole
from soperator_pulumi.spec.validation.partial import known

SubPath = Annotated[
    str,
    Matches(
        r"(?!\.\.?(/|$))[A-Za-z0-9._-]+(/(?!\.\.?(/|$))[A-Za-z0-9._-]+)*",
        "needs the path of a directory in the volume: letters, digits, '.', '_', '-' and '/', none first or last, "
        'no "..".',
        255,
    ),
]
"""A path below a volume's root."""

_HOST_FORBIDDEN = {
    "/boot": "the machine's kernel",
    "/dev": "the machine's devices",
    "/etc": "the machine's configuration and keys",
    "/proc": "the machine's processes",
    "/root": "the machine's administrator",
    "/run": "sockets of the container runtime",
    "/sys": "the machine's kernel",
    "/var/lib/containerd": "the root filesystems of all containers",
    "/var/lib/docker": "the root filesystems of all containers",
    "/var/lib/etcd": "Kubernetes' own data",
    "/var/lib/kubelet": "volumes and tokens of all pods",
    "/var/run": "sockets of the container runtime",
}
"""Directories of a machine that are closed to all jobs, with their content."""


class SubmountRole(StrEnum):
    """Pods with a submount."""

    LOGIN = "login"
    """ssh sessions."""
    WORKER = "worker"
    """Jobs."""


class SubmountSpec(Model):
    """A volume at a path inside the jail: exactly one of existing_claim, host_path, scratch_gib and memory_gib."""

    path: AbsolutePath
    """Path in sessions and jobs, such as "/data". `/home`, `/tmp`, `/dev/shm` and (on workers) `/var/spool/slurmd`
    replace the default volumes. A volume below `/opt` or `/usr/local` is for programs: slurmd cannot enter these
    directories as the user, so no working directory or output of a job can be there."""
    roles: tuple[SubmountRole, ...] = (SubmountRole.LOGIN, SubmountRole.WORKER)
    """Pods with the submount. Default: ssh sessions and jobs."""
    node_sets: tuple[NodeSetName, ...] | None = None
    """Node sets whose jobs have the submount, by name: other machines may lack the disk. Sessions have it by `roles`. A
    job elsewhere that starts in the path, or writes its output there, fails. Default: all node sets."""
    logins: tuple[ObjectName, ...] | None = None
    """Login nodes whose sessions have the submount, as their pods' names begin: `login`, and `login-<name>` of a pool.
    Jobs have it by `roles`, and the admin shell has what all login nodes have. Default: all login nodes."""
    read_only: StrictBool = False
    """Refuse all writes."""
    existing_claim: Maybe[ObjectName] | None = None
    """Name of a claim in the namespace, ReadWriteMany or ReadOnlyMany, because many pods mount it."""
    sub_path: SubPath | None = None
    """Directory of the claim to mount. Default: the whole claim."""
    host_path: AbsolutePath | None = None
    """Existing directory of the machine: a local disk, or a filesystem that all machines mount."""
    scratch_gib: Annotated[int, whole(1, MAX_GIB)] | None = None
    """An empty directory on the machine's disk per pod, of this size in GiB, deleted with the pod."""
    memory_gib: Annotated[float, number(0.001, 1_000_000, what="a number of GiB without a unit")] | None = None
    """An empty directory in memory per pod, of this size in GiB, deleted with the pod. Its content counts as memory of
    the pod."""

    def is_on(self, role: SubmountRole, name: str | None = None) -> bool:
        """Return True if pods of a role have the submount: those of a node set or of login nodes by name, or any."""
        chosen = self.logins if role is SubmountRole.LOGIN else self.node_sets
        return role in self.roles and (chosen is None or name is None or name in chosen)


MAX_SUBMOUNTS = 64
MAX_PATHS = 3000
"""Most characters of all paths together: the plugin and `jail-login` accept arguments of 3,900 characters."""

SOURCES = ("existing_claim", "host_path", "scratch_gib", "memory_gib")
"""Fields of which exactly one must be given."""

_EXACTLY_ONE = f"Give exactly one of {', '.join(SOURCES)}."


def problems(
    submounts: tuple[SubmountSpec, ...], node_sets: tuple[NodeSetSpec, ...], login: LoginSpec
) -> Iterator[Problem]:
    """Yield problems of single submounts, between them, and with the node sets and login nodes that they name."""
    length = sum(len(submount.path) for submount in submounts if known(submount.path))
    if len(submounts) > MAX_SUBMOUNTS or length > MAX_PATHS:
        yield Problem(
            "jail.submounts",
            f"{len(submounts)} submounts with {length} characters of paths; at most {MAX_SUBMOUNTS} with {MAX_PATHS} "
            "are allowed. Mount fewer volumes, higher up.",
        )
    for index, submount in enumerate(submounts):
        path = f"jail.submounts[{index}]"
        if known(submount.path):
            if reason := jail_path_problem(submount.path):
                yield Problem(f"{path}.path", f'got "{submount.path}", {reason}')
            yield from _collisions(submounts, index, path)
        yield from _role_problems(submount, path)
        yield from _node_set_problems(submount, [node_set.name for node_set in node_sets], path)
        yield from _login_problems(submount, [*login.by_name], path)
        yield from _source_problems(submount, path)


def _collisions(submounts: tuple[SubmountSpec, ...], index: int, path: str) -> Iterator[Problem]:
    """Yield the first earlier submount of the same pods that collides with this one."""
    own = submounts[index]
    for other_index, other in enumerate(submounts[:index]):
        if not known(other.path, own.roles, other.roles) or not _meet(own, other):
            continue
        where = f"jail.submounts[{other_index}]"
        if own.path == other.path:
            yield Problem(f"{path}.path", f'"{own.path}" is also the path of {where}. Choose another one.')
            return
        if holds(own.path, other.path) or holds(other.path, own.path):
            inner = "inside" if holds(other.path, own.path) else "around"
            yield Problem(
                f"{path}.path",
                f'"{own.path}" lies {inner} "{other.path}" of {where}: one would hide or depend on the other. '
                "Choose paths that do not contain each other.",
            )
            return


def _meet(one: SubmountSpec, other: SubmountSpec) -> bool:
    """Return True if a pod has both submounts."""
    shared = {*one.roles} & {*other.roles}
    return (SubmountRole.LOGIN in shared and may_share(one.logins, other.logins)) or (
        SubmountRole.WORKER in shared and may_share(one.node_sets, other.node_sets)
    )


def may_share(one: Sequence[str] | None, other: Sequence[str] | None) -> bool:
    """Return True if two fields `node_sets`, or two `logins`, can choose the same name. None chooses all of them."""
    return not known(one, other) or one is None or other is None or not {*one}.isdisjoint(other)


def _node_set_problems(submount: SubmountSpec, names: Sequence[str], path: str) -> Iterator[Problem]:
    chosen = submount.node_sets
    if not known(chosen) or chosen is None:
        return
    if known(submount.roles) and SubmountRole.WORKER not in submount.roles:
        yield Problem(f"{path}.node_sets", "given for a submount of sessions alone. Remove it, or add the role worker.")
    if submount.path == HOMES:
        yield Problem(f"{path}.node_sets", f"does not fit {HOMES}, which is the same on all nodes. Remove it.")
    yield from chosen_problems(chosen, names, f"{path}.node_sets")


def _login_problems(submount: SubmountSpec, names: Sequence[str], path: str) -> Iterator[Problem]:
    chosen, where = submount.logins, f"{path}.logins"
    if not known(chosen) or chosen is None:
        return
    if known(submount.roles) and SubmountRole.LOGIN not in submount.roles:
        yield Problem(where, "given for a submount of jobs alone. Remove it, or add the role login.")
    if submount.path == HOMES:
        yield Problem(where, f"does not fit {HOMES}, which is the same in all sessions. Remove it.")
    yield from chosen_problems(chosen, names, where, kind="login node", user="session")


def chosen_problems(
    chosen: Sequence[str], names: Sequence[str], path: str, *, kind: str = "node set", user: str = "job"
) -> Iterator[Problem]:
    """Yield problems of a field that chooses from the names of all node sets, or of all login nodes.

    Args:
        chosen: Value of the field.
        names: Names of all.
        path: Path of the field.
        kind: Name of what is chosen.
        user: Name of what runs there.
    """
    if not chosen:
        yield Problem(path, f"empty: no {user} would have it. Name {kind}s, or remove it for all of them.")
    for position, name in enumerate(chosen):
        if name in chosen[:position]:
            yield Problem(f"{path}[{position}]", f'"{name}" is listed twice. Remove one.')
        elif known(*names) and name not in names:
            yield Problem(f"{path}[{position}]", f'got "{name}", which is not a {kind}. Allowed: {", ".join(names)}.')


DRIVER_PLACE = "/usr/local/nvidia"
"""Path of a node's GPU driver in jobs."""


def driver_problems(submounts: tuple[SubmountSpec, ...], node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    """Yield submounts that the nodes' driver would hide from jobs."""
    with_gpus = [node_set.name for node_set in node_sets if known(node_set.gpus) and node_set.gpus is not None]
    for index, submount in enumerate(submounts):
        path = submount.path
        of_jobs = not known(submount.roles, submount.node_sets) or any(
            submount.is_on(SubmountRole.WORKER, name) for name in with_gpus
        )
        if of_jobs and known(path) and (path == DRIVER_PLACE or holds(DRIVER_PLACE, path)):
            yield Problem(
                f"jail.submounts[{index}].path",
                f'got "{path}", where jobs see the GPU driver of their node, which would hide it. Choose another '
                'place, such as "/usr/local/cuda".',
            )


def _role_problems(submount: SubmountSpec, path: str) -> Iterator[Problem]:
    roles = submount.roles
    if not known(roles):
        return
    if not roles:
        yield Problem(f"{path}.roles", "empty: no pod has it. Name login, worker or both, or remove the submount.")
    elif len(set(roles)) != len(roles):
        yield Problem(f"{path}.roles", "names a role twice. Remove one.")
    elif submount.path == HOMES and len(roles) == 1:
        yield Problem(
            f"{path}.roles", f"{HOMES} must be the same in sessions and in jobs. Name both roles, or remove roles."
        )
    elif submount.path == SPOOL and roles != (SubmountRole.WORKER,):
        yield Problem(f"{path}.roles", f"{SPOOL} belongs to slurmd, which runs on workers only. Set [worker].")


def _source_problems(submount: SubmountSpec, path: str) -> Iterator[Problem]:
    values = {name: getattr(submount, name) for name in SOURCES}
    if not known(*values.values()):
        return
    named = [name for name, value in values.items() if value is not None]
    if not named:
        yield Problem(path, f"has no volume. {_EXACTLY_ONE}")
    elif len(named) > 1:
        yield Problem(f"{path}.{named[1]}", f"given together with {named[0]}. {_EXACTLY_ONE}")
    else:
        yield from _kind_problems(submount, named[0], path)


def _kind_problems(submount: SubmountSpec, kind: str, path: str) -> Iterator[Problem]:
    """Yield fields that do not fit the kind of volume."""
    if kind != "existing_claim" and known(submount.sub_path) and submount.sub_path is not None:
        yield Problem(f"{path}.sub_path", f"given together with {kind}; it is for claims only. Remove it.")
    allowed = {
        HOMES: ("existing_claim", "host_path"),
        SHARED_MEMORY: ("memory_gib",),
        SPOOL: ("scratch_gib", "memory_gib"),
    }.get(submount.path, SOURCES)
    if known(submount.path) and kind not in allowed:
        reason = {
            HOMES: "must be the same on all nodes and outlive pods",
            SHARED_MEMORY: "is memory",
            SPOOL: "belongs to a single node",
        }[submount.path]
        yield Problem(f"{path}.{kind}", f"does not fit {submount.path}, which {reason}. Give {' or '.join(allowed)}.")
    elif submount.read_only and kind in {"scratch_gib", "memory_gib"}:
        yield Problem(f"{path}.read_only", f"given together with {kind}, which would stay empty. Remove one.")
    elif submount.read_only and submount.path in {HOMES, TEMPORARY}:
        yield Problem(f"{path}.read_only", f"does not fit {submount.path}, to which users write. Remove it.")
    if kind == "host_path":
        yield from host_path_problems(str(submount.host_path), f"{path}.host_path")


def host_path_problems(
    host_path: str, path: str, cure: str = 'Give a directory made for jobs, such as "/mnt/local".'
) -> Iterator[Problem]:
    """Yield the reason against opening a directory of the machine to jobs. `path` is the field's."""
    for forbidden, content in _HOST_FORBIDDEN.items():
        if overlap(host_path, forbidden):
            yield Problem(
                path,
                f'got "{host_path}", which shows {forbidden} ({content}) to every job. {cure}',
            )
            return


_OURS_IN_THE_CLAIM = ("active", "home", "jobs", "meta", "trees")
"""Directories of this package in the jail's volume."""


def claim_problems(
    submounts: tuple[SubmountSpec, ...], jail: VolumeSpec, others: Mapping[str, VolumeSpec]
) -> Iterator[Problem]:
    """Yield submounts that would show reserved directories in the jail's volume, or another volume of the cluster.

    Args:
        submounts: Submounts of the jail.
        jail: The jail's volume.
        others: The cluster's other volumes, by their paths.

    """
    for index, submount in enumerate(submounts):
        claim, where = submount.existing_claim, f"jail.submounts[{index}]"
        if not isinstance(claim, str):
            continue
        for path in [path for path, volume in others.items() if claim == volume.existing_claim]:
            text = f'"{claim}" is also the claim of {path}: users could write its files. Choose another.'
            yield Problem(f"{where}.existing_claim", text)
        top = str(submount.sub_path or "").partition("/")[0]
        if claim == jail.existing_claim and known(submount.sub_path) and (not top or top in _OURS_IN_THE_CLAIM):
            yield Problem(
                f"{where}.sub_path",
                f'"{claim}" is also the claim of jail.storage, where {", ".join(_OURS_IN_THE_CLAIM)} are reserved. '
                'Name another directory in it, such as "data".',
            )


def memory_problems(
    submounts: tuple[SubmountSpec, ...], node_sets: tuple[NodeSetSpec, ...], login: LoginSpec
) -> Iterator[Problem]:
    """Yield volumes in memory that are too large for their pods, whose memory they use."""
    room: list[tuple[SubmountRole, str, float, str, str]] = [
        (SubmountRole.WORKER, node_set.name, node_set.memory_gib, f"a node of {path}", f"{path}.memory_gib")
        for path, node_set in ((f"node_sets[{index}]", node_set) for index, node_set in enumerate(node_sets))
        if known(node_set.memory_gib)
    ]
    for name, (path, pods) in zip(login.by_name, login.by_path.items(), strict=True):
        limit = pods.pod_resources.limits.memory
        if known(limit) and limit is not None:
            gib = float(amount(limit)) / GIB
            room.append((SubmountRole.LOGIN, name, gib, f"a pod of {path}", f"{path}.pod_resources.limits"))
    reported: set[SubmountRole] = set()
    for role, of_pods, pod_gib, pod, field in room:
        sizes = {
            index: submount.memory_gib
            for index, submount in enumerate(submounts)
            if known(submount.memory_gib, submount.roles, submount.node_sets, submount.logins)
            and submount.memory_gib is not None
            and submount.is_on(role, of_pods)
        }
        if sum(sizes.values()) >= pod_gib and role not in reported:
            reported.add(role)
            yield Problem(
                f"jail.submounts[{max(sizes)}].memory_gib",
                f"{sum(sizes.values()):g} GiB in memory for the role {role}, but {pod} has {pod_gib:g} GiB "
                f"for these and everything else. Lower memory_gib of the submounts, or raise {field}.",
            )
