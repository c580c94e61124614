"""`python -m soperator_pulumi.preflight FILE`: checks a Kubernetes before a cluster is deployed to it.

FILE is a description of a cluster, or the file of a stack with `soperator:cluster` or `soperator:clusters`. The
clusters are rendered as a deployment would render them, and the checks are about these objects.

Exit status: 0 where nothing is refused, 1 where something is, 2 where the checks cannot be made.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pulumi

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.access import Access
from soperator_pulumi.operations.kube import Kube
from soperator_pulumi.operations.kube_api import Cluster
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis
from soperator_pulumi.operations.preflight.planned import PlannedCluster
from soperator_pulumi.operations.preflight.preflight_report import is_refused, json_error, json_report, text_report
from soperator_pulumi.operations.preflight.preflight_run import Preflight
from soperator_pulumi.preflight_options import Options, add_options, options_of
from soperator_pulumi.stack.preflight_plan import clusters_of_file

EXIT_REFUSED = 1
EXIT_NOT_CHECKED = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the clusters of a file, print the findings, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m soperator_pulumi.preflight",
        description="Check a Kubernetes before a cluster is deployed to it.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="description of a cluster, or file of a stack, in YAML")
    parser.add_argument("--kubeconfig", help="kubeconfig file (default: the stack's; KUBECONFIG without one)")
    parser.add_argument("--context", help="context in it (default: the stack's; the current one without one)")
    add_options(parser)
    given = parser.parse_args(arguments)
    options = options_of(given)
    try:
        planned = clusters_of_file(given.file, options.stack_outputs, Access(given.kubeconfig, given.context))
        return check([(each, Cluster(access)) for each, access in planned], options, say)
    except (SoperatorError, pulumi.RunError) as error:
        return not_checked(error, json=given.json)
    except KeyboardInterrupt:
        say("interrupted: the probes are removed")
        return EXIT_INTERRUPTED


def check(clusters: Sequence[tuple[PlannedCluster, Kube]], options: Options, report: Callable[[str], None]) -> int:
    """Check clusters, each in its Kubernetes; print the findings to standard output, and return the exit status.

    Raises:
        KubernetesError: a Kubernetes does not answer.
    """
    found: dict[str, list[Diagnosis]] = {}
    for planned, kube in clusters:
        run = Preflight(kube, planned, report, options.probes, options.accepted, options.seconds)
        found[planned.key] = run.findings()
    sys.stdout.write(json_report(found) if options.json else text_report(found))
    return EXIT_REFUSED if is_refused(found) else 0


def not_checked(error: Exception, *, json: bool) -> int:
    """Report an error without which there would be findings, and return the exit status."""
    say(f"error: {error}")
    if json:
        sys.stdout.write(json_error(str(error)))
    return EXIT_NOT_CHECKED


def say(text: str) -> None:
    """Show progress and errors on standard error: standard output belongs to the findings."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that a CI cancels removes its probes, too
    sys.exit(main())
