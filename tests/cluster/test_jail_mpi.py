"""MPI in the default jail: compiled there, started by srun, run over two nodes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.root_files import slurmd_of, traced
from tests.cluster.slurm import VERSION, Slurm, a_cluster, a_jail, deployed, unique
from tests.conftest import Kubernetes
from tools import paths

pytestmark = pytest.mark.cluster

HELLO = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0, length;
    char node[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(node, &length);
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s: sum %d\n", rank, size, node, sum);
    MPI_Finalize();
    return 0;
}
"""

BY_PMIX = pytest.mark.skipif(
    VERSION == "26.05", reason="Debian's 26.05 is built without PMIx: test_pmix_images has images with it"
)
"""Of a test in which srun starts Open MPI 5, which knows PMIx alone."""

WHEEL = """
import zipfile
files = {
    "mine.py": "",
    "mine-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: mine\\nVersion: 1\\n",
    "mine-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "mine-1.dist-info/RECORD": "",
}
with zipfile.ZipFile("mine-1-py3-none-any.whl", "w") as wheel:
    for name, content in files.items():
        wheel.writestr(name, content)
"""


@pytest.fixture(scope="module")
def real(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster whose jail is the default one."""
    jail = a_jail(storage={"size_gib": 4})
    del jail["source"]
    users = [{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002}]
    cluster = a_cluster(name=unique("real"), jail=jail, users=users)
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("real"), cluster)) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def hello(real: Slurm) -> str:
    """The compiled program."""
    real.ssh("cat > hello.c", stdin=HELLO)
    real.ssh("srun mpicc -O2 -o hello hello.c", timeout_seconds=120)
    return "/home/alice/hello"


def test_the_default_jail_has_what_a_user_expects(real: Slurm) -> None:
    programs = "python3 python pip gcc g++ make cmake gdb mpicc ssh git rsync curl wget jq nano vim less man htop tmux"

    for place in ("", "srun "):
        script = f"for p in {programs}; do command -v $p >/dev/null || echo $p; done"
        assert real.ssh(f"{place}bash -c {shlex.quote(script)}").stdout == ""


def test_the_default_jail_has_manual_pages_of_its_programs_and_of_slurm(real: Slurm) -> None:
    for page in ("ls", "git", "sbatch"):
        assert real.ssh(f"srun man {page} | head -1").stdout.strip(), page


def test_a_user_installs_a_package_of_python_for_herself(real: Slurm) -> None:
    """The package is one that she makes: no index of packages is asked."""
    real.ssh("python -", stdin=WHEEL)
    real.ssh("pip install --no-index ./mine-1-py3-none-any.whl")

    assert real.ssh("cd /tmp && srun python -c 'import mine; print(mine.__file__)'").stdout.startswith(
        "/home/alice/.local"
    )


@BY_PMIX
def test_srun_starts_an_mpi_program_over_two_nodes(real: Slurm, hello: str) -> None:
    said = real.ssh(f"srun -N2 -n4 --overcommit {hello}", timeout_seconds=120).stdout

    assert_four_met(said)


@pytest.mark.parametrize("started", [pytest.param("srun", marks=BY_PMIX), "mpirun"])
def test_mpi_in_a_batch_job_over_two_nodes(real: Slurm, hello: str, started: str) -> None:
    job = real.submit(f"{started} {hello}", options="-N2 -n4 -o mpi.%j")
    real.wait_for_job(job, "COMPLETED")

    assert_four_met(real.ssh(f"cat mpi.{job}").stdout)


def assert_four_met(said: str) -> None:
    """Four ranks on two nodes have added their numbers up."""
    found = [re.fullmatch(r"rank (\d) of 4 on (cpu-\d): sum 10", line) for line in said.splitlines()]
    ranks = {match[1]: match[2] for match in found if match}

    assert len(found) == 4, said
    assert sorted(ranks) == ["0", "1", "2", "3"], said
    assert set(ranks.values()) == {"cpu-0", "cpu-1"}, said


JOINS = """
import ctypes

library = ctypes.CDLL("/opt/slurm/lib/libpmix.so.2")
print("joined", library.PMIx_Init(ctypes.create_string_buffer(1024), None, ctypes.c_size_t(0)))
"""
"""A task that connects to the PMIx of a step, as its variables say."""

LEADS_ASTRAY = (
    """
import os, socket

job, step, host = os.environ["SLURM_JOB_ID"], os.environ["SLURM_STEP_ID"], socket.gethostname()
bases = {os.environ.get("SLURM_PMIX_TMPDIR", "/tmp"), "/tmp", os.environ["HOME"]}
for folder in (f"{base}/spmix_appdir_{os.getuid()}_{job}.{step}" for base in bases):
    if os.path.isdir(folder):
        store = f"pmix-gds-shmem2.{host}-slurm.pmix.{job}.{step}.jobdata.{os.getppid()}"
        os.symlink("/jail/active/usr/local/planted", f"{folder}/{store}")
        print("planted")
"""
    + JOINS
)
"""A task that makes a link in place of a file that root's libpmix may keep, and then has libpmix work."""

STATES_ALICE = "int geteuid(void) { return 2001; }\nint getegid(void) { return 2001; }\n"
"""A library by which libpmix states that it runs as alice."""


@BY_PMIX
@pytest.mark.parametrize("variables", ["", "SLURM_PMIX_TMPDIR=/home/alice ", "PMIX_DEBUG=9 "])
def test_a_link_in_a_folder_of_pmix_leads_root_nowhere(real: Slurm, variables: str) -> None:
    real.ssh("cat > leads_astray.py", stdin=LEADS_ASTRAY)

    said = real.ssh(f"{variables}srun --mpi=pmix -w cpu-0 python3 leads_astray.py").stdout

    assert said == "planted\njoined 0\n"
    assert real.ssh("ls /usr/local/planted", check=False).returncode != 0
    assert real.ssh("srun -w cpu-0 find /tmp /home/alice -user root -type f").stdout == ""


@BY_PMIX
def test_no_user_makes_names_in_the_folder_of_pmix_and_it_has_a_size(real: Slurm) -> None:
    shown = "srun --mpi=pmix -w cpu-0 sh -c"
    made = real.ssh(f"{shown} 'mkdir $SLURM_PMIX_TMPDIR/spmix_appdir_2002_99.0'", check=False)
    room = real.ssh(f"{shown} 'df --output=size,itotal --block-size=M $SLURM_PMIX_TMPDIR | tail -1'").stdout.split()

    assert "Permission denied" in made.stderr
    assert room == ["64M", "65536"]


@BY_PMIX
def test_no_step_writes_into_the_spool(real: Slurm) -> None:
    said = real.ssh("srun --mpi=pmix find /var/spool/slurmd -writable").stdout

    assert said == ""


@BY_PMIX
def test_no_other_user_comes_to_a_step_by_pmix(real: Slurm) -> None:
    """The library believes the user id that a caller states. Another process of alice shows that the call is right."""
    real.ssh("cat > joins.py && chmod a+rx . joins.py", stdin=JOINS)
    real.ssh("cat > states_alice.c", stdin=STATES_ALICE)
    real.ssh("srun gcc -shared -fPIC -o states_alice.so states_alice.c")
    step = 'srun --mpi=pmix sh -c "env | grep ^PMIX_ > pmix.tmp; mv pmix.tmp pmix.env; exec sleep 300"'
    job = real.submit(step, options="-w cpu-0 -o /dev/null")
    call = (
        "until [ -e /home/alice/pmix.env ]; do sleep 0.1; done; "
        "srun -w cpu-0 --mpi=none env $(cat /home/alice/pmix.env) LD_PRELOAD=/home/alice/states_alice.so "
        "timeout 60 python3 /home/alice/joins.py"
    )
    try:
        called = {user: real.ssh(call, user=user, check=False).stdout for user in ("bob", "alice")}
    finally:
        real.ssh(f"scancel {job}")

    assert called["bob"] != "joined 0\n"
    assert called["alice"] == "joined 0\n"


def test_tasks_of_two_nodes_meet_over_pmi2(real: Slurm) -> None:
    program = (Path(paths.ROOT) / "tests" / "cluster" / "jail_pmi2.py").read_text()
    real.ssh("cat > pmi2.py", stdin=program)

    said = real.ssh("srun -N2 --mpi=pmi2 python3 pmi2.py").stdout

    met = sorted(line.split() for line in said.splitlines())
    assert [words[:5] for words in met] == [["rank", str(rank), "of", "2", "met"] for rank in range(2)]
    assert [sorted(words[5:]) for words in met] == [["cpu-0", "cpu-1"]] * 2


HOSTILE = (
    "srun --mpi=pmix {node} python3 leads_astray.py",
    "PMIX_DEBUG=9 SLURM_PMIX_TMPDIR=/home/alice srun --mpi=pmix {node} python3 leads_astray.py",
    "srun --mpi=pmi2 {node} sleep 0.1",
    "srun {node} sh -c 'ulimit -c unlimited; cd /tmp; kill -SEGV $$'",
    "srun {node} --task-prolog=/home/alice/linked/prolog --task-epilog=/home/alice/linked/prolog true",
    "srun {node} --label --chdir=/home/alice/linked -o '%j.%t.%N' hostname",
    "salloc {node} sh -c 'sbcast -f hello.c /home/alice/linked/sent; sbcast -f hello.c /tmp/sent'",
    "sbatch --quiet --wait --get-user-env {node} -D /home/alice/linked -i ../hello.c -o '%u.%x.%j' --wrap true",
)
"""Commands by which slurmd and slurmstepd work on files that a user names or can change. Some are refused."""


@BY_PMIX
def test_root_changes_nothing_in_folders_that_users_can_change(real: Slurm, tmp_path: Path) -> None:
    real.ssh("cat > leads_astray.py", stdin=LEADS_ASTRAY)
    real.ssh("cat > hello.c", stdin=HELLO)
    real.ssh("mkdir -p real && ln -sfn real linked && printf '#!/bin/sh\n' > real/prolog && chmod +x real/prolog")
    pod = real.api.read_namespaced_pod("cpu-0", real.namespace)
    with traced(slurmd_of(pod.metadata.uid), tmp_path) as changes:
        for command in HOSTILE:
            real.ssh(command.format(node="-w cpu-0"), timeout_seconds=120, check=False)

    paths = {change.path for change in changes}
    of_steps = re.compile(r"/run/slurm/pmix/spmix_appdir_2001_\d+\.\d+")
    assert any(of_steps.fullmatch(path) for path in paths), "root makes folders of PMIx"
    users = re.compile(r"(/home|/tmp|/dev/shm|/jail/active|/run/slurm/pmix/[^/]+)/.")
    changed = {change for change in changes if users.match(change.path)}
    # What users leave in the folders of PMIx root removes, by a descriptor of the folder.
    assert {change for change in changed if change.call != "unlinkat"} == set()
