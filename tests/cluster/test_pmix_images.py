"""Images with Slurm's plugin for PMIx, built from the source archive that Debian ships of trixie's Slurm."""

import json
import os
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
import urllib3

from tests.cluster.slurm import VERSION, Slurm, a_cluster, a_jail, bring_images, deployed, unique
from tests.cluster.test_jail_mpi import HELLO, assert_four_met
from tests.conftest import Kubernetes
from tools import images
from tools.console import UserError
from tools.images.builder import cache
from tools.images.mirror import sources
from tools.images.recipe import Recipe

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RELEASE = "24.11.5"
"""Release of trixie's Slurm. Mirrors have its archive; that of forky's release they have while it is new."""

GIVEN = os.environ.get("SLURM_SOURCE")
"""Archive of the release that the images of SLURM_VERSION have. Without it, MPI runs with the one of the mirror."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, from the mirror of this machine's apt."""
    found = sources(None)
    assert found, "this machine's apt has no mirror of Debian"
    file = tmp_path_factory.mktemp("source") / f"slurm-wlm_{RELEASE}.orig.tar.gz"
    answer = urllib3.request("GET", f"{found[0].uri}/pool/main/s/slurm-wlm/{file.name}", timeout=300)
    assert answer.status == HTTPStatus.OK
    file.write_bytes(answer.data)
    return file


@pytest.fixture(scope="module")
def worker(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a worker with the plugin."""
    images.build(source=archive)
    reference = images.references(source=archive)["worker"]
    return unpacked(cache().layout("worker", reference.rpartition(":")[2]), tmp_path_factory.mktemp("worker"))


def unpacked(layout: Path, folder: Path) -> Path:
    """Unpack the layers of an image, and give it a slurm.conf, without which srun starts nothing."""

    def blob(digest: str) -> Path:
        return layout / "blobs" / digest.replace(":", "/")

    manifest = blob(json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])
    for layer in json.loads(manifest.read_text())["layers"]:
        subprocess.run(["tar", "-xf", blob(layer["digest"]), "-C", folder, "--exclude=dev/*"], check=True)
    conf = folder / "etc/slurm/slurm.conf"
    conf.parent.mkdir(exist_ok=True)
    conf.write_text("ClusterName=hpc\nSlurmctldHost=localhost\nSlurmUser=root\n")
    return folder


@pytest.mark.parametrize("srun", ["/usr/bin/srun", "/opt/slurm/bin/srun"])
def test_srun_loads_the_plugin_in_the_image_and_in_any_jail(worker: Path, srun: str) -> None:
    done = subprocess.run(["chroot", worker, srun, "--mpi=list"], capture_output=True, text=True, check=True)

    assert "pmix_v5" in done.stdout + done.stderr


def test_the_plugin_is_the_one_that_was_built(worker: Path) -> None:
    (plugin,) = worker.glob("usr/lib/*/slurm-wlm/mpi_pmix_v5.so")
    listed = (worker / "var/lib/dpkg/info/slurm-wlm-basic-plugins.md5sums").read_text()
    (packaged,) = (line.split()[0] for line in listed.splitlines() if line.endswith("/mpi_pmix_v5.so"))

    assert subprocess.run(["md5sum", plugin], capture_output=True, text=True, check=True).stdout.split()[0] != packaged


def test_an_archive_of_another_release_is_refused_with_both(archive: Path) -> None:
    with pytest.raises(UserError, match=rf"The archive has Slurm {RELEASE}, and the images have 26\.05"):
        images.build(source=archive, slurm="26.05")


def test_images_with_and_without_the_plugin_have_tags_of_their_own(archive: Path) -> None:
    with_plugin, without = images.references(source=archive), images.references()

    differ = {name for name in with_plugin if with_plugin[name] != without[name]}
    assert differ == {"controller", "accounting", "rest", "exporter", "worker", "login", "munge"}
    assert Recipe().order().count("pmix") == 0


@pytest.fixture(scope="module")
def cluster(
    kubernetes: Kubernetes, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """A cluster whose images have the plugin, with the default jail."""
    source = Path(GIVEN) if GIVEN else request.getfixturevalue("archive")
    version = VERSION if GIVEN else images.DEFAULT_SLURM
    assert kubernetes.target.embedded, "the images are brought to the embedded cluster only"
    images.build(slurm=version, source=source)
    images.load(kubernetes.target.embedded, slurm=version, source=source)
    bring_images(kubernetes)
    jail = a_jail(storage={"size_gib": 4})
    del jail["source"]
    described = a_cluster(
        name=unique("pmix"),
        slurm={"version": version, "constrain": "none", "extra": {"MpiDefault": "pmix"}},
        images=images.references(slurm=version, source=source),
        jail=jail,
    )
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("pmix"), described)) as made:
        yield made


def test_srun_starts_the_ranks_of_open_mpi_over_two_nodes(cluster: Slurm) -> None:
    cluster.ssh("cat > hello.c", stdin=HELLO)
    cluster.ssh("srun mpicc -O2 -o hello hello.c", timeout_seconds=120)

    assert_four_met(cluster.ssh("srun -N2 -n4 --overcommit ./hello", timeout_seconds=120).stdout)
