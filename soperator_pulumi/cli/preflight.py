"""`soperator preflight FILE`: checks a Kubernetes cluster before a deployment.

FILE is a description of a cluster, or the file of a stack with `soperator:cluster` or `soperator:clusters`. The
clusters are rendered as for a deployment, and the resulting objects are checked. A stack with `soperator:platform`
alone has its platform checked.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pulumi

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, access_in
from soperator_pulumi.cli.preflight_options import Options, add_options, options_of
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, is_refused, json_error, json_report, text_report
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPlatform
from soperator_pulumi.operations.preflight.preflight_run import Preflight, platform_findings
from soperator_pulumi.stack.preflight_plan import plans_of_file

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
