"""The GPU driver of a node in jobs, whatever brought it and whatever system the jail is."""

import shlex
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import escaping
from tests.cluster.device_plugin import DevicePlugin, served
from tests.cluster.driver_files import VERSIONS, Driver, by_cdi, by_hook, by_host, compiled, library
from tests.cluster.root_trees import BUSYBOX, FORKY, RootTree
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, unique
from tests.conftest import Kubernetes
from tests.soak import SOAK

pytestmark = pytest.mark.cluster

LAYOUTS = {"hook": (by_hook, VERSIONS[0]), "cdi": (by_cdi, VERSIONS[1]), "host": (by_host, VERSIONS[0])}
"""Node sets: how a driver comes to them, and of which version it is."""

JAILS = [JAIL, FORKY] if SOAK else [JAIL]
"""Jails with an older, and with a newer C library than that of the worker's image."""

ASK_CUDA = """\
import ctypes
version = ctypes.c_int()
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0 and cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
print(version.value)
"""


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Driver]:
    return {name: compiled(tmp_path_factory.mktemp(name), version) for name, (_, version) in LAYOUTS.items()}


@pytest.fixture(scope="module")
def plugins(
    kubernetes: Kubernetes, drivers: dict[str, Driver], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, DevicePlugin]]:
    with ExitStack() as stack:
        made = {}
        for name, (mounts, _) in LAYOUTS.items():
            folder = tmp_path_factory.mktemp(f"devices-{name}")
            plugin = DevicePlugin(f"nvidia.com/gpu-by-{name}", folder, count=2, mounts=mounts(drivers[name]))
            made[name] = stack.enter_context(served(plugin, kubernetes))
        yield made


@pytest.fixture(scope="module")
def machines(
    kubernetes: Kubernetes,
    built_images: None,
    plugins: dict[str, DevicePlugin],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Slurm]:
    """A node for each layout, and one without GPUs; `slurm` chooses the jail."""
    assert kubernetes.target.embedded
    for tree in JAILS:
        tree.bring_to(kubernetes.target.embedded)
    node_sets = [
        a_node_set(name, gpus={"count": 1, "resource": plugin.resource}, partitions=[name])
        for name, plugin in plugins.items()
    ]
    cluster = a_cluster(
        name=unique("driver"),
        node_sets=[*node_sets, a_node_set("cpu", partitions=["cpu"])],
        jail=a_jail(JAIL, changes="leave_behind", admin_shell=True),
    )
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("driver"), cluster)
    yield slurm
    slurm.destroy()


@pytest.fixture(scope="module", params=JAILS, ids=lambda tree: str(tree.name))
def slurm(machines: Slurm, request: pytest.FixtureRequest) -> Slurm:
    """The cluster with a jail that has a C library and Python."""
    return with_jail(machines, request.param)


@pytest.fixture(scope="module")
def without_libraries(machines: Slurm) -> Slurm:
    """The cluster with a jail of static programs alone."""
    return with_jail(machines, BUSYBOX)


def with_jail(slurm: Slurm, tree: RootTree) -> Slurm:
    slurm.cluster["jail"]["source"] = {"image": tree.reference}
    slurm.up()
    return slurm


def job(slurm: Slurm, layout: str, *command: str, options: str = "--export=NONE") -> str:
    """Run a command as a job of a node, and return what it prints."""
    return slurm.ssh(f"srun {options} -p {layout} {shlex.join(command)}").stdout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_programs_find_the_driver_of_their_node_in_an_empty_environment(
    slurm: Slurm, drivers: dict[str, Driver], layout: str
) -> None:
    program = shlex.join(["/usr/bin/python3", "-c", ASK_CUDA])
    said = job(slurm, layout, "/bin/sh", "-c", f"nvidia-smi; {program}; env -i nvidia-smi; env -i {program}")

    smi, number = f"NVIDIA-SMI {drivers[layout].version} ", str(drivers[layout].number)
    assert (said.count(smi), said.splitlines().count(number)) == (2, 2), said


def test_a_person_calls_nvidia_smi_as_everywhere(slurm: Slurm, drivers: dict[str, Driver]) -> None:
    for layout, driver in drivers.items():
        assert f"NVIDIA-SMI {driver.version} " in slurm.ssh(f"srun -p {layout} --gpus=1 nvidia-smi").stdout


def test_a_job_can_read_and_execute_the_driver_and_no_more(slurm: Slurm) -> None:
    options = job(slurm, "hook", "/bin/sh", "-c", "grep ' /usr/local/nvidia' /proc/self/mounts").splitlines()
    listed = job(slurm, "cdi", "/bin/sh", "-c", "cd /usr/local/nvidia && find . -type f -o -type l | sort")

    assert options
    assert all({"ro", "nosuid", "nodev"} <= set(line.split()[3].split(",")) for line in options)
    assert not any("noexec" in line for line in options)
    version = VERSIONS[1]
    assert listed.split() == sorted(
        [
            "./bin/nvidia-smi",
            "./etc/vulkan/icd.d/nvidia_icd.json",
            *(f"./lib64/{name}.so.{end}" for name in ("libcuda", "libnvidia-ml") for end in ("1", version)),
        ]
    )


