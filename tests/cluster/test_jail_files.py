"""Files that slurmd and slurmstepd open for a user, on the worker's own root: none leads out, and none holds a node."""

import shlex
from collections.abc import Iterator

import pytest

from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

FOLDER = "/home/alice/files"
MARKER = f"{FOLDER}/ran"

TARGETS = {
    "file": "ln -s /proc/1/cmdline",
    "claim": "ln -s /jail/active/etc/passwd",
    "root": "ln -s /",
    "homes": "ln -s /home",
    "device": "ln -s /dev/zero",
    "pipe": "mkfifo",
}
"""Objects that a user puts where Slurm expects a file, by its name in the folder; names end in the number of a task."""

SMALL = "-n1 --overcommit --mem=1"

CASES = (
    "sbatch -i",
    "sbatch --open-mode=append -o",
    "sbatch --open-mode=truncate -e",
    "srun -i",
    "srun --open-mode=truncate -o",
    "srun --open-mode=append -e",
    "srun --label -o",
)
"""Programs, with their option for a file at the end."""


@pytest.fixture(scope="module")
def files(slurm: Slurm) -> Iterator[str]:
    """The folder of all targets, as alice has made it."""
    made = "; ".join(f"{make} {name}.0" for name, make in TARGETS.items())
    slurm.ssh(f"mkdir {FOLDER} && cd {FOLDER} && {made}")
    yield FOLDER
    slurm.ssh(f"rm -r {FOLDER}")


def command(case: str, target: str) -> str:
    """Return a command that starts a program with a target as one of its files; all it says is in `said.<target>`."""
    program, *_, option = case.split()
    told = f"{FOLDER}/said.{target}"
    if program == "srun":
        return f"timeout 60 {case} {FOLDER}/{target}.%t {SMALL} sh -c {shlex.quote(script(target))} > {told} 2>&1"
    rest = " ".join(f"{name} {told}" for name in ("-o", "-e") if name != option)
    return f"timeout 60 {case} {FOLDER}/{target}.0 {rest} --quiet --wait {SMALL} --wrap {shlex.quote(script(target))}"


def script(target: str) -> str:
    """Return what no job is to run."""
    return f"touch {MARKER}.{target}; cat /proc/self/fd/0/../jail/active; cat"


@pytest.mark.parametrize("case", CASES)
def test_a_job_does_not_start_with_a_file_from_outside_of_the_jail(slurm: Slurm, files: str, case: str) -> None:
    started = "\n".join(f"({command(case, target)}; echo {target} $? >> codes) &" for target in TARGETS)
    said = slurm.ssh(f"cd {files}; rm -f ran.* said.* codes; {started}\nwait; cat codes; tail said.*; ls", check=False)

    codes = dict(line.split() for line in said.stdout.splitlines()[: len(TARGETS)])
    assert codes.keys() == TARGETS.keys()
    assert not {"0", "124"} & set(codes.values()), said.stdout
    assert "ran." not in said.stdout
    assert "slurmd" not in said.stdout  # what the linked file says
    assert not any("DRAIN" in slurm.node_state(node) for node in ("cpu-0", "cpu-1"))


def test_a_job_is_told_why_its_input_is_refused(slurm: Slurm, files: str) -> None:
    words = {
        "file": "standard input is a file outside of the jail",
        "homes": "standard input is a directory",
        "root": "standard input is a directory",
    }
    wait = "; ".join(f"{command('sbatch -i', target)}; cat said.{target}" for target in words)
    said = slurm.ssh(f"cd {files}; {wait}", check=False).stdout

    assert [says in said for says in words.values()] == [True] * len(words), said


def test_srun_refuses_a_directory_as_its_input(slurm: Slurm) -> None:
    said = slurm.ssh(f"timeout 60 srun {SMALL} -i /home cat", check=False)

    assert said.returncode not in (0, 124)
    assert "standard input /home is a directory" in said.stderr


def test_tasks_read_files_of_their_own_whatever_comes_to_srun(slurm: Slurm, files: str) -> None:
    """slurmstepd of 24.11 dies of srun's own input next to them."""
    slurm.ssh(f"cd {files}; echo one > in.0; echo two > in.1")

    said = slurm.ssh(f"timeout 60 srun -n2 --overcommit --mem=1 -l -i {files}/in.%t cat", stdin="three\n")

    assert sorted(said.stdout.splitlines()) == ["0: one", "1: two"]


def test_a_job_of_a_user_with_a_pipe_for_its_output_gives_its_node_back(slurm: Slurm, files: str) -> None:
    job = slurm.submit("true", options=f"{SMALL} -o {files}/pipe.0")
    slurm.ssh(f"scancel {job}")

    wait_until(lambda: not slurm.ssh(f"squeue -h -j {job}", check=False).stdout, what="the job has ended")


def test_a_file_that_is_sent_to_the_nodes_changes_no_device(slurm: Slurm, files: str) -> None:
    """slurmd gives what it has written to the user: of what all jobs share it would be the user's alone."""
    places = ("/dev/null", "/dev/ptmx", "/dev/zero", "/proc/keys", "/run/termination-log")
    look = ("cpu-0", "slurmd", "stat", "--dereference", "--format", "%n %U %G %a", *places)
    before = slurm.exec(*look)
    sent = "; ".join(f"timeout 60 salloc -w cpu-0 {SMALL} sbcast -f said {place}" for place in places)

    slurm.ssh(f"cd {files}; echo text > said; {sent}", check=False)

    assert slurm.exec(*look) == before
    assert slurm.ssh("srun -w cpu-0 sh -c 'echo text > /dev/null && cat /dev/null'").stdout == ""


def test_a_file_that_is_sent_into_a_pipe_holds_no_slurmd(slurm: Slurm, files: str) -> None:
    sent = f"timeout 60 salloc -w cpu-0 {SMALL} sbcast -f said {files}/pipe.0"

    said = slurm.ssh(f"cd {files}; echo text > said; {sent}", check=False)

    assert said.returncode not in (0, 124), said.stderr


def test_a_file_is_sent_to_the_nodes_all_the_same(slurm: Slurm, files: str) -> None:
    send = "sbcast -f said /tmp/sent && srun cat /tmp/sent"
    said = slurm.ssh(f"cd {files}; echo text > said; salloc -w cpu-0 {SMALL} sh -c '{send}'").stdout

    assert said == "text\n"


def test_links_of_a_user_are_followed_as_the_user_and_not_as_root(slurm: Slurm) -> None:
    """What root opens in a volume of users could else be any file of the worker or of the jail."""
    here = "-w cpu-0 --mem=1 --overcommit"
    stays = slurm.submit("sleep 600", options=f"{here} -o /dev/null")  # and with it what alice has in /tmp
    try:
        for folder in ("/home/alice", "/tmp", "/dev/shm", "/data", "/mnt/local"):
            slurm.ssh(f"srun {here} sh -c 'mkdir -p {folder}/real.d && ln -sfn real.d {folder}/link.d'")
            slurm.submit("pwd", options=f"{here} --wait -D {folder}/link.d -o {folder}/link.d/output")

            read = f"cat {folder}/link.d/output 2>&1; cat {folder}/real.d/output"
            by_root = slurm.exec("cpu-0", "slurmd", "sh", "-c", read)
            refused = f"cat: {folder}/link.d/output: Too many levels of symbolic links"
            assert by_root.splitlines() == [refused, f"{folder}/real.d"]
    finally:
        slurm.ssh(f"scancel {stays}")
