"""`make build`: servers and images of a cluster, fetched and built beside each other where the cache has none."""

import sys

from tools import console, images
from tools.kube import EmbeddedKubernetes
from tools.tasks import together


def is_needed(kubernetes: EmbeddedKubernetes) -> bool:
    """Return whether servers or images are still to be made, which takes long."""
    return not (kubernetes.is_built and images.are_built())


def build(kubernetes: EmbeddedKubernetes) -> None:
    """Fetch and build everything that is not in the cache, with progress.

    Building images waits for packages and disks while compilers have work for all cores.

    Raises:
        UserError: The machine cannot run a cluster, or one of the two builds failed, which ended the other.

    """
    kubernetes.check_machine()  # first, as a machine that cannot run a cluster needs no images
    together({"kubernetes": kubernetes.fetch, "images": images.build})


def main() -> None:
    """Build."""
    build(EmbeddedKubernetes())


if __name__ == "__main__":
    sys.exit(console.run(main))
