"""`soperator preflight FILE`: checks a Kubernetes cluster before a deployment.

FILE is a description of a cluster, or the file of a stack with `soperator:cluster` or `soperator:clusters`. The
clusters are rendered as for a deployment, and the resulting objects are checked. A stack with `soperator:platform`
alone has its platform checked.
"""

import argparse
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import pulumi

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, access_in, add_stack_outputs, stack_outputs_in
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, is_refused, json_error, json_report, text_report
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.preflight_run import (
    CHECKS,
    PROBE_SECONDS,
    PROBES,
    Preflight,
    platform_findings,
)
from soperator_pulumi.stack.preflight_plan import plans_of_file
from soperator_pulumi.stack.written_sizes import write_sizes

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
    parser.add_argument(
        "--write-sizes",
        action="store_true",
        help="first write the size that machines have for a node into the file, in place of `all` or `all but 2`",
    )
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


def options_of(given: argparse.Namespace) -> Options:
    """Return the options of a command line."""
    probes = () if given.read_only else tuple(probe for probe in PROBES if probe not in given.skip)
    return Options(given.json, probes, tuple(given.accept), given.timeout, stack_outputs_in(given))


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


EXIT_REFUSED = 1
EXIT_NOT_CHECKED = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", type=Path, help="description of a cluster, or file of a stack, in YAML")
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="kubeconfig file (default: that of the stack; without one, KUBECONFIG)"
    )
    parser.add_argument("--context", help="context in it (default: that of the stack; without one, the current one)")
    add_options(parser)


def run(given: argparse.Namespace) -> int:
    """Check the clusters of a file, print the findings, and return the exit status."""
    options = options_of(given)
    try:
        if given.write_sizes:
            write_sizes(given.file, options.stack_outputs, access_in(given), Cluster, say)
        plans = plans_of_file(given.file, options.stack_outputs, access_in(given))
        return check([(plan, Cluster(access)) for plan, access in plans], options, say)
    except (SoperatorError, pulumi.RunError) as error:
        return not_checked(error, json=given.json)


def check(
    plans: Sequence[tuple[PlannedCluster | PlannedPlatform, Kube]], options: Options, report: Callable[[str], None]
) -> int:
    """Check every plan in its Kubernetes, print the findings to standard output, and return the exit status.

    Raises:
        KubernetesError: a Kubernetes cluster does not answer.
    """
    found: dict[str, list[Diagnosis]] = {}
    for planned, kube in plans:
        if isinstance(planned, PlannedPlatform):
            found[planned.key] = platform_findings(kube, planned, report, options.accepted)
        else:
            run = Preflight(kube, planned, report, options.probes, options.accepted, options.seconds)
            found[planned.key] = run.findings()
    sys.stdout.write(json_report(found) if options.json else text_report(found))
    return EXIT_REFUSED if is_refused(found) else 0


def not_checked(error: Exception, *, json: bool) -> int:
    """Report an error that prevents the checks, and return the exit status."""
    say(f"error: {error}")
    if json:
        sys.stdout.write(json_error(str(error)))
    return EXIT_NOT_CHECKED


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator preflight stacks/Pulumi.prod.yaml --read-only",
    statuses={0: "nothing is refused", 1: "something is refused", 2: "the checks cannot be made, or wrong use"},
    interrupted="interrupted: the probes are removed",
)
