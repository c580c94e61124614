"""`make review`: prints a preview as Markdown, for the comment of a pull request."""

import sys
from collections import Counter
from collections.abc import Sequence

from tools import chosen_cluster, console, up
from tools.console import UserError, step
from tools.engine import DeployError, Failure, ResourceChange, StackChanges, StepOp
from tools.leaving_clusters import with_their_jobs
from tools.preview import deployer_of_a_cluster

LONGEST_PAGE = 60_000
"""Characters. A comment on GitHub takes 65,536."""

_FENCE = "````"  # longer than any in a message


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


def mark(stack: str) -> str:
    """Return the first line of a stack's page, by which a workflow finds its former comment."""
    return f"<!-- soperator-pulumi review of {stack} -->"


def page(stack: str, found: StackChanges, failures: Sequence[Failure]) -> str:
    """Return a preview as Markdown: reasons of a refusal, changes by name, messages of providers and policies."""
    found = found.by_name()
    counts = Counter(change.operation for change in found.changed)
    words = ", ".join(f"{counts[operation]} to {operation}" for operation in StepOp if counts[operation]) or "no change"
    parts = [mark(stack), f"## Preview of `{stack}`: {'refused' if failures else words}"]
    parts += [
        _block([f"{failure.name}: {failure.message}" if failure.urn else failure.message]) for failure in failures
    ]
    if found.changed:
        rows = "\n".join(map(_row, found.changed))
        parts.append(f"| step | resource | properties |\n|---|---|---|\n{rows}")
    if lines := [*(line for change in found.changes for line in change.messages), *found.messages]:
        parts.append(_block(lines))
    return _short("\n\n".join(parts))


def _block(lines: Sequence[str]) -> str:
    return "\n".join([f"{_FENCE}text", *lines, _FENCE])


def _row(change: ResourceChange) -> str:
    paths = ", ".join(f"`{path}`" for path in change.paths)
    return f"| {change.operation} | `{change.type.rpartition(':')[2]}` {change.name} | {paths} |"


def _short(whole: str) -> str:
    if len(whole) <= LONGEST_PAGE:
        return whole
    kept = whole[:LONGEST_PAGE].rpartition("\n")[0]
    open_block = kept.count(_FENCE) % 2
    end = f"\n{_FENCE}" if open_block else ""
    return f"{kept}{end}\n\nThe rest does not fit into a comment: the log of this run has all of it."


if __name__ == "__main__":
    sys.exit(console.run(main))
