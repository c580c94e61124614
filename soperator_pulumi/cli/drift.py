"""`soperator drift`: differences between the program of a stack and its Kubernetes."""

import argparse
import sys

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, add_json, print_json
from soperator_pulumi.cli.pulumi_runs import add_stack
from soperator_pulumi.cli.stack_changes import ResourceChange, previewed
from soperator_pulumi.errors import SoperatorError

EXIT_DRIFTED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_stack(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the differences between the program and the live resources. Change and record nothing."""
    changes, failures = previewed(given.stack, "--refresh")
    if failures:
        raise SoperatorError("\n".join(failure.message for failure in failures))
    drifted = changes.by_name().changed
    if given.json:
        print_json([{"operation": change.operation, "urn": change.urn, "paths": change.paths} for change in drifted])
    else:
        sys.stdout.writelines(f"{described(change)}\n" for change in drifted)
    say(f"{len(drifted)} differences." if drifted else "The cluster is what the stack describes.")
    return EXIT_DRIFTED if drifted else 0


def described(change: ResourceChange) -> str:
    """Return a difference as a line: the step that would remove it, the resource, its properties."""
    paths = f": {', '.join(change.paths)}" if change.paths else ""
    return f"{change.operation} {change.type} {change.name}{paths}"


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator drift --stack prod",
    statuses={0: "no difference", 1: "differences, one on a line", 2: "not compared, or wrong use"},
)
