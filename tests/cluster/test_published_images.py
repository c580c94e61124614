"""Shared images: the Job that fills their store, starts from it, and what users cannot do to it."""

import base64
import copy
import json
import secrets
import shlex
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from containers_testing.image_registry import layer, make_layout, running, special

from tests.cluster import busybox
from tests.cluster.long_check_runs import events, run_of
from tests.cluster.scrapes import scraped
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, deployed, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

STORE = "/var/lib/soperator/images"
SMALL = "-n1 --overcommit --mem=1"
SECRET = "registry"
NEVER = "0 0 1 1 *"
"""Schedule of checks that only a test starts."""

IPERF3 = b"""#!/bin/sh
case "$*" in *-s*) exec sleep 60;; esac
echo '{"end": {"sum_received": {"bits_per_second": 5e9}}}'
"""
"""Stand-in of a program of the long checks, which is in no jail of the tests."""

LINKS = ("sh", "timeout", "date", "ls", "cat", "id", "whoami", "touch", "rm", "chmod", "stat", "sleep")


@dataclass(frozen=True)
class ServedImage:
    """An image of busybox in a registry that lets alice in."""

    name: str
    authority: str
    """Certificate of the registry's authority."""
    asked: list[str]
    """Paths that the registry was asked for."""
    folder: Path
    """Folder of the layout that the registry serves."""
    content: bytes
    """The image's only layer."""

    def move_tag(self) -> None:
        """Give the tag to an image with the same files and another digest."""
        with TemporaryDirectory() as folder:
            make_layout(Path(folder), [self.content], Env=["PATH=/bin", f"MOVED={secrets.token_hex(4)}"])
            shutil.copytree(folder, self.folder, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def image(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedImage]:
    folder = tmp_path_factory.mktemp("registry")
    address = kubernetes.run("get", "nodes", "-o", "jsonpath={.items[0].status.addresses[0].address}")
    members: list[tarfile.TarInfo | tuple[str, bytes]] = [
        ("bin/busybox", busybox.program()),
        ("bin/iperf3", IPERF3),
        ("etc/passwd", b"root:x:0:0::/root:/bin/sh\n"),
        special("root", b"5", mode=0o700),
        *(special(f"bin/{name}", b"2", "busybox") for name in LINKS),
    ]
    content = layer(members, mode=0o700)
    layout = make_layout(folder / "served", [content], Env=["PATH=/bin"])
    with running(folder, layout, address) as (host, asked):
        yield ServedImage(f"{host}/team/image:1.0", (folder / "ca.crt").read_text(), asked, layout, content)


@pytest.fixture(scope="module")
def publishing(
    kubernetes: Kubernetes,
    built_images: None,
    image: ServedImage,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Slurm]:
    """A cluster that got its shared image after it was made."""
    host = image.name.partition("/")[0]
    cluster = a_cluster(
        name=unique("images"),
        node_sets=[a_node_set("cpu", replicas=2)],
        containers={"writes_mib": 64, "registries": [{"host": host, "authority": image.authority}]},
        health={"enabled": False, "long_checks": {"memory_bandwidth": {"schedule": NEVER}}},
        metrics={"interval": "10s"},
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("images"), cluster)) as slurm:
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
        slurm.cluster["containers"] |= {"images": [image.name], "images_secret": SECRET}
        check = {"image": image.name, "schedule": NEVER, "every": "1s", "limit": 1}
        slurm.cluster["health"]["long_checks"]["tcp_bandwidth"] = check
        slurm.up()
        assert worker_uids(slurm) == before, "a shared image has recreated workers"
        yield slurm


def worker_uids(slurm: Slurm) -> list[str]:
    pods = slurm.api.list_namespaced_pod(slurm.namespace, label_selector="app.kubernetes.io/component=worker").items
    return sorted(pod.metadata.uid for pod in pods)


def run(slurm: Slurm, name: str, script: str, options: str = SMALL) -> tuple[str, str]:
    done = slurm.ssh(f"srun {options} --container-image={name} sh -c {shlex.quote(script)}")
    return done.stdout, done.stderr


def in_store(slurm: Slurm, command: str) -> str:
    return slurm.exec("cpu-0", "slurmd", "sh", "-c", f"cd {STORE} && {command}")


def test_a_user_starts_it_on_all_nodes_without_a_password_a_pull_and_a_copy(
    publishing: Slurm, image: ServedImage
) -> None:
    asked = len(image.asked)
    said, told = run(publishing, image.name, "echo $SLURMD_NODENAME $(whoami)", "-N2 --overcommit --mem=1")

    assert sorted(said.splitlines()) == ["cpu-0 alice", "cpu-1 alice"]
    assert "container:" not in told
    assert len(image.asked) == asked
    assert publishing.ssh("ls ~/.local/share/soperator/containers/images").stdout == ""


