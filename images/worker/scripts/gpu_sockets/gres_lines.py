"""Lines of gres.conf with the cores near their GPUs.

Slurm accepts only all cores of a socket (gres.conf(5), `Cores`), and takes a node with other values out of service. A
GPU therefore gets all cores of its CPUs' sockets.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_sockets.machine import NotKnownError, cores_in_order, near_cpus


def declared(lines: Sequence[str], given: str) -> dict[str, list[int]]:
    """Return the sockets of every GPU's device file, as the node set declares them.

    Args:
        lines: The file.
        given: Socket of every GPU in the order of the lines, such as `0,0,1,1`.
    """
    return {file: [int(socket)] for file, socket in zip(_gpus(lines), given.split(","), strict=True)}


def found(lines: Sequence[str], sys: Path, proc: Path, sockets: int, cores_per_socket: int) -> dict[str, list[int]]:
    """Return the sockets of every GPU's device file, as the machine reports them.

    Args:
        lines: The file.
        sys: The machine's sysfs.
        proc: The container's procfs.
        sockets: Sockets of the node, as it registers.
        cores_per_socket: Cores of a socket, as it registers.

    Raises:
        NotKnownError: the machine does not say it for every GPU, or has another number of cores.
    """
    cores = cores_in_order(sys)
    if len(cores) != sockets * cores_per_socket:
        raise NotKnownError(
            f"the machine has {len(cores)} cores, but the node set declares {sockets} * {cores_per_socket} = "
            f"{sockets * cores_per_socket} (sockets, cores_per_socket). Set those that `lscpu` prints."
        )
    of_sockets = [
        frozenset[int]().union(*cores[first : first + cores_per_socket])
        for first in range(0, len(cores), cores_per_socket)
    ]
    near = {file: near_cpus(sys, proc, file) for file in _gpus(lines)}
    return {file: [socket for socket, cpus in enumerate(of_sockets) if cpus & of_gpu] for file, of_gpu in near.items()}


def with_cores(
    lines: Sequence[str], of_gpus: Mapping[str, Sequence[int]], sockets: int, cores_per_socket: int
) -> list[str]:
    """Return the lines with `Cores` for all GPUs, or unchanged if every GPU is near all sockets.

    Slurm gives shards the cores of their GPU.
    """
    if all(len(near) == sockets for near in of_gpus.values()):
        return [*lines]
    cores = {
        file: ",".join(f"{first * cores_per_socket}-{(first + 1) * cores_per_socket - 1}" for first in near)
        for file, near in of_gpus.items()
    }
    return [f"{line} Cores={cores[file]}" if (file := _gpu(line)) else line for line in lines]


def _gpus(lines: Sequence[str]) -> list[str]:
    """Return the device files of the GPUs. MIG instances have that of their GPU."""
    return [file for line in lines if (file := _gpu(line))]


def _gpu(line: str) -> str:
    """Return the device file of the GPU that a line describes; empty for other lines."""
    match = re.match(r"Name=gpu .*?\b(?:File|MultipleFiles)=([^, ]+)", line)
    return match[1] if match else ""
