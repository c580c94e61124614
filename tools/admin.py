"""`make admin`: root in the jail of a stack's cluster."""

import argparse
import sys

from soperator_pulumi.cli.admin import Kubectl, kubectl_on_path, session
from soperator_pulumi.kube.access import Access
from tools import chosen_cluster, console, deployed_clusters, engine, paths
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, step


def main() -> int:
    """Open a root shell in the jail, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    parser.add_argument("--cluster", help="name of one of several clusters of the stack")
    parser.add_argument("command", nargs="?", default="", help="command to run there; without one, a shell")
    arguments = parser.parse_args()
    chosen = chosen_cluster.choose()
    access = Access(str(chosen.kubeconfig), chosen.context)
    namespace = _namespace(arguments.stack, arguments.cluster, chosen)
    program = str(chosen.embedded.bin_dir / "kubectl") if chosen.embedded else kubectl_on_path()
    return session(Kubectl(program, access, namespace), arguments.command, step)


def _namespace(stack: str, cluster: str | None, chosen: ChosenCluster) -> str:
    deployer, _ = engine.choose(paths.ROOT, stack, chosen.state_dir, environment=chosen.environment())
    clusters = deployed_clusters.outputs_by_cluster(deployer.outputs())
    if not clusters:
        raise UserError("There is no cluster with a jail. Start one: make up")
    return str(clusters[deployed_clusters.chosen(clusters, cluster, "make admin")]["namespace"])


if __name__ == "__main__":
    sys.exit(console.run(main))
