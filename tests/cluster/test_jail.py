"""The jail: logins and jobs see one root filesystem, whatever image the daemons run on."""

import pytest

from tests.cluster.slurm import VERSION, Slurm
from tools.images.recipe import SUITES

pytestmark = pytest.mark.cluster

RELEASE = "grep ^VERSION_CODENAME= /etc/os-release"
OF_THE_JAIL = "VERSION_CODENAME=bookworm\n"
OF_THE_DAEMONS = f"VERSION_CODENAME={SUITES[VERSION]}\n"


def batch_output(slurm: Slurm, command: str, *, options: str = "") -> str:
    """Run a batch job to its end and return what it wrote."""
    job = slurm.submit(command, options=f"-o out.%j {options}")
    slurm.wait_for_job(job, "COMPLETED")
    return slurm.ssh(f"cat ~/out.{job}").stdout


@pytest.mark.parametrize(("pod", "container"), [("cpu-0", "slurmd"), ("login-0", "sshd")])
def test_the_daemons_run_on_another_release(slurm: Slurm, pod: str, container: str) -> None:
    """Otherwise the tests below would show nothing."""
    assert slurm.exec(pod, container, "sh", "-c", RELEASE) == OF_THE_DAEMONS


def test_a_login_sees_the_jail(slurm: Slurm) -> None:
    assert slurm.ssh(RELEASE).stdout == OF_THE_JAIL


def test_srun_sees_the_jail_on_every_node(slurm: Slurm) -> None:
    assert slurm.ssh(f"srun -N2 {RELEASE}").stdout == 2 * OF_THE_JAIL


def test_a_batch_job_sees_the_jail(slurm: Slurm) -> None:
    assert batch_output(slurm, RELEASE) == OF_THE_JAIL


def test_a_step_of_a_batch_job_sees_the_jail(slurm: Slurm) -> None:
    assert batch_output(slurm, f"srun {RELEASE}", options="-N2") == 2 * OF_THE_JAIL


@pytest.mark.parametrize("folder", ["/home/alice", "/data"])
def test_a_file_written_by_a_job_is_read_on_another_node_and_at_the_login(slurm: Slurm, folder: str) -> None:
    slurm.ssh(f"srun -w cpu-0 sh -c 'hostname > {folder}/written'")

    assert slurm.ssh(f"srun -w cpu-1 cat {folder}/written").stdout == "cpu-0\n"
    assert slurm.ssh(f"cat {folder}/written").stdout == "cpu-0\n"


@pytest.mark.parametrize("folder", ["/tmp", "/mnt/local", "/dev/shm"])
def test_a_local_folder_is_of_its_node_for_all_steps_of_a_job(slurm: Slurm, folder: str) -> None:
    one, other = "srun -N1 -w cpu-0", "srun -N1 -w cpu-1"
    steps = f'{one} sh -c "echo local > {folder}/of-alice"; {one} cat {folder}/of-alice; {other} cat {folder}/of-alice'
    said = slurm.ssh(f"salloc -Q -N2 -w cpu-[0-1] sh -c '{steps}'", check=False)

    assert said.stdout == "local\n"
    assert f"cat: {folder}/of-alice: No such file or directory" in said.stderr
    slurm.ssh(f"srun -w cpu-0 rm -f {folder}/of-alice")


def test_a_folder_of_the_machine_outlives_the_job(slurm: Slurm) -> None:
    slurm.ssh("srun -w cpu-0 sh -c 'echo local > /mnt/local/of-alice'")

    assert slurm.ssh("srun -w cpu-0 sh -c 'cat /mnt/local/of-alice; rm /mnt/local/of-alice'").stdout == "local\n"


def test_output_goes_to_a_submount(slurm: Slurm) -> None:
    job = slurm.submit("echo from $PWD", options="--chdir=/data -o /data/out.%j")
    slurm.wait_for_job(job, "COMPLETED")

    assert slurm.ssh(f"cat /data/out.{job}").stdout == "from /data\n"


def test_a_read_only_submount_is_read_and_not_written(slurm: Slurm) -> None:
    slurm.ssh("echo known > /data/known")

    for prefix in ("", "srun "):
        assert slurm.ssh(f"{prefix}cat /mnt/reference/known").stdout == "known\n"
        refused = slurm.ssh(f"{prefix}touch /mnt/reference/new", check=False)
        assert "Read-only file system" in refused.stderr


def test_memory_of_a_submount_is_limited(slurm: Slurm) -> None:
    size = int(slurm.ssh("srun df --block-size=1M --output=size /dev/shm | tail -n 1").stdout)

    assert size == 256


def test_a_submount_is_on_its_roles_alone(slurm: Slurm) -> None:
    """It is there at the login only as an empty folder of the tree."""
    slurm.ssh("srun -w cpu-0 touch /mnt/local/here")

    assert "here" not in slurm.ssh("ls /mnt/local", check=False).stdout


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ("--output=/var/tmp/out", "/var/tmp/out"),
        ("--error=/opt/err", "/opt/err"),
        ("--input=/etc/passwd", "/etc/passwd"),
        ("--chdir=/usr/share", "/usr/share"),
        ("--output=/home/../etc/out", "/etc/out"),
    ],
)
def test_a_path_that_the_worker_does_not_share_is_refused_at_submission(slurm: Slurm, options: str, path: str) -> None:
    """Slurm's daemon opens these files on the worker, where only the shared folders are the jail's."""
    refused = slurm.ssh(f"sbatch {options} --wrap true", check=False)

    assert refused.returncode != 0
    assert path in refused.stderr
    assert "/home" in refused.stderr
    assert "/data" in refused.stderr


def test_a_working_directory_elsewhere_is_refused_at_submission(slurm: Slurm) -> None:
    refused = slurm.ssh("cd /usr/share && srun pwd", check=False)

    assert refused.returncode != 0
    assert "/usr/share" in refused.stderr


def test_the_clients_are_the_clusters(slurm: Slurm) -> None:
    """The tree has no Slurm of its own."""
    assert slurm.ssh("readlink -f $(command -v srun)").stdout == "/opt/slurm/bin/srun\n"
    version = slurm.exec("controller-0", "slurmctld", "scontrol", "--version")
    for prefix in ("", "srun "):
        assert slurm.ssh(f"{prefix}scontrol --version").stdout == version


@pytest.mark.parametrize("prefix", ["", "srun "])
@pytest.mark.parametrize(
    "command",
    ["sinfo", "squeue", "scontrol ping", "scontrol show partition", "sbatch --version", "sprio --version", "sdiag"],
)
def test_client_tools_work_at_the_login_and_in_a_job(slurm: Slurm, prefix: str, command: str) -> None:
    slurm.ssh(prefix + command)


def test_users_have_their_names_in_the_jail(slurm: Slurm) -> None:
    for prefix in ("", "srun "):
        assert slurm.ssh(f"{prefix}id -un").stdout == "alice\n"
        assert slurm.ssh(f"{prefix}ls -ld /home/alice").stdout.split()[2:4] == ["alice", "alice"]
        assert "alice" in slurm.ssh(f"{prefix}squeue --me --noheader -o %u; id -un").stdout


def test_names_are_resolved_in_the_jail(slurm: Slurm) -> None:
    for prefix in ("", "srun "):
        slurm.ssh(f"{prefix}getent hosts controller-0")


def test_the_jail_has_processes_devices_and_a_terminal(slurm: Slurm) -> None:
    for prefix in ("", "srun "):
        slurm.ssh(f"{prefix}bash -c 'cat /proc/self/status <(echo x) && head -c 8 /dev/urandom | od && ls /sys/class'")
