"""`make admin`: root in the jail, in a pod that lives as long as the session."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import chosen_cluster, console, deployed_clusters, engine, paths
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, say, step

START_TIMEOUT_SECONDS = 180
"""Time to pull the small image and mount the jail on a machine that has done neither."""

_STATEFUL_SET = "statefulset/admin"
_CONTAINER = ("admin-0", "--container", "admin")
_SHELL = "cd /root; if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi"


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one namespace of the chosen cluster."""

    program: Path
    cluster: ChosenCluster
    namespace: str

    def command(self, *arguments: str) -> list[str]:
        """Return the whole command line."""
        context = ["--context", self.cluster.context] if self.cluster.context else []
        where = ["--kubeconfig", str(self.cluster.kubeconfig), *context, "--namespace", self.namespace]
        return [str(self.program), *where, *arguments]

    def run(self, *arguments: str) -> str:
        """Run a command and return its output.

        Raises:
            UserError: kubectl failed, with its message.

        """
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def main() -> int:
    """Start the pod, be its terminal, stop it, and return the shell's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    parser.add_argument("--cluster", help="name of one of several clusters of the stack")
    parser.add_argument("command", nargs="?", default="", help="command to run there; without one, a shell")
    arguments = parser.parse_args()
    chosen = chosen_cluster.choose()
    kubectl = Kubectl(_program(chosen), chosen, _namespace(arguments.stack, arguments.cluster, chosen))
    with _pod(kubectl):
        terminal = ["--stdin", *(["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else [])]
        shell = ["/bin/sh", "-lc", arguments.command or _SHELL]
        return subprocess.run(kubectl.command("exec", *terminal, *_CONTAINER, "--", *shell), check=False).returncode


def _namespace(stack: str, cluster: str | None, chosen: ChosenCluster) -> str:
    deployer, _ = engine.choose(paths.ROOT, stack, chosen.state_dir, environment=chosen.environment())
    clusters = deployed_clusters.outputs_by_cluster(deployer.outputs())
    if not clusters:
        raise UserError("There is no cluster with a jail. Start one: make up")
    return str(clusters[deployed_clusters.chosen(clusters, cluster, "make admin")]["namespace"])


def _program(chosen: ChosenCluster) -> Path:
    if chosen.embedded is not None:
        return chosen.embedded.bin_dir / "kubectl"
    found = shutil.which("kubectl")
    if found is None:
        raise UserError("kubectl is not on PATH, and `make admin` needs it for your own cluster. Install kubectl.")
    return Path(found)


@contextmanager
def _pod(kubectl: Kubectl) -> Iterator[None]:
    """Run the pod, as the cluster describes it now, while the body runs. A pod of another session stays."""
    ours = kubectl.run("get", _STATEFUL_SET, "--output", "jsonpath={.spec.replicas}") == "0"
    try:
        with step("Starting the admin shell" if ours else "Waiting for the admin shell"):
            if ours:
                kubectl.run("scale", _STATEFUL_SET, "--replicas=1")
            kubectl.run("rollout", "status", _STATEFUL_SET, f"--timeout={START_TIMEOUT_SECONDS}s")
        yield
    finally:
        if ours:
            kubectl.run("scale", _STATEFUL_SET, "--replicas=0")
            say("The admin shell has ended. Changes in the jail stay.")


if __name__ == "__main__":
    sys.exit(console.run(main))
