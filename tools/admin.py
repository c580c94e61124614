"""`make admin`: root in the jail, in a pod that is there for as long as the session."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import chosen_cluster, console, engine, paths
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, say, step

START_TIMEOUT_SECONDS = 180
"""Pulls the small image, and mounts the jail, on a machine that has never done it."""

_STATEFUL_SET = "statefulset/admin"
_WHERE = ("admin-0", "--container", "admin")
_SHELL = "cd /root; if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi"


@dataclass(frozen=True)
class Kubectl:
    """kubectl, for one namespace of the chosen cluster."""

    program: Path
    target: ChosenCluster
    namespace: str

    def command(self, *arguments: str) -> list[str]:
        """Return a whole command line."""
        context = ["--context", self.target.context] if self.target.context else []
        where = ["--kubeconfig", str(self.target.kubeconfig), *context, "--namespace", self.namespace]
        return [str(self.program), *where, *arguments]

    def run(self, *arguments: str) -> str:
        """Run a command and return what it printed.

        Raises:
            UserError: It failed; its own words.

        """
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UserError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def main() -> int:
    """Start the pod, be its terminal, and take it away again. The exit code is the shell's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="local", help="the stack: stacks/Pulumi.<stack>.yaml (default: local)")
    parser.add_argument("command", nargs="?", default="", help="what to run there; a shell when left out")
    arguments = parser.parse_args()
    chosen = chosen_cluster.choose()
    kubectl = Kubectl(_program(chosen), chosen, _namespace(arguments.stack, chosen))
    with _pod(kubectl):
        terminal = ["--stdin", *(["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else [])]
        shell = ["/bin/sh", "-lc", arguments.command or _SHELL]
        return subprocess.run(kubectl.command("exec", *terminal, *_WHERE, "--", *shell), check=False).returncode


def _namespace(stack: str, chosen: ChosenCluster) -> str:
    deployer, _ = engine.choose(paths.ROOT, stack, chosen.state_dir, environment=chosen.environment())
    namespace = deployer.outputs().get("namespace")
    if not isinstance(namespace, str):
        raise UserError("There is no cluster whose jail one could change. Start one: make up")
    return namespace


def _program(chosen: ChosenCluster) -> Path:
    if chosen.embedded is not None:
        return chosen.embedded.bin_dir / "kubectl"
    found = shutil.which("kubectl")
    if found is None:
        raise UserError("kubectl is not on PATH; on a cluster of yours, `make admin` needs it. Install it.")
    return Path(found)


@contextmanager
def _pod(kubectl: Kubectl) -> Iterator[None]:
    """Have the pod for the time of the body. One that was there before, for somebody else, stays."""
    before = kubectl.run("get", _STATEFUL_SET, "--output", "jsonpath={.spec.replicas}")
    if before != "0":
        yield
        return
    try:
        with step("Starting the admin shell"):
            kubectl.run("scale", _STATEFUL_SET, "--replicas=1")
            kubectl.run("rollout", "status", _STATEFUL_SET, f"--timeout={START_TIMEOUT_SECONDS}s")
        yield
    finally:
        kubectl.run("scale", _STATEFUL_SET, "--replicas=0")
        say("The admin shell is gone; what was changed in the jail stays.")


if __name__ == "__main__":
    sys.exit(console.run(main))
