"""`soperator preview`, `up`, `refresh` and `destroy`: the Pulumi CLI with the stack of a file."""

import argparse
import os
import shutil
from collections.abc import Sequence

from soperator_pulumi.cli.any_command import Command
from soperator_pulumi.errors import SoperatorError


def pulumi(stack: str | None, *words: str) -> list[str]:
    """Return a command line of the Pulumi CLI.

    Args:
        stack: Name of the stack. Default: the one that is selected.
        words: The command and its arguments.

    Raises:
        SoperatorError: There is no `pulumi` on PATH.
    """
    program = shutil.which("pulumi")
    if program is None:
        raise SoperatorError(
            "there is no `pulumi` on PATH. Install it: https://www.pulumi.com/docs/iac/download-install/. Without it, "
            "`make up` in a checkout of soperator-pulumi deploys with an engine of its own, to try a cluster out."
        )
    return [program, words[0], *(["--stack", stack] if stack else []), *words[1:]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_stack(parser)
    parser.add_argument(
        "arguments", nargs="*", metavar="-- ARGUMENT", help="arguments of `pulumi` itself, such as -- --yes --diff"
    )


def add_stack(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a stack of the project in the current folder."""
    parser.add_argument(
        "--stack", metavar="NAME", help="stack of the project in this folder (default: the selected one)"
    )


def run(given: argparse.Namespace) -> int:
    """Replace this process with the Pulumi CLI, which then owns the terminal, signals and the exit status."""
    return become(pulumi(given.stack, given.command_name, *given.arguments))


def become(words: Sequence[str]) -> int:
    """Replace this process with a program. The first word of its command line is the path."""
    os.execv(words[0], [*words])  # noqa: S606 - no shell is wanted


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator {name} --stack prod",
    statuses={0: "done", 2: "wrong use, or no `pulumi` on PATH", 255: "failed, or another status of `pulumi`"},
)
