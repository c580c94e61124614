"""`make build`: fetches and builds the servers and images of a cluster in parallel, if the cache lacks them."""

import sys
from collections.abc import Sequence

from tools import console, images
from tools.kube import EmbeddedKubernetes
from tools.tasks import together


def is_needed(kubernetes: EmbeddedKubernetes, versions: Sequence[str] = (images.DEFAULT_SLURM,)) -> bool:
    """Return True if servers, or images with these Slurm versions, must still be built, which takes long."""
    return not (kubernetes.is_built and all(images.are_built(version) for version in versions))


def build(kubernetes: EmbeddedKubernetes, versions: Sequence[str] = (images.DEFAULT_SLURM,)) -> None:
    """Fetch and build everything that the cache lacks, with progress.

    Image builds mostly wait for packages and disks while compilers use all cores.

    Args:
        kubernetes: Kubernetes of this machine.
        versions: Versions of Slurm in the images.

    Raises:
        UserError: The machine cannot run a cluster, or one of the two builds failed, which ended the other.
    """
    kubernetes.check_machine()  # first, as a machine that cannot run a cluster needs no images
    together({"kubernetes": kubernetes.fetch, "images": lambda: _build_images(versions)})


def _build_images(versions: Sequence[str]) -> None:
    for version in versions:
        images.build(slurm=version)


def main() -> None:
    """Build everything, with all versions of Slurm."""
    build(EmbeddedKubernetes(), tuple(images.SUITES))


if __name__ == "__main__":
    sys.exit(console.run(main))
