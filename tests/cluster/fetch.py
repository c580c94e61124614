"""`python -m tests.cluster.fetch`: what only tests of clusters need, made before the first of them, with progress."""

import sys

from tests.cluster import busybox, container_registry, go_code, root_trees
from tests.cluster.programs import program
from tools import console
from tools.kube import binaries


def main() -> None:
    """Make what the cache lacks, so that no test pays for it out of its own time."""
    busybox.archive()
    program("rsync")
    binaries.build(container_registry.BINARY)
    go_code.make()
    for tree in (root_trees.BOOKWORM, root_trees.FORKY):
        assert tree.tarball.is_file()


if __name__ == "__main__":
    sys.exit(console.run(main))
