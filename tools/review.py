"""`make review`: prints a preview as Markdown, for the summary of a job in CI."""

import sys
from collections import Counter
from collections.abc import Sequence

from tools import chosen_cluster, console, markdown, up
from tools.console import UserError, step
from tools.engine import DeployError, Failure, ResourceChange, StackChanges, StepOp
from tools.leaving_clusters import with_their_jobs
from tools.preview import deployer_of_a_cluster


def main() -> None:
    """Print the preview of a stack, also where a policy or a provider refuses the change: that fails."""
    stack, chosen = up.parse_stack(__doc__), chosen_cluster.choose()
    deployer, why = deployer_of_a_cluster(stack, chosen)
    try:
        with step(f"Previewing stack {stack} with {why}"):
            changes = with_their_jobs(deployer.preview(), deployer, chosen)
    except DeployError as error:
        found = with_their_jobs(error.result, deployer, chosen)
        print(page(stack, found, error.failures or [Failure(urn="", message=str(error))]))
        raise UserError(f"Stack {stack} is refused. The page has the reasons.") from None
    print(page(stack, changes, []))


def page(stack: str, found: StackChanges, failures: Sequence[Failure]) -> str:
    """Return a preview as Markdown: reasons of a refusal, changes by name, messages of providers and policies."""
    found = found.by_name()
    counts = Counter(change.operation for change in found.changed)
    words = ", ".join(f"{counts[operation]} to {operation}" for operation in StepOp if counts[operation]) or "no change"
    parts = [f"## Preview of `{stack}`: {'refused' if failures else words}"]
    parts += [
        markdown.block([f"{failure.name}: {failure.message}" if failure.urn else failure.message])
        for failure in failures
    ]
    if found.changed:
        rows = "\n".join(map(_row, found.changed))
        parts.append(f"| step | resource | properties |\n|---|---|---|\n{rows}")
    if lines := [*(line for change in found.changes for line in change.messages), *found.messages]:
        parts.append(markdown.block(lines))
    return markdown.short("\n\n".join(parts))


def _row(change: ResourceChange) -> str:
    paths = ", ".join(map(markdown.code, change.paths))
    kind = markdown.code(change.type.rpartition(":")[2])
    return f"| {change.operation} | {kind} {markdown.code(change.name)} | {paths} |"


if __name__ == "__main__":
    sys.exit(console.run(main))
