"""Facts about this machine, for machine_checks."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from tools.kube import cgroups, kernel, listeners, pod_network, sysctls
from tools.kube.kernel import Feature
from tools.kube.settings import Settings
from tools.paths import cache_dir

GIB = 1 << 30

COMMANDS: Mapping[str, str] = {
    "sh": "dash",
    "mount": "mount",
    "umount": "mount",
    "dpkg": "dpkg",
    "dpkg-query": "dpkg",
    "apt-get": "apt",
}
"""Programs that the machine itself must have, with their packages; all others can be fetched."""


FILES: Mapping[str, str] = {
    "/dev/kmsg": "the kubelet reads it: give the container that this machine is the device",
    "/etc/hosts": "containerd copies it for each pod: write one with the line 127.0.0.1 localhost",
}
"""Files that servers need, with the reason and the next step."""


@dataclass(frozen=True)
class Filesystem:
    """File system of a folder, which may not exist yet."""

    path: Path
    device: int
    free_bytes: int
    kind: str = ""
    noexec: bool = False


@dataclass(frozen=True)
class Taken:
    """Port of the cluster that another program uses."""

    protocol: str
    address: str
    port: int
    wanted_by: str
    program: str
    pid: int | None


@dataclass(frozen=True)
class Route:
    """A route of the machine."""

    network: IPv4Network
    device: str


@dataclass(frozen=True)
class Facts:
    """Facts about a machine. The defaults meet every requirement."""

    cache: Filesystem
    state: Filesystem
    uid: int = 0
    capabilities: int = (1 << 41) - 1
    architecture: str = "x86_64"
    missing_commands: Mapping[str, str] = field(default_factory=dict)
    missing_features: Sequence[Feature] = ()
    missing_files: Mapping[str, str] = field(default_factory=dict)
    overlay_problem: str = ""
    unified: bool = False
    controllers: frozenset[str] = frozenset()
    cgroups_writable: bool = True
    other_cluster: str | None = None
    """State folder of another running embedded Kubernetes."""

    taken: Sequence[Taken] = ()
    routes: Sequence[Route] = ()
    stuck_sysctls: Sequence[str] = ()
    memory_bytes: int = 64 * GIB
    builds: bool = False
    """True if servers are still to be built."""

    running: bool = False
    """True if some servers run already, so that their resources are in use."""


def facts(settings: Settings, *, ours: Collection[int], builds: bool) -> Facts:
    """Return the facts about this machine. Ports of the processes in `ours`, its servers, do not count as taken."""
    state = filesystem(settings.state)
    hierarchies = cgroups.hierarchies()
    root = os.geteuid() == 0
    owner = pod_network.owner(settings)
    return Facts(
        cache=filesystem(cache_dir()),
        state=state,
        uid=os.geteuid(),
        capabilities=capabilities(Path("/proc/self/status").read_text()),
        architecture=os.uname().machine,
        missing_commands={name: package for name, package in COMMANDS.items() if not shutil.which(name)},
        missing_features=kernel.running().missing(),
        missing_files={name: advice for name, advice in FILES.items() if not Path(name).exists()},
        overlay_problem=overlay_problem(settings.state) if root and not ours else "",
        unified=hierarchies.unified,
        controllers=hierarchies.controllers,
        cgroups_writable=all(os.access(hierarchy, os.W_OK) for hierarchy in hierarchies.folders),
        other_cluster=None if owner in {None, str(settings.state)} else owner,
        taken=taken(settings, listeners.listeners(), ours),
        routes=routes(Path("/proc/net/route").read_text()),
        stuck_sysctls=stuck_sysctls() if root else (),
        memory_bytes=available_memory(Path("/proc/meminfo").read_text()),
        builds=builds,
        running=bool(ours),
    )


def filesystem(folder: Path) -> Filesystem:
    """Return the file system of a folder, which may not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    numbers = os.statvfs(existing)
    return Filesystem(
        path=folder,
        device=existing.stat().st_dev,
        free_bytes=numbers.f_bavail * numbers.f_frsize,
        kind=_kind(existing, Path("/proc/self/mounts").read_text()),
        noexec=bool(numbers.f_flag & os.ST_NOEXEC),
    )


def _kind(folder: Path, mounts: str) -> str:
    kinds = {Path(line.split()[1]): line.split()[2] for line in mounts.splitlines()}
    return next((kinds[path] for path in (folder, *folder.parents) if path in kinds), "unknown")


def capabilities(status: str) -> int:
    """Return the effective capabilities in the text of /proc/<pid>/status."""
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16)


def available_memory(meminfo: str) -> int:
    """Return the bytes available to programs without swapping, from the text of /proc/meminfo."""
    line = next(line for line in meminfo.splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def routes(table: str) -> list[Route]:
    """Return the routes in the text of /proc/net/route."""
    found = []
    for line in table.splitlines()[1:]:
        device, destination, _, _, _, _, _, mask, *_ = line.split()
        address, bits = (int.from_bytes(bytes.fromhex(text), "little") for text in (destination, mask))
        found.append(Route(IPv4Network((address, str(IPv4Address(bits))), strict=False), device))
    return found


def taken(settings: Settings, found: Sequence[listeners.Listener], ours: Collection[int]) -> list[Taken]:
    """Return the cluster's ports on which other programs listen."""
    conflicts = [
        (listener, address, port, what)
        for protocol, address, port, what in settings.listens()
        for listener in found
        if listener.protocol == protocol and listener.takes(address, port)
    ]
    holders = listeners.holders([listener.inode for listener, *_ in conflicts])
    result = []
    for listener, address, port, what in conflicts:
        pid = holders.get(listener.inode)
        if pid not in ours:
            name = listeners.program(pid) if pid else "an unknown program"
            result.append(Taken(listener.protocol, address, port, what, name, pid))
    return result


def stuck_sysctls(root: Path = sysctls.ROOT) -> list[str]:
    """Return the settings that need another value but cannot be set."""
    found = []
    for name, value in sysctls.NEEDED.items():
        file = root / name
        if file.exists() and file.read_text().strip() != value:
            try:
                with file.open("r+"):  # a read-only mount refuses the opening
                    pass
            except OSError:
                found.append(name)
    return found


def overlay_problem(state: Path) -> str:
    """Try an overlay mount below the state folder, and return the system's error; empty if it works."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=state, prefix=".overlay-") as name:
        folders = [Path(name) / part for part in ("lower", "upper", "work", "merged")]
        for folder in folders:
            folder.mkdir()
        lower, upper, work, merged = folders
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        mounted = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, merged],
            capture_output=True,
            text=True,
            check=False,
        )
        if mounted.returncode == 0:
            subprocess.run(["umount", merged], check=True)
            return ""
        return mounted.stderr.strip().splitlines()[0] if mounted.stderr.strip() else f"exit {mounted.returncode}"
