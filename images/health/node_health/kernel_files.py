"""Readings from kernel files, which answer at once."""

import os
import re
from collections.abc import Iterator

from node_health.readings import Port

_COUNTERS = ("symbol_error", "link_downed", "port_rcv_errors")
_TIMEX_FIELDS = 26
_FIRST_USER = 1000
"""Lowest uid of a person: the image's daemons have lower ones."""

_OF_USER = re.compile(r"^Uid:\t(\d+)\t.*^Threads:\t(\d+)$", re.MULTILINE | re.DOTALL)
"""In /proc/<pid>/status, where the kernel escapes line ends in a name."""


def read(path: str) -> str:
    """Return a file's text; empty if it cannot be read. Names of processes may contain any bytes."""
    try:
        with open(path, errors="replace", newline="") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.read()
    except OSError:
        return ""


def ports(root: str = "") -> dict[str, Port]:
    """Return the ports of InfiniBand and RoCE adapters (Documentation/ABI/stable/sysfs-class-infiniband)."""
    found = {}
    folder = f"{root}/sys/class/infiniband"
    for adapter in _names(folder):
        for number in _names(f"{folder}/{adapter}/ports"):
            port = f"{folder}/{adapter}/ports/{number}"
            state = read(f"{port}/state").partition(":")[2].strip()
            if state:
                counters = {counter: read(f"{port}/counters/{counter}").strip() for counter in _COUNTERS}
                rate = re.match(r"[\d.]+", read(f"{port}/rate"))
                found[f"{adapter}/{number}"] = Port(
                    active=state == "ACTIVE",
                    state=state,
                    rate_gbps=float(rate[0]) if rate else 0,
                    counters={name: float(value) for name, value in counters.items() if value.isdecimal()},
                )
    return found