def test_what_a_task_changes_is_its_own(publishing: Slurm, image: ServedImage) -> None:
    changes = "echo x > /etc/passwd && rm /bin/ls && touch /root/new /new && ls -d /new /root/new"
    said, _ = run(publishing, image.name, changes.replace("ls -d", "busybox ls -d"))
    assert said.split() == ["/new", "/root/new"]

    said, _ = run(publishing, image.name, "cat /etc/passwd; ls /root /new 2>&1; true")
    assert "root:x:0:0" in said
    assert "/new: No such file" in said


def test_the_exporter_has_the_size_of_the_image(publishing: Slurm, image: ServedImage) -> None:
    size = f'slurm_container_image_bytes{{image="{image.name}"}}'
    wait_until(lambda: size in scraped(publishing), what="the exporter has read the store")

    assert scraped(publishing)[size] > len(busybox.program())


@pytest.mark.soak  # a node reports every half minute
def test_the_exporter_has_the_starts_in_containers_of_a_node(publishing: Slurm, image: ServedImage) -> None:
    present, failed = (
        f'slurm_container_starts_total{{node="cpu-0",result="{result}"}}' for result in ("present", "failed")
    )
    before = scraped(publishing)
    on_it = f"srun {SMALL} -w cpu-0 --container-image"
    publishing.ssh("; ".join(f"{on_it}={name} busybox true" for name in (image.name, "./missing.tar", image.name)))

    def counted(series: str) -> float:
        return scraped(publishing).get(series, 0) - before.get(series, 0)

    # Starts of the test before this one can be reported meanwhile, too.
    wait_until(lambda: counted(present) >= 2 and counted(failed) >= 1, what="the starts count", timeout_seconds=180)


def test_a_long_check_runs_its_program_in_the_image(publishing: Slurm) -> None:
    run = run_of(publishing, "tcp_bandwidth", "in-image")

    assert run.succeeded, run.log
    measured = [event for event in events(run) if event["event"] == "measured"]
    assert [event["result"] for event in measured] == ["passed"], run.log
    assert measured[0]["nodes"] == ["cpu-0", "cpu-1"]


@pytest.mark.parametrize(
    "attempt",
    [
        "touch $STORE/new",
        "rm -r $STORE/names.json",
        "for file in $STORE/images/*/rootfs/etc/passwd; do echo x > $file; done",
        "for file in $STORE/uses/*; do echo x > $file; done",
        "chmod 4777 $STORE/images/*/rootfs/bin/busybox",
        "ls $STORE/parts",
        "touch $STORE/nodes/cpu-0.json",
    ],
)
def test_no_user_can_in_the_jail(publishing: Slurm, attempt: str) -> None:
    done = publishing.ssh(f"srun {SMALL} sh -c {shlex.quote(attempt.replace('$STORE', STORE))}", check=False)

    assert done.returncode != 0
    assert (
        "Read-only file system" in done.stderr or "Permission denied" in done.stderr or "not permitted" in done.stderr
    )


def test_an_image_that_left_the_spec_stays_while_a_task_runs_in_it_and_goes_with_the_next_change_of_the_list(
    publishing: Slurm, image: ServedImage
) -> None:
    script = "touch /tmp/begun; until test -e /tmp/end; do sleep 1; done; cat /etc/passwd"
    options = f"{SMALL} -w cpu-0 --container-image={image.name} -o ~/out"
    job = int(publishing.ssh(f"sbatch --parsable {options} --wrap {shlex.quote(script)}").stdout)
    wait_until(lambda: "begun" in in_store(publishing, "ls /tmp"), what="the job runs in its image")
    held = in_store(publishing, "ls images")
    kept = copy.deepcopy(publishing.cluster)
    publishing.cluster["containers"]["images"] = []
    del publishing.cluster["health"]["long_checks"]["tcp_bandwidth"]
    try:
        publishing.up()
        assert in_store(publishing, "ls images") == held != ""
        assert in_store(publishing, "cat names.json").strip() == "{}"
        publishing.ssh(f"srun -n1 --overlap --mem=1 --jobid={job} touch /tmp/end")
        publishing.wait_for_job(job, "COMPLETED")
        assert "root:x:0:0" in publishing.ssh("cat ~/out").stdout
    finally:
        image.move_tag()
        publishing.cluster = kept
        publishing.up()
    assert not {*held.split()} & {*in_store(publishing, "ls images").split()}
