"""`make up`: from a bare machine, or a Kubernetes of the user's, to a Slurm that runs jobs."""

import argparse
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
    """Bring up Kubernetes, images and Slurm, each only where it is not there yet, and say how to go on."""
    stack = parse_stack(__doc__)
    cluster = stack_config(stack).get("soperator:cluster", {})
    chosen = chosen_cluster.choose()
    if chosen.embedded is not None:
        if build.is_needed(chosen.embedded):
            build.build(chosen.embedded)
        chosen.embedded.up()
        images.build()  # of what has changed meanwhile: compiling Kubernetes takes long
        images.load(chosen.embedded)
    else:
        say(f"==> Using the Kubernetes of {chosen.kubeconfig}, context {chosen.context or '(current)'}")
        require_images_that_can_be_pulled(stack, cluster)

    outputs = deploy(stack, chosen)
    if "login_user" in outputs:
        tell_how_to_go_on(chosen, outputs)


def parse_stack(description: str | None) -> str:
    """Return the stack that the command line names, `local` without."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--stack", default="local", help="the stack: stacks/Pulumi.<stack>.yaml (default: local)")
    return str(parser.parse_args().stack)


def stack_config(stack: str) -> dict[str, Any]:
    """Return the `config` of a stack's file.

    Raises:
        UserError: There is no such file, or it is not YAML.

    """
    file = paths.ROOT / "stacks" / f"Pulumi.{stack}.yaml"
    if not file.exists():
        known = sorted(other.name.split(".")[1] for other in file.parent.glob("Pulumi.*.yaml"))
        raise UserError(f'There is no stack "{stack}" ({_short(file)}). There are: {", ".join(known)}.')
    try:
        return (yaml.safe_load(file.read_text()) or {}).get("config", {})  # type: ignore[no-any-return] # from YAML
    except yaml.YAMLError as error:
        raise UserError(f"{_short(file)} is not YAML: {error}") from error


def require_images_that_can_be_pulled(stack: str, cluster: Mapping[str, Any]) -> None:
    """Refuse to deploy images to a foreign cluster that are on this machine only.

    Raises:
        UserError: The stack names no images of a registry.

    """
    if not cluster.get("images"):
        raise UserError(
            f"stacks/Pulumi.{stack}.yaml names no images, so they are those that were built on this machine, "
            "and the chosen Kubernetes can't pull them. Push them to a registry of yours with "
            "`make images REGISTRY=...`, and put the `images:` block that it prints into soperator:cluster."
        )


def deploy(stack: str, chosen: ChosenCluster) -> dict[str, Any]:
    """Deploy the stack and return its outputs."""
    deployer, why = deployer_of(stack, chosen)
    with step(f"Deploying Slurm with {why}"):
        deployer.up()
    return deployer.outputs()


def deployer_of(stack: str, chosen: ChosenCluster) -> tuple[Deployer, str]:
    """Return what deploys the stack to the chosen cluster, and a phrase that says which engine that is and why."""
    overrides = {"soperator:context": chosen.context} if chosen.context else {}
    return engine.choose(paths.ROOT, stack, chosen.state_dir, config=overrides, environment=chosen.environment())


def tell_how_to_go_on(chosen: ChosenCluster, outputs: dict[str, Any]) -> None:
    """Log in once, which shows that it works, and print the nodes and what one may type next."""
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
