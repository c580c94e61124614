"""`make build`: servers and images of a cluster, fetched and built in parallel if the cache has none."""

import sys
from collections.abc import Sequence

from tools import console, images
from tools.kube import EmbeddedKubernetes
from tools.tasks import together


def is_needed(kubernetes: EmbeddedKubernetes, versions: Sequence[str] = (images.DEFAULT_SLURM,)) -> bool:
    """Return whether servers, or images with these versions of Slurm, are still to be made, which takes long."""
    return not (kubernetes.is_built and all(images.are_built(version) for version in versions))


def build(kubernetes: EmbeddedKubernetes, versions: Sequence[str] = (images.DEFAULT_SLURM,)) -> None:
    """Fetch and build everything that is not in the cache, with progress.

    Building images waits for packages and disks while compilers have work for all cores.

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
    """Build all of it, with each version of Slurm."""
    build(EmbeddedKubernetes(), tuple(images.SUITES))


if __name__ == "__main__":
    sys.exit(console.run(main))
