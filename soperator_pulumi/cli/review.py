"""`soperator review`: a preview as Markdown, for the summary of a job in CI."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from soperator_pulumi.cli import markdown
from soperator_pulumi.cli.any_command import Command
from soperator_pulumi.cli.pulumi_runs import add_stack
from soperator_pulumi.cli.stack_changes import Failure, ResourceChange, StackChanges, StepOp, previewed

EXIT_REFUSED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_stack(parser)
    parser.add_argument("--policy-pack", metavar="FOLDER", help="policy pack that judges the change")


def run(given: argparse.Namespace) -> int:
    """Print the preview of a stack, even if a policy or a provider refuses the change. In that case return 1."""
    pack = ["--policy-pack", given.policy_pack] if given.policy_pack else []
    changes, failures = previewed(given.stack, *pack)
    sys.stdout.write(page(given.stack or "the selected stack", changes, failures) + "\n")
    return EXIT_REFUSED if failures else 0


def page(stack: str, found: StackChanges, failures: Sequence[Failure]) -> str:
    """Return a preview as Markdown: reasons of a refusal, changes by name, messages from providers and policies."""
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


COMMAND = Command(
    configure=configure,
    run=run,
    example='soperator review --stack prod >> "$GITHUB_STEP_SUMMARY"',
    statuses={0: "previewed", 1: "refused: the page has the reasons", 2: "not previewed, or wrong use"},
)
