"""Sockets of GPUs in gres.conf: read from a made sysfs, or given, and written as Slurm takes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gpu_sockets.gres_lines import found, with_cores
from gpu_sockets.machine import NotKnownError, cores_in_order, near_cpus, parse_cpus
from soperator_pulumi.render.gres import start_arguments
from soperator_pulumi.spec.gpus import GpusSpec
from soperator_pulumi.spec.node_set import CpuLayout
from tests.unit.cluster.test_worker_gpus import gres_of, has, has_instances
from tests.unit.cluster.worker_container import Worker


class Machine:
    """A machine's /sys and /proc, as far as they are read."""

    def __init__(self, root: Path) -> None:
        self.sys, self.proc = root / "sys", root / "proc"

    def _write(self, path: Path, text: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def has_cpus(self, packages: Mapping[str, Sequence[str]], *, numa: Sequence[str] = (), old: bool = False) -> None:
        """Make CPUs: the cores of every package, all as lists of CPUs; `old`: by a kernel before 5.10."""
        core_file, package_file = (
            ("thread_siblings_list", "core_siblings_list") if old else ("core_cpus_list", "package_cpus_list")
        )
        for package, cores in packages.items():
            for core in cores:
                for cpu in parse_cpus(core):
                    topology = self.sys / f"devices/system/cpu/cpu{cpu}/topology"
                    self._write(topology / core_file, core)
                    self._write(topology / package_file, package)
        (self.sys / "devices/system/cpu/cpufreq").mkdir(exist_ok=True)
        (self.sys / "devices/system/cpu/cpu9999").mkdir()  # not online: without a topology
        for number, cpus in enumerate(numa or packages):
            self._write(self.sys / f"devices/system/node/node{number}/cpulist", cpus)

    def has_cache(self, *groups: str) -> None:
        """Make caches of the third level."""
        for group in groups:
            for cpu in parse_cpus(group):
                for index, level, shared in ((0, 1, str(cpu)), (3, 3, group)):
                    cache = self.sys / f"devices/system/cpu/cpu{cpu}/cache/index{index}"
                    self._write(cache / "level", level)
                    self._write(cache / "shared_cpu_list", shared)

    def has_nvidia(self, minor: int, near: str, *, node: int = 0) -> None:
        address = f"0000:{minor + 16:02x}:00.0"
        text = f"Model: \t\t NVIDIA H100\nIRQ:   \t\t {minor}\nDevice Minor: \t {minor}\nGPU Excluded:\t No"
        self._write(self.proc / f"driver/nvidia/gpus/{address.upper()}/information", text)
        self._has_pci(self.sys / f"bus/pci/devices/{address}", near, node)

    def has_amd(self, number: int, near: str, *, node: int = 0) -> None:
        self._has_pci(self.sys / f"class/drm/renderD{number}/device", near, node)

    def _has_pci(self, device: Path, near: str, node: int) -> None:
        self._write(device / "numa_node", node)
        self._write(device / "local_cpulist", near)


def smt(first: int, last: int, siblings: int) -> list[str]:
    """Return cores of two threads: the second one is as much higher."""
    return [f"{cpu},{cpu + siblings}" for cpu in range(first, last + 1)]


TWO_SOCKETS = {"0-47,96-143": smt(0, 47, 96), "48-95,144-191": smt(48, 95, 96)}
ALTERNATING = {"0,2,4,6": ["0", "2", "4", "6"], "1,3,5,7": ["1", "3", "5", "7"]}
ONE_SOCKET = {"0-7": [str(cpu) for cpu in range(8)]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def lines_of(*minors: int) -> list[str]:
    return [f"Name=gpu Type=h100 File=/dev/nvidia{minor} Flags=nvidia_gpu_env" for minor in minors]


def cores_of(machine: Machine, sockets: int, cores: int, *minors: int) -> list[str]:
    """Return the cores of GPUs in gres.conf; empty without any."""
    lines = lines_of(*minors)
    placed = with_cores(lines, found(lines, machine.sys, machine.proc, sockets, cores), sockets, cores)
    return [line.partition(" Cores=")[2] for line in placed]


@pytest.mark.parametrize("old", [False, True])
def test_gpus_of_two_sockets_have_the_cores_of_theirs(machine: Machine, *, old: bool) -> None:
    machine.has_cpus(TWO_SOCKETS, old=old)
    for minor in range(8):
        machine.has_nvidia(minor, list(TWO_SOCKETS)[minor // 4], node=minor // 4)

    assert cores_of(machine, 2, 48, *range(8)) == ["0-47"] * 4 + ["48-95"] * 4


def test_cores_are_counted_by_sockets_where_the_numbers_of_cpus_alternate(machine: Machine) -> None:
    machine.has_cpus(ALTERNATING)
    machine.has_nvidia(0, "1,3,5,7", node=1)
    machine.has_nvidia(1, "0,2,4,6")

    assert [min(core) for core in cores_in_order(machine.sys)] == [0, 2, 4, 6, 1, 3, 5, 7]
    assert cores_of(machine, 2, 4, 0, 1) == ["4-7", "0-3"]


def test_gpus_of_numa_nodes_in_a_socket_have_the_cores_of_theirs_if_these_are_the_nodes_sockets(
    machine: Machine,
) -> None:
    """As with NPS4 of two EPYCs: 8 NUMA nodes of 12 cores."""
    numa = [f"{first}-{first + 11},{first + 96}-{first + 107}" for first in range(0, 96, 12)]
    machine.has_cpus(TWO_SOCKETS, numa=numa)
    for minor in range(8):
        machine.has_nvidia(minor, numa[minor ^ 1], node=minor ^ 1)

    assert cores_of(machine, 8, 12, 0, 1, 6, 7) == ["12-23", "0-11", "84-95", "72-83"]


def test_gpus_of_numa_nodes_have_all_cores_of_their_socket_as_slurm_takes_no_part_of_one(machine: Machine) -> None:
    numa = [f"{first}-{first + 11},{first + 96}-{first + 107}" for first in range(0, 96, 12)]
    machine.has_cpus(TWO_SOCKETS, numa=numa)
    machine.has_nvidia(0, numa[1], node=1)
    machine.has_nvidia(1, numa[6], node=6)

    assert cores_of(machine, 2, 48, 0, 1) == ["0-47", "48-95"]


def test_numa_nodes_with_alternating_cpus_are_counted_one_after_the_other(machine: Machine) -> None:
    machine.has_cpus(ONE_SOCKET, numa=["0,2,4,6", "1,3,5,7"])
    machine.has_nvidia(0, "1,3,5,7", node=1)

    assert cores_of(machine, 2, 4, 0) == ["4-7"]


def test_cores_with_a_cache_in_common_stay_together_as_slurmd_counts_them(machine: Machine) -> None:
    machine.has_cpus(ONE_SOCKET)
    machine.has_cache("0,4", "1,5", "2,6", "3,7")

    assert [min(core) for core in cores_in_order(machine.sys)] == [0, 4, 1, 5, 2, 6, 3, 7]


def test_gpus_of_a_machine_with_one_numa_node_have_no_cores(machine: Machine) -> None:
    machine.has_cpus(ONE_SOCKET)
    machine.has_nvidia(0, "0-7")

    assert cores_of(machine, 1, 8, 0) == [""]


def test_a_gpu_between_two_sockets_has_the_cores_of_both(machine: Machine) -> None:
    machine.has_cpus(ALTERNATING)
    machine.has_nvidia(0, "0-7")
    machine.has_nvidia(1, "0,2,4,6")

    assert cores_of(machine, 2, 4, 0, 1) == ["0-3,4-7", "0-3"]


def test_a_numa_node_without_cpus_counts_for_nothing(machine: Machine) -> None:
    """As the memory of a GB200's GPUs."""
    machine.has_cpus(ALTERNATING, numa=["0,2,4,6", "1,3,5,7", ""])

    assert len(cores_in_order(machine.sys)) == 8


def test_gpus_of_amd_are_found_by_their_render_nodes(machine: Machine) -> None:
    machine.has_amd(129, "1,3,5,7", node=1)

    assert near_cpus(machine.sys, machine.proc, "/dev/dri/renderD129") == {1, 3, 5, 7}


@pytest.mark.parametrize(
    ("node", "near", "sockets", "words"),
    [
        (-1, "0-191", 2, r"does not report the NUMA node of /dev/nvidia0 \(numa_node is -1\).* set gpus.sockets"),
        (0, "", 2, "does not report the NUMA node"),
        (0, "0-47,96-143", 3, r"the machine has 96 cores, but the node set declares 3 \* 48 = 144"),
    ],
)
def test_what_the_machine_hides_or_contradicts_is_not_used(
    machine: Machine, node: int, near: str, sockets: int, words: str
) -> None:
    machine.has_cpus(TWO_SOCKETS)
    machine.has_nvidia(0, near, node=node)

    with pytest.raises(NotKnownError, match=words):
        cores_of(machine, sockets, 48, 0)


def test_a_machine_without_sysfs_is_not_known(machine: Machine) -> None:
    with pytest.raises(NotKnownError, match="does not list its cores"):
        cores_of(machine, 2, 48, 0)


def test_a_gpu_that_the_driver_does_not_list_is_not_known(machine: Machine) -> None:
    machine.has_cpus(TWO_SOCKETS)
    machine.has_nvidia(10, "0-47,96-143")

    with pytest.raises(NotKnownError, match="does not list /dev/nvidia1 in"):
        cores_of(machine, 2, 48, 1)


@pytest.mark.parametrize("text", ["", "0-", "a", "1,,2", "-1", "0-3\n4"])
def test_a_list_in_another_form_has_no_cpus(text: str) -> None:
    assert parse_cpus(text) == frozenset()


# -- what a pod writes ---------------------------------------------------------------------------------------------


def declare(worker: Worker, layout: CpuLayout | None, **gpus: object) -> None:
    worker.options["gpus"] = start_arguments(GpusSpec.model_validate(gpus), layout)


@pytest.fixture
def with_sockets(worker: Worker) -> Machine:
    machine = Machine(worker.root)
    machine.has_cpus(ALTERNATING)
    machine.has_nvidia(0, "1,3,5,7", node=1)
    machine.has_nvidia(1, "0,2,4,6")
    has(worker, "nvidia0", "nvidia1")
    return machine


def test_a_pod_writes_the_cores_of_its_gpus_and_lets_slurm_give_them_to_shards(
    worker: Worker, with_sockets: Machine
) -> None:
    declare(worker, CpuLayout(2, 4, 1), count=2, type="l4", shards_per_gpu=2)
    worker.start()

    assert gres_of(worker) == [
        "Name=gpu Type=l4 File=/dev/nvidia0 Flags=nvidia_gpu_env Cores=4-7",
        "Name=gpu Type=l4 File=/dev/nvidia1 Flags=nvidia_gpu_env Cores=0-3",
        "Name=shard Count=2 File=/dev/nvidia0",
        "Name=shard Count=2 File=/dev/nvidia1",
    ]


def test_instances_of_mig_have_the_cores_of_their_gpu(worker: Worker, with_sockets: Machine) -> None:
    has_instances(worker, (0, 9, 21, 22), (0, 10, 30, 31), (1, 9, 60, 61))
    declare(worker, CpuLayout(2, 4, 1), mig={"1g.10gb": 3})
    worker.start()

    assert [line.partition(" Cores=")[2] for line in gres_of(worker)] == ["4-7", "4-7", "0-3"]


def test_sockets_of_the_node_set_replace_those_of_the_machine(worker: Worker, with_sockets: Machine) -> None:
    declare(worker, CpuLayout(2, 2, 2), count=2, sockets=[0, 1])
    worker.start()

    assert [line.partition(" Cores=")[2] for line in gres_of(worker)] == ["0-1", "2-3"]


def test_gpus_of_a_node_without_a_layout_have_no_cores(worker: Worker, with_sockets: Machine) -> None:
    declare(worker, None, count=2)
    worker.start()

    assert "Cores=" not in (worker.root / "gres.conf").read_text()


def test_slurmd_starts_without_cores_on_a_machine_that_hides_them_and_the_log_says_why(worker: Worker) -> None:
    has(worker, "nvidia0")
    declare(worker, CpuLayout(2, 2, 1), count=1)
    worker.write(**{"termination-log": "", "open_as_user.so": ""})

    done = worker.run(worker.start_command())

    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "-D"
    assert "Slurm does not know the sockets of the GPUs: the machine does not list its cores in /sys." in done.stderr
    assert gres_of(worker) == ["Name=gpu File=/dev/nvidia0 Flags=nvidia_gpu_env"]


def test_the_only_socket_of_a_machine_needs_no_look_at_it(worker: Worker) -> None:
    has(worker, "nvidia0")
    declare(worker, CpuLayout(1, 4, 1), count=1)
    worker.write(**{"termination-log": "", "open_as_user.so": ""})

    assert "does not know the sockets" not in worker.run(worker.start_command()).stderr
    assert gres_of(worker) == ["Name=gpu File=/dev/nvidia0 Flags=nvidia_gpu_env"]
