"""Tasks that are root in their container, on a cluster whose jobs may create user namespaces."""

import base64
import shlex
from collections.abc import Iterator

import pytest

from tests.cluster import busybox
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, unique
from tests.conftest import Kubernetes

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

IMAGE = "/home/alice/busybox.tar"


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster whose steps have process IDs of their own, with an image in alice's home."""
    isolation = {"pid": True, "user_namespaces": True}
    cluster = a_cluster(
        name=unique("root"), node_sets=[a_node_set("cpu")], containers={}, jail=a_jail(JAIL, isolation=isolation)
    )
    made = Slurm(kubernetes, tmp_path_factory.mktemp("root"), cluster)
    try:
        made.up()
        made.ssh(f"base64 -d > {IMAGE}", stdin=base64.encodebytes(busybox.archive().read_bytes()).decode())
        yield made
    finally:
        made.destroy()


def test_a_task_is_root_in_its_container_and_its_user_outside(slurm: Slurm) -> None:
    script = "id -u; id -g; touch /new ~/made; chown 42:42 /new; stat -c %u:%g /new"
    options = f"--container-remap-root --container-mount-home --container-image={IMAGE}"
    said = slurm.ssh(f"srun {options} sh -c {shlex.quote(script)}").stdout

    assert said.splitlines() == ["0", "0", "0:0"]
    assert slurm.ssh("stat -c %U ~/made").stdout == "alice\n"