def available_mib(root: str = "") -> float | None:
    """Return the memory that new processes can get, of the machine or within the pod's limit (cgroup v2).

    File caches count as available. tmpfs does not.
    """
    found = re.search(r"^MemAvailable:\s+(\d+) kB", read(f"{root}/proc/meminfo"), re.MULTILINE)
    machine = int(found[1]) / 1024 if found else None
    limit, used = (read(f"{root}/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if not limit.isdecimal() or not used.isdecimal():
        return machine
    caches = re.findall(
        r"^(?:active_file|inactive_file|slab_reclaimable) (\d+)$",
        read(f"{root}/sys/fs/cgroup/memory.stat"),
        re.MULTILINE,
    )
    left = (int(limit) - int(used) + sum(map(int, caches))) / 1024**2
    return left if machine is None else min(left, machine)


def memory_errors(counter: str, root: str = "") -> dict[str, float]:
    """Return a counter (`ue_count`, `ce_count`) of each memory controller (Documentation/admin-guide/ras)."""
    folder = f"{root}/sys/devices/system/edac/mc"
    values = {
        name: read(f"{folder}/{name}/{counter}").strip() for name in _names(folder) if re.fullmatch(r"mc\d+", name)
    }
    return {name: float(value) for name, value in values.items() if value.isdecimal()}


def process_ids(root: str = "", limit: int = 0) -> tuple[float | None, dict[int, float]]:
    """Return the used share of process ids, of the machine or the pod, in percent: the larger one.

    The first value is for ids that no user of the pod has, None if no limit is known. The others are by uid.

    Args:
        root: Folder with the kernel's files, for tests.
        limit: Processes that a user may have, 0 for none known. Users are measured against it as well: a container does
            not see the kubelet's limit of its pod (`podPidsLimit`), which stands in a cgroup above its own. Others are
            not: a user's steps have processes of root, which would drain the node.
    """
    total = re.match(r"(?:\S+ ){3}\d+/(\d+)", read(f"{root}/proc/loadavg"))
    limits = [read(f"{root}/proc/sys/kernel/{name}").strip() for name in ("pid_max", "threads-max")]
    pairs = [(total[1] if total else "", limit) for limit in limits]
    pairs += [(read(f"{cgroup}/pids.current").strip(), read(f"{cgroup}/pids.max").strip()) for cgroup in _cgroups(root)]
    known = [(int(used), int(most)) for used, most in pairs if used.isdecimal() and most.isdecimal() and int(most)]
    if not known:
        return None, {}
    threads = _threads_of_users(root)
    fewest = min(most for most in (limit, *(most for _, most in known)) if most)
    own = max(100 * max(0, used - sum(threads.values())) / most for used, most in known)
    return own, {uid: 100 * count / fewest for uid, count in threads.items()}


def _cgroups(root: str) -> Iterator[str]:
    """Yield the cgroup folders that count processes, from the process's own upwards: versions 2 and 1."""
    for mount, controller in ((f"{root}/sys/fs/cgroup", ""), (f"{root}/sys/fs/cgroup/pids", "pids")):
        found = re.search(rf"^\d+:{controller}:/(.*)$", read(f"{root}/proc/self/cgroup"), re.MULTILINE)
        names = [name for name in found[1].split("/") if name] if found else []
        yield from ("/".join([mount, *names[:depth]]) for depth in range(len(names), -1, -1))


def _threads_of_users(root: str) -> dict[int, int]:
    threads: dict[int, int] = {}
    for pid in filter(str.isdecimal, _names(f"{root}/proc")):
        found = _OF_USER.search(read(f"{root}/proc/{pid}/status"))
        if found and int(found[1]) >= _FIRST_USER:
            threads[int(found[1])] = threads.get(int(found[1]), 0) + int(found[2])
    return threads


def read_only(root: str = "") -> set[str]:
    """Return mount points with a read-only file system, also if the kernel made it read-only after an error."""
    found = set()
    for line in read(f"{root}/proc/self/mountinfo").split("\n"):
        mount, _, file_system = line.partition(" - ")
        fields, options = mount.split(), file_system.split()
        if len(fields) > 5 and len(options) > 2 and "ro" in {*fields[5].split(","), *options[2].split(",")}:
            found.add(_unescaped(fields[4]))
    return found


def mounted(root: str = "") -> set[str]:
    """Return all mount points."""
    lines = (line.split() for line in read(f"{root}/proc/self/mountinfo").split("\n"))
    return {_unescaped(fields[4]) for fields in lines if len(fields) > 5}


def is_busy(root: str = "") -> bool:
    """Return True while a job's step runs. slurmd's own `slurmstepd infinity` holds a cgroup, not a job.

    A user's process can have the same name, but not root's uid.
    """
    for pid in _names(f"{root}/proc"):
        is_step = pid.isdecimal() and read(f"{root}/proc/{pid}/comm").startswith("slurmstepd")
        is_roots = is_step and "\nUid:\t0\t" in read(f"{root}/proc/{pid}/status")
        if is_roots and "infinity" not in read(f"{root}/proc/{pid}/cmdline"):
            return True
    return False


def clock_error_seconds() -> float | None:
    """Return the largest error of the clock in seconds, by adjtimex(2), which changes nothing here."""
    import ctypes  # noqa: PLC0415 - takes longer to load than all other checks, and this one runs now and then

    timex = (ctypes.c_long * _TIMEX_FIELDS)()  # modes, offset, freq, maxerror, esterror, status ...
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(timex)
    except (OSError, AttributeError):
        return None
    return None if state < 0 else timex[3] / 1e6


def uptime_seconds(root: str = "") -> float:
    """Return the time since boot."""
    return float((read(f"{root}/proc/uptime").split() or ["0"])[0])


def boot(root: str = "") -> str:
    """Return the id of this boot."""
    return read(f"{root}/proc/sys/kernel/random/boot_id").strip()


def _names(folder: str) -> Iterator[str]:
    try:
        return iter(sorted(os.listdir(folder)))  # noqa: PTH208 - as above
    except OSError:
        return iter(())


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
