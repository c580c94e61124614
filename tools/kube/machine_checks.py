"""Requirements on a machine before anything is built or started, with all problems and next steps at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.console import UserError
from tools.kube.machine import GIB, Facts, Filesystem
from tools.kube.settings import Settings

BUILD_BYTES = 9 * GIB
"""Cache for a first build (measured: Go's build cache 2.8 GiB, as much again while it compiles,
modules 0.6, images 1.0, results and packages 0.5)."""

CACHE_BYTES = 1 * GIB
"""Cache once the servers are built: packages and image archives."""

STATE_BYTES = 4 * GIB
"""State: the images' unpacked layers, volumes, logs."""

MEMORY_BYTES = 2 * GIB
"""Memory of the servers (measured: 0.9 GiB) and a small Slurm."""

BUILD_MEMORY_BYTES = 4 * GIB
"""Memory of a build: Go's linker takes 1.9 GB (measured) after the compilers, and images are built at the same time."""

ARCHITECTURES = ("x86_64", "aarch64")

CAPABILITIES: Mapping[str, int] = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_MKNOD": 27,
}
"""Bits of CapEff (linux/capability.h) that the servers and runc use. CAP_SYS_RESOURCE is not among them."""

V1_CONTROLLERS = frozenset({"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"})
V2_CONTROLLERS = frozenset({"cpu", "cpuset", "memory", "pids"})


def require(facts: Facts, settings: Settings) -> None:
    """Raise a UserError that lists every problem, if there is any."""
    found = list(problems(facts, settings))
    if found:
        count = "1 thing is" if len(found) == 1 else f"{len(found)} things are"
        listed = "\n".join(f"  - {problem}" for problem in found)
        raise UserError(f"this machine cannot run the embedded Kubernetes yet, {count} in the way:\n{listed}")


def problems(facts: Facts, settings: Settings) -> Iterator[str]:
    """Yield the problems: the finding and the next step."""
    yield from _rights(facts)
    yield from _system(facts)
    yield from _cgroups(facts)
    yield from _network(facts, settings)
    yield from _space(facts)


def _rights(facts: Facts) -> Iterator[str]:
    if facts.uid != 0:
        yield f"this command runs as user id {facts.uid}, and containers need root: rerun as root, as with sudo"
        return  # capabilities follow from root
    missing = [name for name, bit in CAPABILITIES.items() if not facts.capabilities >> bit & 1]
    if missing:
        options = " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in missing)
        yield (f"root does not have {', '.join(missing)}: add them to this container (docker run {options})")


def _system(facts: Facts) -> Iterator[str]:
    if facts.architecture not in ARCHITECTURES:
        yield f"the processor is {facts.architecture}, and the servers are built for {' and '.join(ARCHITECTURES)}"
    for command, package in facts.missing_commands.items():
        yield f"there is no {command}: install the package {package}"
    for feature in facts.missing_features:
        yield f"the kernel has no {feature.what}: use one with {feature.option} (module {feature.module})"
    for file, advice in facts.missing_files.items():
        yield f"there is no {file}, and {advice}"
    if facts.overlay_problem:
        yield (
            f"the state folder {facts.state.path} ({facts.state.kind}) cannot hold overlay mounts "
            f"({facts.overlay_problem}): set XDG_STATE_HOME to a folder on ext4 or xfs"
        )
    if facts.cache.noexec:
        yield f"programs cannot run from the cache {facts.cache.path} (noexec): set XDG_CACHE_HOME to another folder"


def _cgroups(facts: Facts) -> Iterator[str]:
    needed = V2_CONTROLLERS if facts.unified else V1_CONTROLLERS
    missing = sorted(needed - facts.controllers)
    version = "v2" if facts.unified else "v1"
    if missing:
        yield f"cgroup {version} has no controllers {', '.join(missing)}: mount them at /sys/fs/cgroup"
    elif not facts.cgroups_writable:
        yield (
            f"cgroup {version} at /sys/fs/cgroup is read-only: mount it for writing "
            "(docker run: --privileged, or --cgroupns=private with a writable mount)"
        )


def _network(facts: Facts, settings: Settings) -> Iterator[str]:
    if facts.other_cluster is not None:
        home = Path(facts.other_cluster).parent.parent
        yield (
            f"another embedded Kubernetes has the bridge {settings.bridge}, with its state in {facts.other_cluster}: "
            f"end it with `XDG_STATE_HOME={home} make down`"
        )
        return  # ports and routes are the other cluster's
    for taken in facts.taken:
        yield (
            f"{taken.protocol} port {taken.port} is taken by {taken.program} (process {taken.pid or 'unknown'}), and "
            f"{taken.wanted_by} needs it on {taken.address}: stop that program, or move it to another port"
        )
    ours = {"pods": settings.pods, "services": settings.services}
    for route in facts.routes:
        if route.device.startswith(settings.bridge):  # the bridge, and links to further machines
            continue
        for what, network in ours.items():
            if route.network.prefixlen and route.network.overlaps(network):
                yield (
                    f"the machine has a route to {route.network} by {route.device}, and {what} have {network}: "
                    "remove the route, or stop its owner (another Kubernetes, a VPN)"
                )
    for name in facts.stuck_sysctls:
        yield f"/proc/sys/{name} is 0 and read-only here: set it to 1 on the host of this container or virtual machine"


def _space(facts: Facts) -> Iterator[str]:
    cache_bytes = BUILD_BYTES if facts.builds else CACHE_BYTES
    needs: dict[int, tuple[Filesystem, int]] = {}
    for filesystem, needed in ((facts.cache, cache_bytes), (facts.state, 0 if facts.running else STATE_BYTES)):
        before = needs[filesystem.device][1] if filesystem.device in needs else 0
        needs[filesystem.device] = (filesystem, before + needed)
    for filesystem, needed in needs.values():
        if filesystem.free_bytes < needed:
            yield (
                f"the file system of {filesystem.path} has {_gib(filesystem.free_bytes)} free, and {_gib(needed)} are "
                "needed: make room, or set XDG_CACHE_HOME and XDG_STATE_HOME to folders elsewhere"
            )
    memory = BUILD_MEMORY_BYTES if facts.builds else MEMORY_BYTES
    if facts.memory_bytes < memory:
        why = "building Kubernetes takes" if facts.builds else "the servers and a small Slurm take"
        yield f"{_gib(facts.memory_bytes)} of memory are available, and {why} {_gib(memory)}: free or add memory"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
