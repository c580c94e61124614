"""Images for everybody: the Job that fills their store, starts from it, and what users cannot do to it."""

import base64
import json
import shlex
import tarfile
from collections.abc import Iterator

import pytest
from containers_testing.image_registry import layer, make_layout, running, special

from tests.cluster import busybox
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

STORE = "/var/lib/soperator/images"
SMALL = "-n1 --overcommit --mem=1"
SECRET = "registry"

LINKS = ("sh", "ls", "cat", "id", "whoami", "touch", "rm", "chmod", "stat", "sleep")


@pytest.fixture(scope="module")
def image(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, list[str]]]:
    """An image of busybox in a registry that lets alice in, the registry's authority, and what it was asked for."""
    folder = tmp_path_factory.mktemp("registry")
    address = kubernetes.run("get", "nodes", "-o", "jsonpath={.items[0].status.addresses[0].address}")
    members: list[tarfile.TarInfo | tuple[str, bytes]] = [
        ("bin/busybox", busybox.program()),
        ("etc/passwd", b"root:x:0:0::/root:/bin/sh\n"),
        special("root", b"5", mode=0o700),
        *(special(f"bin/{name}", b"2", "busybox") for name in LINKS),
    ]
    layout = make_layout(folder / "served", [layer(members, mode=0o700)], Env=["PATH=/bin"])
    with running(folder, layout, address) as (host, asked):
        yield f"{host}/team/image:1.0", (folder / "ca.crt").read_text(), asked


@pytest.fixture(scope="module")
def publishing(
    kubernetes: Kubernetes,
    built_images: None,
    image: tuple[str, str, list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Slurm]:
    """A cluster that got its image for everybody after it was made."""
    name, authority, _ = image
    host = name.partition("/")[0]
    cluster = a_cluster(
        name=unique("images"),
        node_sets=[a_node_set("cpu", replicas=2)],
        containers={"writes_mib": 64, "registries": [{"host": host, "authority": authority}]},
    )
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("images"), cluster)
    try:
        slurm.up()
        before = worker_uids(slurm)
        auth = base64.b64encode(b"alice:secret").decode()
        login = json.dumps({"auths": {host: {"auth": auth}}})
        slurm.api.create_namespaced_secret(
            slurm.namespace,
            {
                "metadata": {"name": SECRET},
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": login},
            },
        )
        slurm.cluster["containers"] |= {"images": [name], "images_secret": SECRET}
        slurm.up()
        assert worker_uids(slurm) == before, "an image for everybody has recreated workers"
        yield slurm
    finally:
        slurm.destroy()


def worker_uids(slurm: Slurm) -> list[str]:
    pods = slurm.api.list_namespaced_pod(slurm.namespace, label_selector="app.kubernetes.io/component=worker").items
    return sorted(pod.metadata.uid for pod in pods)


def run(slurm: Slurm, name: str, script: str, options: str = SMALL) -> tuple[str, str]:
    done = slurm.ssh(f"srun {options} --container-image={name} sh -c {shlex.quote(script)}")
    return done.stdout, done.stderr


def in_store(slurm: Slurm, command: str) -> str:
    return slurm.exec("cpu-0", "slurmd", "sh", "-c", f"cd {STORE} && {command}")


def test_a_user_starts_it_on_all_nodes_without_a_password_a_pull_and_a_copy(
    publishing: Slurm, image: tuple[str, str, list[str]]
) -> None:
    asked = len(image[2])
    said, told = run(publishing, image[0], "echo $SLURMD_NODENAME $(whoami)", "-N2 --overcommit --mem=1")

    assert sorted(said.splitlines()) == ["cpu-0 alice", "cpu-1 alice"]
    assert "container:" not in told
    assert len(image[2]) == asked
    assert publishing.ssh("ls ~/.local/share/soperator/containers/images").stdout == ""


def test_what_a_task_changes_is_its_own(publishing: Slurm, image: tuple[str, str, list[str]]) -> None:
    changes = "echo x > /etc/passwd && rm /bin/ls && touch /root/new /new && ls -d /new /root/new"
    said, _ = run(publishing, image[0], changes.replace("ls -d", "busybox ls -d"))
    assert said.split() == ["/new", "/root/new"]

    said, _ = run(publishing, image[0], "cat /etc/passwd; ls /root /new 2>&1; true")
    assert "root:x:0:0" in said
    assert "/new: No such file" in said


@pytest.mark.parametrize(
    "attempt",
    [
        "touch $STORE/new",
        "rm -r $STORE/names.json",
        "for file in $STORE/images/*/rootfs/etc/passwd; do echo x > $file; done",
        "for file in $STORE/uses/*; do echo x > $file; done",
        "chmod 4777 $STORE/images/*/rootfs/bin/busybox",
        "ls $STORE/parts",
    ],
)
def test_no_user_can_in_the_jail(publishing: Slurm, attempt: str) -> None:
    done = publishing.ssh(f"srun {SMALL} sh -c {shlex.quote(attempt.replace('$STORE', STORE))}", check=False)

    assert done.returncode != 0
    assert (
        "Read-only file system" in done.stderr or "Permission denied" in done.stderr or "not permitted" in done.stderr
    )


def test_an_image_that_left_the_spec_stays_while_a_task_runs_in_it(
    publishing: Slurm, image: tuple[str, str, list[str]]
) -> None:
    script = "touch /tmp/begun; until test -e /tmp/end; do sleep 1; done; cat /etc/passwd"
    options = f"{SMALL} -w cpu-0 --container-image={image[0]} -o ~/out"
    job = int(publishing.ssh(f"sbatch --parsable {options} --wrap {shlex.quote(script)}").stdout)
    wait_until(lambda: "begun" in in_store(publishing, "ls /tmp"), what="the job runs in its image")
    publishing.cluster["containers"]["images"] = []
    try:
        publishing.up()
        assert in_store(publishing, "ls images") != ""
        assert in_store(publishing, "cat names.json").strip() == "{}"
        publishing.ssh(f"srun -n1 --overlap --mem=1 --jobid={job} touch /tmp/end")
        publishing.wait_for_job(job, "COMPLETED")
        assert "root:x:0:0" in publishing.ssh("cat ~/out").stdout
    finally:
        publishing.cluster["containers"]["images"] = [image[0]]
        publishing.up()
