"""Parts of a command, and options that several commands share."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from soperator_pulumi.kube.access import Access


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of `soperator`."""

    configure: Callable[[argparse.ArgumentParser], None]
    """Adds the arguments to the command's parser."""
    run: Callable[[argparse.Namespace], int]
    """Carries the command out, and returns the exit status."""
    example: str
    """Line to type; `{name}` stands for the command's name."""
    statuses: Mapping[int, str] = field(
        default_factory=lambda: {0: "done", 2: "wrong use, or not done: the error says why"}
    )
    """Exit statuses and their meaning."""
    on_error: int = 2
    """Exit status of an error that a user can fix."""
    interrupted: str = "interrupted: rerun the same command to continue"
    """Message after Ctrl-C."""


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a Kubernetes cluster."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file (default: KUBECONFIG)")
    parser.add_argument("--context", help="context in it (default: its current one)")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster."""
    parser.add_argument("--namespace", "-n", required=True, help="namespace of the cluster")
    add_access(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option for programs that read the answer."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_stack_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the option for outputs of other stacks, which this command does not read itself."""
    parser.add_argument(
        "--stack-output",
        metavar="STACK:NAME=VALUE",
        action="append",
        default=[],
        type=_stack_output,
        help="output of another stack, which is not read here: organization/storage/prod:claim=data",
    )


def access_in(given: argparse.Namespace) -> Access:
    """Return the Kubernetes that the command line chooses."""
    return Access(given.kubeconfig, given.context)


def stack_outputs_in(given: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the outputs on a command line, by stack and name."""
    found: dict[str, dict[str, str]] = {}
    for stack, name, value in given.stack_output:
        found.setdefault(stack, {})[name] = value
    return found


def print_json(value: object) -> None:
    """Print a value for a program."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _stack_output(text: str) -> tuple[str, str, str]:
    place, assigned, value = text.partition("=")
    stack, named, name = place.rpartition(":")
    if not (assigned and named and stack.count("/") == 2 and name and value):
        needed = "needs <organization>/<project>/<stack>:<output>=<value>"
        raise argparse.ArgumentTypeError(f'got "{place}", {needed}')
    return stack, name, value
