"""`make refresh`: what was changed behind Pulumi's back is recorded, and the next `make up` sets it right."""

import sys

from tools import chosen_cluster, console, up
from tools.console import step
from tools.preview import deployer_of_a_cluster


def main() -> None:
    """Bring the state in line with what is there. The cluster itself is only read."""
    stack = up.parse_stack(__doc__)
    deployer, why = deployer_of_a_cluster(stack, chosen_cluster.choose())
    with step(f"Refreshing stack {stack} with {why}"):
        deployer.refresh()


if __name__ == "__main__":
    sys.exit(console.run(main))