@pytest.fixture(scope="module")
def attempted(slurm: Slurm) -> dict[str, str]:
    """Outcomes of all attempts to get out, in a job with a GPU, whose devices it may open."""
    escaping.bring(slurm)
    names = " ".join(set(escaping.BY_USERS) - {"open_a_device_that_is_not_everybodys"})
    program = f"{escaping.addresses(slurm, 'hook-0')} {escaping.PROGRAM} {names}"
    return escaping.outcomes(slurm.ssh(f"srun -p hook --gpus=1 env {program}").stdout)


def test_a_job_with_a_gpu_gets_no_further_than_another(attempted: dict[str, str]) -> None:
    assert len(attempted) == len(escaping.BY_USERS) - 1
    for said in attempted.values():
        escaping.assert_blocked(said)


def test_the_devices_of_a_job_are_those_of_its_pod(slurm: Slurm, plugins: dict[str, DevicePlugin]) -> None:
    for layout, plugin in plugins.items():
        listed = job(slurm, layout, "/bin/sh", "-c", "cd /dev && echo nvidia*").split()
        (mine,) = plugin.allocated[-1]
        assert listed == sorted([mine, "nvidia-uvm", "nvidiactl"])


def test_nodes_and_logins_without_gpus_have_no_driver_and_nothing_else_is_missing(slurm: Slurm) -> None:
    look = "ls /usr/local/nvidia; nvidia-smi; ls -d /run/ld.so.cache; ls -d /dev/nvidia*"
    load = shlex.join(["/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"])
    for place in ("srun --quiet -p cpu ", ""):
        done = slurm.ssh(f"{place}sh -c {shlex.quote(f'{look}; {load}')}", check=False)
        assert done.stdout == ""
        assert "nvidia-smi: not found" in done.stderr
        assert "libcuda.so.1: cannot open shared object file" in done.stderr
        assert slurm.ssh(f"{place}/usr/bin/python3 -c 'import ssl'").stderr == ""


def test_libraries_that_an_admin_installs_are_found_by_the_next_job_and_none_in_place_of_the_drivers(
    slurm: Slurm, drivers: dict[str, Driver], tmp_path: Path
) -> None:
    def admin(command: str) -> str:
        return slurm.exec("admin-0", "admin", "/bin/sh", "-c", command)

    slurm.wait_for_the_admin_shell()
    load = "import ctypes; ctypes.CDLL('libof-admin.so.1')"
    assert slurm.ssh(f'srun -p hook /usr/bin/python3 -c "{load}"', check=False).returncode == 1
    try:
        for soname in ("libof-admin.so.1", "libcuda.so.1"):
            encoded = b64encode(library(tmp_path, soname, number=1).read_bytes()).decode()
            admin(f"echo {encoded} | base64 -d > /usr/local/lib/{soname}")
        assert "libcuda.so.1 (libc6,x86-64) => /usr/local/lib/libcuda.so.1" in admin("ldconfig && ldconfig -p")
        said = job(slurm, "hook", "/usr/bin/env", "-i", "/usr/bin/python3", "-c", f"{load}\n{ASK_CUDA}")
        assert said == f"{drivers['hook'].number}\n"
        assert job(slurm, "cpu", "/usr/bin/python3", "-c", f"{load}\n{ASK_CUDA}") == "1\n"
    finally:
        admin("rm -f /usr/local/lib/libof-admin.so.1 /usr/local/lib/libcuda.so.1 && ldconfig")


def test_a_job_that_runs_while_the_cache_of_the_jail_is_made_still_finds_the_driver(
    slurm: Slurm, drivers: dict[str, Driver]
) -> None:
    slurm.wait_for_the_admin_shell()
    script = f"until [ -e ~/made ]; do sleep 0.2; done; /usr/bin/python3 -c {shlex.quote(ASK_CUDA)}"
    slurm.ssh("rm -f made; cat > running.sh", stdin=f"#!/bin/sh\n{script}")
    running = int(slurm.ssh("sbatch --parsable -p hook -t 5 -o running.out -e running.err running.sh").stdout)
    slurm.wait_for_job(running, "RUNNING")

    slurm.exec("admin-0", "admin", "ldconfig")
    slurm.ssh("touch made")

    slurm.wait_for_job(running, "COMPLETED")
    assert slurm.ssh("cat running.out").stdout == f"{drivers['hook'].number}\n"


def test_a_jail_without_a_c_library_runs_jobs_where_there_is_a_driver(without_libraries: Slurm) -> None:
    assert job(without_libraries, "hook", "/bin/ls", "/usr/local/nvidia/bin") == "nvidia-smi\n"
    assert job(without_libraries, "host", "/bin/sh", "-c", "ls /etc/ld.so.cache 2>&1; true").count("No such file") == 1
