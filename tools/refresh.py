"""`make refresh`: records changes made behind Pulumi's back, so that the next `make up` reverts them."""

import sys

from tools import chosen_cluster, console, up
from tools.console import step
from tools.preview import deployer_of_a_cluster


def main() -> None:
    """Record the cluster as it is in the state, without changing the cluster."""
    stack = up.parse_stack(__doc__)
    deployer, why = deployer_of_a_cluster(stack, chosen_cluster.choose())
    with step(f"Refreshing stack {stack} with {why}"):
        deployer.refresh()


if __name__ == "__main__":
    sys.exit(console.run(main))
