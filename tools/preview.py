"""`make preview`: prints the changes that `make up` would make, and the nodes and jobs that it would affect."""

import sys

from tools import chosen_cluster, console, up
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, step
from tools.engine import Deployer
from tools.leaving_clusters import with_their_jobs


def main() -> None:
    """Print the preview."""
    stack, chosen = up.parse_stack(__doc__), chosen_cluster.choose()
    deployer, why = deployer_of_a_cluster(stack, chosen)
    with step(f"Previewing stack {stack} with {why}"):
        with_their_jobs(deployer.preview(), deployer, chosen)


def deployer_of_a_cluster(stack: str, chosen: ChosenCluster) -> tuple[Deployer, str]:
    """Return the deployer of a stack, and a phrase that names its engine and the reason for it.

    Raises:
        UserError: The embedded Kubernetes is not up.

    """
    if chosen.embedded is not None and not chosen.kubeconfig.exists():
        raise UserError("There is no cluster to look at. Start one: make up")
    return up.deployer_of(stack, chosen)


if __name__ == "__main__":
    sys.exit(console.run(main))
