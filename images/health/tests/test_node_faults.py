"""Every fault of a node other than those of GPUs, alone: it fails its own check and no other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from health_testing.made_rounds import Node, adapter
from node_health import kernel_files
from node_health.all_checks import CHECKS
from node_health.readers import Readers
from node_health.readings import VolumeUse

OF_GPUS = {"smi", "links", "peers"}
"""Sources of the checks whose faults are in test_gpu_checks.py."""

OF_NODES = [name for name, check in CHECKS.items() if check.source not in OF_GPUS]

LIMITS = {
    "network_ports": 1,
    "network_symbol_errors": 120,
    "network_receive_errors": 1000,
    "memory_available": 80,
    "memory_corrected": 1000,
    "volume_space": 95,
    "volume_inodes": 97,
    "shared_memory_used": 50,
    "process_ids": 90,
    "users_process_ids": 80,
    "clock": 5,
}

UPTIME = 3600

_KILLED = "total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB"


class Faulty(Node):
    """A healthy node with a value for each check, and ways to damage it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the node. Volumes are as full, and the clock as wrong, as the fields say."""
        super().__init__(root)
        self.clock_error = 0.1
        self.uses = {name: VolumeUse(shared=name == "homes") for name in ("disk", "memory", "homes")}
        self.checks = {name: self.check(failures=1, limit=LIMITS.get(name)) for name in OF_NODES}
        self.given["volumes"] = [
            {"path": str(root / name), "shared": use.shared, "read_only": False, "in_memory": name == "memory"}
            for name, use in self.uses.items()
        ]
        for name in self.uses:
            (root / name).mkdir()
        self.mount(*self.uses)
        for number in (0, 1):
            adapter(self, number)
        self.write("dev/kmsg", "")
        self.write("proc/uptime", f"{UPTIME}.00 0.00\n")
        self.write("proc/meminfo", "MemAvailable: 1048576 kB\n")
        self.write("proc/loadavg", "0.5 0.4 0.3 2/500 4711\n")
        self.write("proc/sys/kernel/pid_max", "1000\n")
        for counter in ("ue", "ce"):
            self.write(f"sys/devices/system/edac/mc/mc0/{counter}_count", "0\n")
        self.program("scontrol")
        self.given["program"] = [str(self.program("program"))]
        monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
        monkeypatch.setattr(kernel_files, "clock_error_seconds", lambda: self.clock_error)
        monkeypatch.setattr(Readers, "_use", lambda _, volume: (self.uses[Path(volume.path).name], ""))

    def program(self, name: str, status: int = 0) -> Path:
        """Put a program with this status into the node."""
        file = self.write(f"bin/{name}", f"#!/bin/sh\nexit {status}\n")
        file.chmod(0o755)
        return file

    def mount(self, *names: str) -> None:
        """Have these volumes mounted, and no others."""
        mounts = (f"36 35 98:0 / {self.root / name} rw - ext4 /dev/sda rw\n" for name in names)
        self.write("proc/self/mountinfo", "".join(mounts))

    def log(self, line: str) -> None:
        """Have the kernel log a line just now."""
        self.write("dev/kmsg", f"3,101,{UPTIME}000000,-;{line}\n")

    def failed(self) -> dict[str, str]:
        """Return the values of the checks that fail in one more round."""
        return {entry["check"]: entry["value"] for entry in self.round() if entry["event"] == "failed"}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    return Faulty(tmp_path, monkeypatch)


def _port(**files: str) -> Callable[[Faulty], None]:
    return lambda node: adapter(node, 1, **files)


def _file(path: str, text: str) -> Callable[[Faulty], object]:
    return lambda node: node.write(path, f"{text}\n")


def _logged(line: str) -> Callable[[Faulty], None]:
    return lambda node: node.log(line)


def _ends(program: str) -> Callable[[Faulty], object]:
    return lambda node: node.program(program, status=3)


def _full(volume: str, *, space: float = 0, inodes: float = 0) -> Callable[[Faulty], object]:
    return lambda node: node.uses.update({volume: VolumeUse(shared=False, space=space, inodes=inodes)})


def _late(node: Faulty) -> None:
    node.clock_error = 16


def _too_few_ports(node: Faulty) -> None:
    node.checks["network_ports"]["limit"] = 3


def _no_tree(node: Faulty) -> None:
    node.given["jail"] = str(node.root / "active")


FAULTS: dict[str, tuple[Callable[[Faulty], object], str]] = {
    "gpu_xid": (
        _logged("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off"),
        "found Xid 79 of 0000:1b:00 (fallen off the bus; reboot)",
    ),
    "gpu_xid_noted": (
        _logged("NVRM: Xid (PCI:0000:1b:00): 63, row"),
        "found Xid 63 of 0000:1b:00 (memory remapped; finding)",
    ),
    "network_ports": (_too_few_ports, "2"),
    "network_port_lost": (_port(state="1: DOWN"), "down: mlx5_1/1"),
    "network_rate": (_port(rate="200 Gb/sec (2X NDR)"), "lower than before: mlx5_1/1 200 Gb/s"),
    "network_symbol_errors": (_port(**{"counters/symbol_error": "121"}), "121 on mlx5_1/1"),
    "network_flaps": (_port(**{"counters/link_downed": "4"}), "1 on mlx5_1/1"),
    "network_receive_errors": (_port(**{"counters/port_rcv_errors": "1001"}), "1001 on mlx5_1/1"),
    "memory_available": (_file("proc/meminfo", "MemAvailable: 524288 kB"), "50%"),
    "memory_uncorrected": (_file("sys/devices/system/edac/mc/mc0/ue_count", "1"), "1 on mc0"),
    "memory_corrected": (_file("sys/devices/system/edac/mc/mc0/ce_count", "1001"), "1001 on mc0"),
    "volumes": (lambda node: node.mount("memory", "homes"), "failed: {root}/disk is not mounted"),
    "volume_space": (_full("disk", space=96), "96% on {root}/disk"),
    "volume_inodes": (_full("disk", inodes=98), "98% on {root}/disk"),
    "shared_memory_used": (_full("memory", space=51), "51% on {root}/memory"),
    "shared_volumes": (lambda node: node.mount("disk", "memory"), "failed: {root}/homes is not mounted"),
    "jail": (_no_tree, "no active tree"),
    "process_ids": (_file("proc/loadavg", "0.5 0.4 0.3 2/910 4711"), "91%"),
    "users_process_ids": (_file("proc/4711/status", "Uid:\t2001\t2001\t2001\t2001\nThreads:\t810"), "81% on user 2001"),
    "clock": (_late, "16 s"),
    "kernel_network": (_logged("mlx5_core 0000:0c:00.0: fw fatal"), "found mlx5_core 0000:0c:00.0: fw fatal"),
    "kernel_disk": (_logged("I/O error, dev nvme0n1, sector 2048"), "found I/O error, dev nvme"),
    "kernel_machine_check": (
        _logged("mce: [Hardware Error]: Machine check events logged"),
        "found mce: [Hardware Error]: Machine check events logged",
    ),
    "kernel_killed_slurm": (
        _logged(f"Out of memory: Killed process 7 (slurmd) {_KILLED}"),
        "found Out of memory: Killed process 7 (slurmd) total-vm:9kB, anon-",
    ),
    "slurmd": (_ends("scontrol"), "status 3"),
    "program": (_ends("program"), "status 3"),
}


def test_every_check_of_nodes_has_a_fault_here() -> None:
    assert [*FAULTS] == OF_NODES


def test_a_healthy_node_passes_every_check_and_has_a_value_for_it(node: Faulty) -> None:
    assert node.round() == node.round() == []
    assert {name for name, check in node.result["checks"].items() if check["state"] != "passed"} == set()


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_of_a_node_fails_its_check_and_no_other(node: Faulty, check: str) -> None:
    damage, value = FAULTS[check]
    node.round()
    damage(node)

    assert node.failed() == {check: value.format(root=node.root)}
