"""All that a cluster is made of, fetched and built where the cache lacks it: before `make test` starts clusters."""

import sys

from tools import console, preparation
from tools.kube import EmbeddedKubernetes


def main() -> None:
    """Fetch and build, with progress. It is quick when all is there."""
    preparation.prepare(EmbeddedKubernetes())


if __name__ == "__main__":
    sys.exit(console.run(main))
