"""`make up`: starts Kubernetes on a bare machine, or uses the user's, and deploys a Slurm that runs jobs."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from soperator_pulumi.cli.ssh import Login, write_config
from soperator_pulumi.kube.access import Access
from soperator_pulumi.stack import stack_config
from soperator_pulumi.stack.stack_config import Described
from tools import build, chosen_cluster, console, deployed_clusters, engine, images, paths, ssh
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, say, step
from tools.engine import Deployer, Target, project
from tools.kube.debs import tool
from tools.leaving_clusters import with_their_jobs

FIRST_LOGIN_TIMEOUT_SECONDS = 60


def main() -> None:
    """Bring up Kubernetes, images and Slurm if they are missing, and print the next steps."""
    parser = stack_parser(__doc__)
    parser.add_argument("--machines", type=int, help="number of machines of the embedded Kubernetes")
    arguments = parser.parse_args()
    stack, machines = str(arguments.stack), arguments.machines
    clusters = descriptions(stack)
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None:
        chosen.embedded.require_number(machines)  # before anything is built
        versions = sorted({images.version_of(cluster.merged) for cluster in clusters})
        if build.is_needed(chosen.embedded, versions):
            build.build(chosen.embedded, versions)
        chosen.embedded.up(machines)
        for version in versions:
            images.build(slurm=version)  # sources may have changed meanwhile: compiling Kubernetes takes long
            images.load(chosen.embedded, slurm=version)
    else:
        if machines is not None:
            raise UserError("MACHINES is for the embedded Kubernetes, and KUBECONFIG or CONTEXT names another one")
        say(f"==> Using the Kubernetes of {chosen.kubeconfig}, context {chosen.context or '(current)'}")
        require_images_that_can_be_pulled(stack, clusters)

    outputs = deploy(stack, chosen)
    if logins := logins_of(outputs):
        print_next_steps(chosen, stack, logins)


def stack_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of a command line that names a stack; the default is `local`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--stack", default="local", help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    return parser


def parse_stack(description: str | None) -> str:
    """Return the stack that the command line names; the default is `local`."""
    return str(stack_parser(description).parse_args().stack)


def descriptions(stack: str) -> list[Described]:
    """Return the unchecked descriptions of a stack's clusters: the program reports their problems.

    Raises:
        UserError: The stack's file is missing or not YAML.
    """
    target = Target(project=paths.ROOT, stack=stack, state=paths.state_dir())
    file = project.stack_file(target)
    if not file.exists():
        known = sorted(other.name.split(".")[1] for other in file.parent.glob("Pulumi.*.yaml"))
        raise UserError(
            f'There is no stack "{stack}" ({file.relative_to(paths.ROOT)}). Choose one of: {", ".join(known)}.'
        )
    return stack_config.read(project.configuration(target))[0]


def require_images_that_can_be_pulled(stack: str, clusters: Sequence[Described]) -> None:
    """Refuse images that only this machine has for a user's cluster.

    Raises:
        UserError: A cluster has no images in a registry.
    """
    for cluster in clusters:
        if isinstance(cluster.merged, Mapping) and not cluster.merged.get("images"):
            raise UserError(
                f"stacks/Pulumi.{stack}.yaml names no images, and the chosen Kubernetes cannot get those that were "
                "built on this machine. Push them to your registry with `make images REGISTRY=...`, then add the "
                f"`images:` block that it prints to {cluster.path}."
            )


def deploy(stack: str, chosen: ChosenCluster) -> dict[str, Any]:
    """Deploy the stack and return its outputs."""
    deployer, why = deployer_of(stack, chosen)
    if policy_packs():
        with step(f"Judging stack {stack} by policies, before anything is applied"):
            with_their_jobs(deployer.preview(), deployer, chosen)
    with step(f"Deploying Slurm with {why}"):
        deployer.up()
    return deployer.outputs()


def deployer_of(stack: str, chosen: ChosenCluster) -> tuple[Deployer, str]:
    """Return the deployer of a stack, and a phrase that names its engine and the reason for it."""
    overrides = {"soperator:context": chosen.context} if chosen.context else {}
    return engine.choose(
        paths.ROOT,
        stack,
        chosen.state_dir,
        config=overrides,
        environment=chosen.environment(),
        policy_packs=policy_packs(),
    )


def policy_packs() -> list[Path]:
    """Return the policy packs of this run: the folders in the variable that `make` sets for `POLICY=...`."""
    return [paths.ROOT / folder for folder in os.environ.get("POLICY_PACKS", "").split()]


def logins_of(outputs: Mapping[str, Any]) -> list[Login]:
    """Return the logins of this machine's user; none if the stack is not for this machine."""
    clusters = deployed_clusters.outputs_by_cluster(outputs)
    return [
        Login(
            cluster["namespace"],
            host=name if len(clusters) > 1 else ssh.HOST,
            user=cluster["login_user"],
            host_key=cluster["login_host_key"],
            identity=ssh.private_key_file(),
        )
        for name, cluster in clusters.items()
        if "login_user" in cluster
    ]


def print_next_steps(chosen: ChosenCluster, stack: str, logins: Sequence[Login]) -> None:
    """Log in once to every cluster, as a test, and print the nodes and the next commands."""
    config = ssh.config_file(chosen, stack)
    of_stack = "" if stack == ssh.DEFAULT_STACK else f" STACK={stack}"
    write_config(config, Access(str(chosen.kubeconfig), chosen.context), *logins)
    for login in logins:
        with step(f"Logging in to {login.namespace} as a user"):
            nodes = tool("ssh").run(
                *("-F", config, login.host, "sinfo"),
                timeout_seconds=FIRST_LOGIN_TIMEOUT_SECONDS,
                what="logging in and asking for the nodes",
            )
        one = of_stack if len(logins) == 1 else f"{of_stack} CLUSTER={login.host}"
        say(
            f"\n{nodes}\n"
            f"Log in     make ssh{one}               or  ssh -F {config} {login.host}\n"
            f"Run a job  make ssh{one} CMD='srun -N2 hostname'\n"
            f'Look       eval "$(make -s env)"  and  kubectl -n {login.namespace} get pods\n'
            f"Stop       make down"
        )


if __name__ == "__main__":
    sys.exit(console.run(main))
