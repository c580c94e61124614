"""All that a cluster is made of, made before it starts: its servers and the images beside each other."""

from tools import images
from tools.kube import EmbeddedKubernetes
from tools.tasks import together


def is_needed(kubernetes: EmbeddedKubernetes) -> bool:
    """Tell whether the cache lacks what takes long to make."""
    return not (kubernetes.is_built and images.are_built())


def prepare(kubernetes: EmbeddedKubernetes) -> None:
    """Fetch and build what the cache lacks, with progress. It is quick when all is there.

    Building images waits for packages and disks while compilers have work for all cores.

    Raises:
        UserError: The machine lacks something, or one of the two failed, which ended the other.

    """
    kubernetes.preflight()  # first, as a machine that cannot run a cluster needs no images
    together({"kubernetes": kubernetes.fetch, "images": images.build})
