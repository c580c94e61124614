"""`make drift`: lists differences between the program of a stack and the cluster, and ends with 2 if there are any."""

import sys

from soperator_pulumi.cli.drift import described
from tools import chosen_cluster, console, up
from tools.console import say, step
from tools.leaving_clusters import with_their_jobs
from tools.preview import deployer_of_a_cluster

EXIT_DRIFT = 2


def main() -> int:
    """Print the differences between the program and the live resources. Change and record nothing."""
    stack, chosen = up.parse_stack(__doc__), chosen_cluster.choose()
    deployer, why = deployer_of_a_cluster(stack, chosen)
    with step(f"Comparing stack {stack} with the cluster, with {why}"):
        drifted = with_their_jobs(deployer.preview(refresh=True), deployer, chosen).by_name().changed
    for change in drifted:
        print(described(change))
    if not drifted:
        say(f"The cluster is what stack {stack} describes.")
        return 0
    count = "1 resource differs" if len(drifted) == 1 else f"{len(drifted)} resources differ"
    say(
        f"{count} from the program of stack {stack}. For a change that is to stay, change the program. To bring back "
        "what the program describes: `make refresh`, then `PULUMI_K8S_ENABLE_PATCH_FORCE=true make up`, which takes "
        "fields from kubectl and others."
    )
    return EXIT_DRIFT


if __name__ == "__main__":
    sys.exit(console.run(main))
