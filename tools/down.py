"""`make down`: the end of what `make up` started."""

import shutil
import sys

from tools import chosen_cluster, console, engine, paths, up
from tools.console import say, step


def main() -> None:
    """Remove the embedded Kubernetes and all that is in it; on a cluster of the user's, destroy the stack."""
    stack = up.parse_stack(__doc__)
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None:
        chosen.embedded.down()
        # The engine's state tells of a cluster that is no more.
        shutil.rmtree(chosen.state_dir, ignore_errors=True)
        return
    deployer, why = engine.choose(paths.ROOT, stack, chosen.state_dir, environment=chosen.environment())
    with step(f"Destroying stack {stack} with {why}"):
        deployer.destroy(exclude_protected=True)
    say("Claims that the stack keeps are still there, and with them their namespace.")


if __name__ == "__main__":
    sys.exit(console.run(main))
