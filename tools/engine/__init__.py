"""Deploys a Pulumi program with the Pulumi CLI, if it is installed, or with the local engine."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from soperator_pulumi.cli.stack_changes import Failure, ResourceChange, StackChanges, StepOp
from tools import console
from tools.console import UserError
from tools.engine.cli import automation
from tools.engine.cli.automation import CliDeployer
from tools.engine.cli.automation import environment as cli_environment
from tools.engine.display import Say
from tools.engine.local import local_engine
from tools.engine.local.local_engine import LocalDeployer
from tools.engine.protocol import Deployer, DeployError, ResourceState, Result, Target


def choose(
    project: Path,
    stack: str,
    state: Path,
    *,
    config: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    lock_timeout_seconds: float = 30.0,
    python: Path | None = None,
    policy_packs: Sequence[Path] = (),
    say: Say = console.say,
) -> tuple[Deployer, str]:
    """Return the deployer of a stack, and a phrase that names its engine and the reason for it.

    Args:
        project: Folder of `Pulumi.yaml`.
        stack: Name of the stack.
        state: Folder for state, locks and passphrase, made if missing. Not in the source tree.
        config: Values that override the stack's file, by full key (`soperator:cluster`).
        environment: Variables for the program and the providers, on top of the caller's.
        lock_timeout_seconds: Longest wait for another run on the same stack.
        python: Interpreter of the program in the local engine; default: the project's.
        policy_packs: Policy packs that judge previews and updates.
        say: Prints a line for a person.

    Raises:
        UserError: The user has chosen a backend, and there is no CLI to use it.
    """
    target = Target(
        project=project,
        stack=stack,
        state=state,
        config=config or {},
        environment=environment or {},
        lock_timeout_seconds=lock_timeout_seconds,
        python=python,
        policy_packs=tuple(policy_packs),
    )
    if not automation.is_installed():
        if automation.is_shared(state):
            raise UserError(
                "PULUMI_BACKEND_URL is set, but the local engine keeps states on this machine alone. Install the "
                "Pulumi CLI, or unset the variable."
            )
        return LocalDeployer(target, say), "the local engine, because there is no `pulumi` on PATH"
    if local_engine.has_state(target):
        return LocalDeployer(target, say), "the local engine, because it has deployed this stack before"
    return CliDeployer(target, say), f"the Pulumi CLI, {shutil.which('pulumi')}"


__all__ = [
    "CliDeployer",
    "DeployError",
    "Deployer",
    "Failure",
    "LocalDeployer",
    "ResourceChange",
    "ResourceState",
    "Result",
    "StackChanges",
    "StepOp",
    "Target",
    "choose",
    "cli_environment",
]
