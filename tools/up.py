"""`make up`: starts Kubernetes on a bare machine, or takes the user's, and deploys a Slurm that runs jobs."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import build, chosen_cluster, console, engine, images, paths, ssh
from tools.chosen_cluster import ChosenCluster
from tools.console import UserError, say, step
from tools.engine import Deployer
from tools.kube.debs import tool
from tools.ssh import Login

FIRST_LOGIN_TIMEOUT_SECONDS = 60


def main() -> None:
    """Bring up Kubernetes, images and Slurm, each only if missing, and print the next steps."""
    stack = parse_stack(__doc__)
    cluster = stack_config(stack).get("soperator:cluster", {})
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None:
        if build.is_needed(chosen.embedded):
            build.build(chosen.embedded)
        chosen.embedded.up()
        images.build()  # sources may have changed meanwhile: compiling Kubernetes takes long
        images.load(chosen.embedded)
    else:
        say(f"==> Using the Kubernetes of {chosen.kubeconfig}, context {chosen.context or '(current)'}")
        require_images_that_can_be_pulled(stack, cluster)

    outputs = deploy(stack, chosen)
    if "login_user" in outputs:
        print_next_steps(chosen, outputs)


def parse_stack(description: str | None) -> str:
    """Return the stack that the command line names; without one, `local`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--stack", default="local", help="name of stacks/Pulumi.<stack>.yaml (default: local)")
    return str(parser.parse_args().stack)


def stack_config(stack: str) -> dict[str, Any]:
    """Return `config` of a stack's file.

    Raises:
        UserError: The file is missing or not YAML.

    """
    file = paths.ROOT / "stacks" / f"Pulumi.{stack}.yaml"
    if not file.exists():
        known = sorted(other.name.split(".")[1] for other in file.parent.glob("Pulumi.*.yaml"))
        raise UserError(f'There is no stack "{stack}" ({_short(file)}). Choose one of: {", ".join(known)}.')
    try:
        return (yaml.safe_load(file.read_text()) or {}).get("config", {})  # type: ignore[no-any-return] # from YAML
    except yaml.YAMLError as error:
        raise UserError(f"{_short(file)} is not YAML: {error}") from error


def require_images_that_can_be_pulled(stack: str, cluster: Mapping[str, Any]) -> None:
    """Refuse images of this machine alone for a cluster of the user's.

    Raises:
        UserError: The stack names no images in a registry.

    """
    if not cluster.get("images"):
        raise UserError(
            f"stacks/Pulumi.{stack}.yaml names no images. Those built on this machine are out of reach for the "
            "chosen Kubernetes. Push them to your registry with `make images REGISTRY=...`, then add the "
            "`images:` block that it prints to soperator:cluster."
        )


def deploy(stack: str, chosen: ChosenCluster) -> dict[str, Any]:
    """Deploy the stack and return its outputs."""
    deployer, why = deployer_of(stack, chosen)
    if policy_packs():
        with step(f"Judging stack {stack} by policies, before anything is applied"):
            deployer.preview()
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
    """Return the policy packs of this run: folders in the variable that `make` sets for `POLICY=...`."""
    return [paths.ROOT / folder for folder in os.environ.get("POLICY_PACKS", "").split()]


def print_next_steps(chosen: ChosenCluster, outputs: dict[str, Any]) -> None:
    """Log in once, as proof, and print the nodes and the commands to type next."""
    namespace = outputs["namespace"]
    config = ssh.config_file(chosen)
    key = ssh.private_key_file()
    ssh.write_config(config, chosen, Login(outputs["login_user"], namespace, outputs["login_host_key"], identity=key))
    with step("Logging in as a user"):
        nodes = tool("ssh").run(
            *("-F", config, ssh.HOST, "sinfo"),
            timeout_seconds=FIRST_LOGIN_TIMEOUT_SECONDS,
            what="logging in and asking for the nodes",
        )
    say(
        f"\n{nodes}\n"
        f"Log in     make ssh               or  ssh -F {config} {ssh.HOST}\n"
        f"Run a job  make ssh CMD='srun -N2 hostname'\n"
        f'Look       eval "$(make -s env)"  and  kubectl -n {namespace} get pods\n'
        f"Stop       make down"
    )


def _short(file: Path) -> str:
    return str(file.relative_to(paths.ROOT))


if __name__ == "__main__":
    sys.exit(console.run(main))
