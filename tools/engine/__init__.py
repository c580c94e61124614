"""Deploys a Pulumi program: with the Pulumi CLI where it is installed, with the local engine where it is not."""

import os
from collections.abc import Mapping
from pathlib import Path

from tools import console
from tools.engine import secrets
from tools.engine.display import Say
from tools.engine.local import LocalDeployer
from tools.engine.protocol import (
    Change, Deployer, DeployError, Failure, Operation, Plan, ResourceState, Result, Target,
)  # fmt: skip


def choose(
    project: Path,
    stack: str,
    state: Path,
    *,
    config: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    lock_timeout_seconds: float = 30.0,
    say: Say = console.say,
) -> tuple[Deployer, str]:
    """Return what deploys a stack, and a phrase that says which engine that is and why.

    Args:
        project: Folder of `Pulumi.yaml`.
        stack: Name of the stack.
        state: Folder for state, locks and passphrase, made at need. Not in the source tree.
        config: Values that win over the stack's file, by full key (`soperator:cluster`).
        environment: Variables for the program and the providers, on top of the caller's.
        lock_timeout_seconds: How long to wait for another run on the same stack.
        say: Shows a line to a person.
    """
    target = Target(
        project=project, stack=stack, state=state, config=config or {}, environment=environment or {},
        lock_timeout_seconds=lock_timeout_seconds,
    )  # fmt: skip
    return LocalDeployer(target, say), "the local engine, because there is no `pulumi` on PATH"


def cli_environment(state: Path) -> dict[str, str]:
    """Return the variables with which a plain `pulumi` works on the state that a deployer keeps in this folder."""
    (state / "pulumi").mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "PULUMI_BACKEND_URL": os.environ.get("PULUMI_BACKEND_URL") or f"file://{state / 'pulumi'}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(secrets.passphrase_file(state)),
    }


__all__ = [
    "Change", "DeployError", "Deployer", "Failure", "LocalDeployer", "Operation", "Plan", "ResourceState", "Result",
    "Target", "choose", "cli_environment",
]  # fmt: skip
