"""`python -m tests.cluster.fetch`: what only tests of clusters need, made before the first of them, with progress.

With SOAK=1 also what the tests marked `soak` need.
"""

import sys

from tests.cluster import busybox, chart_folder, container_registry, go_code, kwok, monitoring, root_trees
from tests.cluster.programs import program
from tests.soak import SOAK
from tools import console
from tools.engine.local.helm import helm_binary
from tools.kube import binaries


def main() -> None:
    """Make what the cache lacks, so that no test pays for it out of its own time."""
    busybox.archive()
    program("rsync")
    binaries.build(container_registry.BINARY)
    helm_binary.built()
    go_code.make()
    if SOAK:
        chart_folder.chart_folder()
        monitoring.make()
        binaries.build(kwok.BINARY)
    for tree in (root_trees.BOOKWORM, root_trees.FORKY):
        assert tree.tarball.is_file()


if __name__ == "__main__":
    sys.exit(console.run(main))
