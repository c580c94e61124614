"""`make down`: stops everything that `make up` started."""

import shutil
import sys

from tools import chosen_cluster, console, engine, paths, up
from tools.console import say, step


def main() -> None:
    """Remove the embedded Kubernetes with its data, or destroy the stack on a user's cluster."""
    stack = up.parse_stack(__doc__)
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None:
        chosen.embedded.down()
        # The engine's state describes a cluster that no longer exists.
        shutil.rmtree(chosen.state_dir, ignore_errors=True)
        return
    deployer, why = engine.choose(paths.ROOT, stack, chosen.state_dir, environment=chosen.environment())
    with step(f"Destroying stack {stack} with {why}"):
        deployer.destroy(exclude_protected=True)
    say("The claims that the stack keeps remain, and their namespace with them.")


if __name__ == "__main__":
    sys.exit(console.run(main))
