"""Options of the preflight's commands, checked as they are read: names of checks, seconds, outputs of other stacks."""

import argparse
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from soperator_pulumi.operations.preflight.preflight_run import CHECKS, PROBE_SECONDS, PROBES

_LONGEST_SECONDS = 840.0
"""Largest time for the pods: pods of probes end by themselves after 15 minutes."""


@dataclass(frozen=True)
class Options:
    """Options of a preflight run."""

    json: bool = False
    """Print JSON in place of text."""
    probes: tuple[str, ...] = PROBES
    """Checks that start pods or ask the server to admit objects."""
    accepted: tuple[str, ...] = ()
    """Checks whose refusals count as warnings."""
    seconds: float = PROBE_SECONDS
    """Time for the pods."""
    stack_outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Outputs of other stacks by stack and name. They replace `from_stack` in the descriptions."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all preflight commands share."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--read-only", action="store_true", help="start no pod, and create nothing")
    lists: dict[str, tuple[Collection[str], str]] = {
        "--skip": (PROBES, "leave a probe out"),
        "--accept": (CHECKS, "only warn of this check"),
    }
    for option, (names, meaning) in lists.items():
        parser.add_argument(
            option,
            metavar="CHECK",
            action="append",
            default=[],
            type=_one_of(names),
            help=f"{meaning}: {_listed(names)}",
        )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=PROBE_SECONDS, help="time for the pods (default: 120)"
    )
    add_stack_outputs(parser)


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


def options_of(given: argparse.Namespace) -> Options:
    """Return the options of a command line."""
    probes = () if given.read_only else tuple(probe for probe in PROBES if probe not in given.skip)
    return Options(given.json, probes, tuple(given.accept), given.timeout, stack_outputs_in(given))


def stack_outputs_in(given: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the outputs on a command line, by stack and name."""
    found: dict[str, dict[str, str]] = {}
    for stack, name, value in given.stack_output:
        found.setdefault(stack, {})[name] = value
    return found


def _one_of(names: Collection[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text in names:
            return text
        near = get_close_matches(text.lower(), names, n=1)
        meant = f'Did you mean "{near[0]}"? ' if near else ""
        raise argparse.ArgumentTypeError(f'got "{text}", which is none of them. {meant}Allowed: {_listed(names)}')

    return check


def _listed(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' if " " in name else name for name in names)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= _LONGEST_SECONDS:  # nan is neither
        raise argparse.ArgumentTypeError(f'got "{text}", needs a number of seconds from 1 to {_LONGEST_SECONDS:.0f}')
    return seconds


def _stack_output(text: str) -> tuple[str, str, str]:
    place, assigned, value = text.partition("=")
    stack, named, name = place.rpartition(":")
    if not (assigned and named and stack.count("/") == 2 and name and value):
        needed = "needs <organization>/<project>/<stack>:<output>=<value>"
        raise argparse.ArgumentTypeError(f'got "{place}", {needed}')
    return stack, name, value
