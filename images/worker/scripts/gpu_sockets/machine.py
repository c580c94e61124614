"""CPUs and GPUs of the machine, from sysfs and NVIDIA's procfs: cores by socket, and CPUs near GPUs.

Containers see the machine's whole sysfs, even if they may use only some of its CPUs. slurmd counts all of these, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

Cpus = frozenset[int]


class NotKnownError(Exception):
    """The machine does not provide the value, or the value cannot be used."""


def cores_in_order(sys: Path) -> list[Cpus]:
    """Return the CPUs of every core, in the order in which slurmd counts the cores.

    slurmd takes hwloc's order: a part of the machine comes before another one of its kind that has a higher first CPU,
    and what is in a part stays together (compared with hwloc 2.9, on made and random trees). The numbers of CPUs do not
    show it: on many machines, they go round the sockets.

    Raises:
        NotKnownError: sysfs has no cores.
    """
    folders = [cpu for cpu in (sys / "devices/system/cpu").glob("cpu[0-9]*") if (cpu / "topology").is_dir()]
    cores = {_first_of(cpu / "topology", "core_cpus_list", "thread_siblings_list") for cpu in folders}
    if not cores or Cpus() in cores:
        raise NotKnownError("the machine does not list its cores in /sys.")
    parts = {part for folder in folders for part in _parts(folder)}
    parts |= {_first_of(node, "cpulist") for node in (sys / "devices/system/node").glob("node[0-9]*")}
    by_size = sorted(parts, key=lambda part: (-len(part), sorted(part)))
    return sorted(cores, key=lambda core: (*(min(part) for part in by_size if core <= part), min(core)))


def near_cpus(sys: Path, proc: Path, device: str) -> Cpus:
    """Return the CPUs of the NUMA node to which a GPU is attached.

    Args:
        sys: The machine's sysfs.
        proc: The container's procfs.
        device: Device file: `/dev/nvidia<number>` or `/dev/dri/renderD<number>`.

    Raises:
        NotKnownError: the machine has no such GPU, or hides its NUMA node, as many virtual machines do.
    """
    name = device.rpartition("/")[2]
    pci = _of_nvidia(sys, proc, name) if name.startswith("nvidia") else sys / "class/drm" / name / "device"
    node, cpus = _text(pci / "numa_node"), parse_cpus(_text(pci / "local_cpulist"))
    if not re.fullmatch(r"\d+", node) or not cpus:
        raise NotKnownError(
            f"the machine does not report the NUMA node of {device} (numa_node is {node or 'missing'}). If you know "
            "the sockets, set gpus.sockets of the node set."
        )
    return cpus


def parse_cpus(text: str) -> Cpus:
    """Return the CPUs of a kernel list, such as `0-47,96-143`; none if the text has another form."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        return Cpus()
    ranges = (item.partition("-") for item in text.split(","))
    return Cpus(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))


def _of_nvidia(sys: Path, proc: Path, name: str) -> Path:
    """Return the PCI device with this minor number, the same as in the name of the device file."""
    for gpu in (proc / "driver/nvidia/gpus").glob("*"):
        if re.search(rf"^Device Minor:\s*{name.removeprefix('nvidia')}\s*$", _text(gpu / "information"), re.MULTILINE):
            return sys / "bus/pci/devices" / gpu.name.lower()
    raise NotKnownError(f"NVIDIA's driver does not list /dev/{name} in /proc/driver/nvidia/gpus.")


def _parts(cpu: Path) -> Iterator[Cpus]:
    """Yield the parts of the machine that contain a CPU, as far as hwloc orders by them."""
    yield _first_of(cpu / "topology", "package_cpus_list", "core_siblings_list")
    yield _first_of(cpu / "topology", "die_cpus_list")
    for cache in (cpu / "cache").glob("index*"):
        if _text(cache / "level") == "3":
            yield _first_of(cache, "shared_cpu_list")


def _first_of(folder: Path, *names: str) -> Cpus:
    """Return the CPUs of the first file that exists. Older kernels use the later names."""
    return next((cpus for name in names if (cpus := parse_cpus(_text(folder / name)))), Cpus())


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError):
        return ""
