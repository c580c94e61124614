"""Programs that start containers, in the jail: what docs/container-programs.md says of those that Debian has."""

import re
from collections.abc import Iterator

import pytest

from tests.cluster import busybox
from tests.cluster.root_trees import RootTree
from tests.cluster.slurm import Slurm, a_cluster, a_jail, a_node_set, deployed, unique
from tests.conftest import Kubernetes
from tests.debian_releases import bootstrap_release

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

PACKAGES = ("bubblewrap", "charliecloud", "podman", "proot", "skopeo", "umoci")

TREE = RootTree("container-programs", lambda path: bootstrap_release("trixie", path, PACKAGES), " ".join(PACKAGES))

UNPACK = """
skopeo --insecure-policy copy --quiet docker-archive:/data/busybox.tar oci:layout:1
umoci unpack --rootless --image layout:1 bundle
cd bundle/rootfs
mkdir -p dev etc proc sys tmp
touch etc/passwd etc/group
"""

STARTS = {
    "podman": "podman --storage-driver=vfs run --network=host docker-archive:/data/busybox.tar",
    "bubblewrap": "bwrap --bind bundle/rootfs /",
    "charliecloud": "ch-run bundle/rootfs --",
    "unshare": "unshare --map-root-user --mount --root=bundle/rootfs",
    "proot": "env PROOT_NO_SECCOMP=1 proot -r bundle/rootfs -w /",
}
"""Commands that start the program that follows in the image."""

STARTING = {
    False: {"proot"},
    True: {"proot", "unshare"},
}
"""Programs that do, by default and if jobs may create user namespaces."""


@pytest.fixture(scope="module")
def cluster(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster whose jail has the programs, with an image, in a file and unpacked, in alice's home."""
    assert kubernetes.target.embedded, "the jail's image is brought to the embedded cluster only"
    TREE.bring_to(kubernetes.target.embedded)
    images = tmp_path_factory.mktemp("images")
    images.chmod(0o755)
    (images / "busybox.tar").write_bytes(busybox.archive().read_bytes())
    submount = {"path": "/data", "host_path": str(images), "read_only": True}
    jail = a_jail(TREE, storage={"size_gib": 4}, submounts=[submount])
    described = a_cluster(name=unique("programs"), node_sets=[a_node_set("cpu")], jail=jail)
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("programs"), described)) as made:
        made.ssh(f"srun sh -ec '{UNPACK}'", timeout_seconds=120)
        yield made


@pytest.fixture(scope="module", params=[False, True], ids=["by default", "with user namespaces"])
def allowed(cluster: Slurm, request: pytest.FixtureRequest) -> bool:
    """True if jobs may create user namespaces."""
    cluster.cluster["jail"]["isolation"] = {"user_namespaces": request.param}
    cluster.up()
    return bool(request.param)


@pytest.mark.parametrize("program", STARTS)
def test_a_program_starts_a_container_or_is_refused_as_the_page_says(
    cluster: Slurm, allowed: bool, program: str
) -> None:
    done = cluster.ssh(f"srun {STARTS[program]} /bin/busybox echo has run", timeout_seconds=120, check=False)

    if program in STARTING[allowed]:
        assert done.stdout == "has run\n", done.stderr
    else:
        assert "has run" not in done.stdout
        assert re.search("not permitted|[Pp]ermission", done.stderr), done.stderr  # of the kernel, not of Slurm
