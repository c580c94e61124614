"""`make review`: prints a preview as Markdown, for the job summary of a CI run."""

import sys

from soperator_pulumi.cli.review import page
from tools import chosen_cluster, console, up
from tools.console import UserError, step
from tools.engine import DeployError, Failure
from tools.leaving_clusters import with_their_jobs
from tools.preview import deployer_of_a_cluster


def main() -> None:
    """Print the preview of a stack. If a policy or a provider refuses the change, print it too, then fail."""
    stack, chosen = up.parse_stack(__doc__), chosen_cluster.choose()
    deployer, why = deployer_of_a_cluster(stack, chosen)
    try:
        with step(f"Previewing stack {stack} with {why}"):
            changes = with_their_jobs(deployer.preview(), deployer, chosen)
    except DeployError as error:
        found = with_their_jobs(error.result, deployer, chosen)
        print(page(stack, found, error.failures or [Failure(urn="", message=str(error))]))
        raise UserError(f"Stack {stack} is refused. The page gives the reasons.") from None
    print(page(stack, changes, []))


if __name__ == "__main__":
    sys.exit(console.run(main))
