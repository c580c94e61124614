"""`make preflight STACK=prod`: checks the Kubernetes of a stack before anything is applied to it."""

import argparse
import signal
import sys

import pulumi

from soperator_pulumi.cli import preflight
from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.stack.preflight_plan import plans_of
from soperator_pulumi.stack.written_sizes import write_sizes
from tools import chosen_cluster, console, paths
from tools.console import UserError, say
from tools.engine import Target
from tools.engine.project import stack_file
from tools.render import rendered_deployment


def main() -> int:
    """Check all clusters of the stack that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    preflight.add_options(parser)
    given = parser.parse_args()
    options = preflight.options_of(given)
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None and not chosen.kubeconfig.exists():
        raise UserError("There is no cluster to look at. Start one: make up")
    access = Access(str(chosen.kubeconfig), chosen.context)
    try:
        if given.write_sizes:
            target = Target(project=paths.ROOT, stack=given.stack, state=paths.state_dir())
            write_sizes(stack_file(target), options.stack_outputs, access, Cluster, say)
        plans = plans_of(rendered_deployment(paths.ROOT, given.stack, options.stack_outputs), access)
        return preflight.check([(plan, Cluster(of_plan)) for plan, of_plan in plans], options, say)
    except (KubernetesError, SpecError, pulumi.RunError) as error:
        return preflight.not_checked(error, json=given.json)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that a CI cancels removes its probes, too
    sys.exit(console.run(main))
