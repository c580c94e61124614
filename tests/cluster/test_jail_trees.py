"""Jails of other systems, none with Slurm inside: a newer Debian from a tarball, busybox alone."""

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster import busybox
from tests.cluster.root_trees import BUSYBOX, FORKY
from tests.cluster.slurm import Slurm, a_cluster, a_jail, a_node_set, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


HAS_SLURM = "find / -xdev -name '*slurm*' -not -path '/proc/*' -not -path '/opt/slurm*' -not -path '/var/spool/slurmd*'"


@pytest.fixture(scope="module")
def tarball_url(kubernetes: Kubernetes, built_images: None) -> Iterator[str]:
    """Serve the tarball to the cluster."""
    assert kubernetes.target.embedded, "the tarball's folder is served from the machine of the embedded Kubernetes"
    if busybox.IMAGE not in kubernetes.target.embedded.images():
        kubernetes.target.embedded.import_image(busybox.archive())
    tarball, namespace = FORKY.tarball, unique("files")
    kubernetes.run("create", "namespace", namespace)
    core: Any = kubernetes.core  # the models say that every field may be None
    mount = {"name": "files", "mountPath": "/files", "readOnly": True}
    served = {**busybox.container("exec httpd -f -p 8080 -h /files"), "volumeMounts": [mount]}
    volumes = [{"name": "files", "hostPath": {"path": str(tarball.parent)}}]
    core.create_namespaced_pod(namespace, busybox.pod("files", containers=[served], volumes=volumes))
    wait_until(lambda: core.read_namespaced_pod("files", namespace).status.phase == "Running", what="files are served")
    yield f"http://{core.read_namespaced_pod('files', namespace).status.pod_ip}:8080/{tarball.name}"
    kubernetes.run("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def foreign(
    kubernetes: Kubernetes, built_images: None, tarball_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """A cluster whose jail is another system's; `tree` says which."""
    tarball = {"url": tarball_url, "sha256": FORKY.sha256}
    cluster = a_cluster(
        name=unique("foreign"),
        jail=a_jail(source={"tarball": tarball}, changes="leave_behind"),
        users=[{"name": "alice", "uid": 2001, "shell": "/bin/sh"}],
    )
    assert kubernetes.target.embedded
    BUSYBOX.bring_to(kubernetes.target.embedded)
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("foreign"), cluster)
    yield slurm
    slurm.destroy()


@pytest.fixture(scope="module", params=["forky", "busybox"])
def tree(foreign: Slurm, tarball_url: str, request: pytest.FixtureRequest) -> str:
    """Let the jail be this system."""
    sources: dict[str, dict[str, Any]] = {
        "forky": {"tarball": {"url": tarball_url, "sha256": FORKY.sha256}},
        "busybox": {"image": BUSYBOX.reference},
    }
    foreign.cluster["jail"]["source"] = sources[request.param]
    foreign.up()
    return str(request.param)


def places() -> list[str]:
    return ["", "srun "]


def test_logins_and_jobs_are_in_it(foreign: Slurm, tree: str) -> None:
    for place in places():
        said = foreign.ssh(f"{place}cat /etc/os-release", check=False).stdout
        assert ("VERSION_CODENAME=forky" in said) == (tree == "forky")
        program = foreign.ssh(f"{place}readlink -f /bin/ls").stdout
        assert program == {"forky": "/usr/bin/ls\n", "busybox": "/bin/busybox\n"}[tree]


def test_it_has_no_slurm_of_its_own(foreign: Slurm, tree: str) -> None:
    found = foreign.ssh(f"{HAS_SLURM} 2>/dev/null; true").stdout.split()

    assert [path for path in found if "/usr/local/bin" not in path] == []


def test_srun_runs_on_two_nodes(foreign: Slurm, tree: str) -> None:
    assert sorted(foreign.ssh("srun -N2 hostname").stdout.split()) == ["cpu-0", "cpu-1"]


def test_a_batch_job_with_steps_runs(foreign: Slurm, tree: str) -> None:
    job = foreign.submit("srun -N2 hostname", options="-N2 -o out.%j")
    foreign.wait_for_job(job, "COMPLETED")

    assert sorted(foreign.ssh(f"cat out.{job}").stdout.split()) == ["cpu-0", "cpu-1"]


@pytest.mark.parametrize("command", ["sinfo", "squeue", "scontrol ping", "scontrol show config", "scancel 99999999"])
def test_client_tools_work(foreign: Slurm, tree: str, command: str) -> None:
    for place in places():
        assert "error while loading" not in foreign.ssh(f"{place}{command}", check=command.startswith("sc")).stderr


def test_salloc_runs_a_command(foreign: Slurm, tree: str) -> None:
    assert sorted(foreign.ssh("salloc -N2 srun hostname").stdout.split()) == ["cpu-0", "cpu-1"]


def test_sbcast_brings_a_file(foreign: Slurm, tree: str) -> None:
    script = "sbcast --force /bin/ls /tmp/sent.$SLURM_JOB_ID && srun ls -l /tmp/sent.$SLURM_JOB_ID"

    assert "/tmp/sent." in foreign.ssh(f"salloc -N1 sh -c {shlex.quote(script)}").stdout


def test_a_terminal_works(foreign: Slurm, tree: str) -> None:
    assert "/dev/pts/" in foreign.ssh("srun --pty tty", options=["-tt"]).stdout


def test_the_user_has_a_name(foreign: Slurm, tree: str) -> None:
    for place in places():
        assert foreign.ssh(f"{place}id -un").stdout == "alice\n"
        assert "alice" in foreign.ssh(f"{place}squeue --me --noheader -o %u; id -un").stdout


@pytest.mark.soak
def test_a_tarball_of_another_content_than_promised_is_refused(
    new_slurm: Callable[..., Slurm], tarball_url: str
) -> None:
    jail = a_jail(source={"tarball": {"url": tarball_url, "sha256": 64 * "0"}})
    slurm = new_slurm(node_sets=[a_node_set("cpu")], jail=jail)

    with pytest.raises(DeployError) as failure:
        slurm.up()

    assert FORKY.sha256 in str(failure.value)
    assert "Traceback" not in str(failure.value)


@pytest.mark.soak
def test_a_tarball_that_is_not_there_is_reported(new_slurm: Callable[..., Slurm], tarball_url: str) -> None:
    jail = a_jail(source={"tarball": {"url": f"{tarball_url}.none", "sha256": FORKY.sha256}})
    slurm = new_slurm(node_sets=[a_node_set("cpu")], jail=jail)

    with pytest.raises(DeployError) as failure:
        slurm.up()

    assert f"{tarball_url}.none" in str(failure.value)
    assert "404" in str(failure.value)
