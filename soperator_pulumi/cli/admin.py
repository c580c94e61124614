"""`soperator admin`: root in the jail, in a pod that lives as long as the session."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, access_in, add_cluster
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster

START_TIMEOUT_SECONDS = 180
"""Time to pull the small image and mount the jail on a new machine."""

_STATEFUL_SET = "statefulset/admin"
_CONTAINER = ("admin-0", "--container", "admin")
_SHELL = "cd /root; if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi"

Step: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Context manager that prints a title before a step."""


@contextmanager
def titled(title: str) -> Iterator[None]:
    """Print a step's title."""
    say(title)
    yield


@dataclass(frozen=True)
class Kubectl:
    """kubectl for one namespace."""

    program: str
    access: Access
    namespace: str

    def command(self, *arguments: str) -> list[str]:
        """Return the whole command line."""
        kubeconfig = ["--kubeconfig", self.access.kubeconfig] if self.access.kubeconfig else []
        context = ["--context", self.access.context] if self.access.context else []
        return [self.program, *kubeconfig, *context, "--namespace", self.namespace, *arguments]

    def run(self, *arguments: str) -> str:
        """Run a command and return its output.

        Raises:
            SoperatorError: kubectl failed, with its message.
        """
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SoperatorError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def kubectl_on_path() -> str:
    """Return the path of kubectl.

    Raises:
        SoperatorError: There is none.
    """
    found = shutil.which("kubectl")
    if found is None:
        raise SoperatorError("kubectl is not on PATH, and the admin shell needs it. Install kubectl.")
    return found


def session(kubectl: Kubectl, command: str, step: Step = titled) -> int:
    """Start the pod, attach the terminal, stop the pod, and return the shell's exit code.

    Args:
        kubectl: Of the cluster's namespace.
        command: Line for the shell; empty for a shell to type in.
        step: Shows that the pod starts.

    Raises:
        SoperatorError: The pod does not start.
    """
    with _pod(kubectl, step):
        terminal = ["--stdin", *(["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else [])]
        shell = ["/bin/sh", "-lc", command or _SHELL]
        return subprocess.run(kubectl.command("exec", *terminal, *_CONTAINER, "--", *shell), check=False).returncode


@contextmanager
def _pod(kubectl: Kubectl, step: Step) -> Iterator[None]:
    """Run the pod, as the cluster describes it now, during the block. A pod of another session stays."""
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_cluster(parser)
    parser.add_argument("line", metavar="COMMAND", nargs="?", default="", help="command; without one, a shell")


def run(given: argparse.Namespace) -> int:
    """Open a root shell in the jail."""
    access = access_in(given)
    # It says in one line what is wrong with a kubeconfig or an API, which kubectl does not.
    Cluster(access).get(f"/apis/apps/v1/namespaces/{given.namespace}/statefulsets/admin")
    return session(Kubectl(kubectl_on_path(), access, given.namespace), given.line)


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator admin -n hpc 'apt-get install -y jq'",
    statuses={0: "done, or the status of the command there", 2: "wrong use, or the pod did not start"},
)
