"""Interface of both engines: the operations on a stack, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from soperator_pulumi.cli.stack_changes import Failure, StackChanges
from tools.console import UserError

STACK_TYPE = "pulumi:pulumi:Stack"
HIDDEN = "[secret]"
"""Text that replaces the value of a secret."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A stack to deploy, and its inputs.

    Attributes:
        project: Folder of `Pulumi.yaml`.
        stack: Name of the stack; its configuration is `Pulumi.<stack>.yaml` in the project's `stackConfigDir`.
        state: Folder in which the engines keep state, locks and passphrase. Never in the source tree.
        config: Values that override the stack's file, by full key (`soperator:cluster`).
        environment: Variables for the program and the providers, on top of the caller's.
        lock_timeout_seconds: Longest wait for another run on the same stack.
        python: Interpreter of the program instead of the project's, for the local engine alone.
        policy_packs: Absolute paths of policy packs, which judge previews and updates.
    """

    project: Path
    stack: str
    state: Path
    config: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    lock_timeout_seconds: float = 30.0
    python: Path | None = None
    policy_packs: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result(StackChanges):
    """Changes that were made, and the duration."""

    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ResourceState:
    """A resource in the state, with `[secret]` for secrets."""

    urn: str
    type: str
    name: str
    id: str
    protect: bool
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]


class DeployError(UserError):
    """Failure of an operation: its causes in `failures`, the changes made before it in `result`."""

    def __init__(self, message: str, *, failures: Sequence[Failure] = (), result: StackChanges | None = None) -> None:
        super().__init__(message)
        self.failures = tuple(failures)
        self.result = result or StackChanges(changes=())


def protected_error(names: Sequence[str]) -> DeployError:
    """Return the refusal to destroy protected resources."""
    return DeployError(
        f"protected: {', '.join(names)}. Nothing was deleted. Set protect to false in the program and run up, or "
        "destroy with exclude_protected, which leaves them."
    )


def unsupported(message: str) -> str:
    """Return the refusal of an unsupported feature."""
    return f"{message} by the local engine. Remove it, or install the Pulumi CLI, which supports it."


class Deployer(Protocol):
    """Deploys one stack. Every operation prints its progress, and raises DeployError if it fails."""

    def preview(self, *, refresh: bool = False) -> StackChanges:
        """Return the changes that `up` would make, without changing anything.

        With `refresh`, the resources are read first, so that a difference between the program and the cluster is a
        change. The state stays as it was.
        """
        ...

    def up(self) -> Result:
        """Deploy the program."""
        ...

    def refresh(self) -> Result:
        """Record the resources as they are in the state, without changing them."""
        ...

    def destroy(self, *, exclude_protected: bool = False) -> Result:
        """Delete everything in the state.

        Protected resources make it fail before any deletion or, with `exclude_protected`, stay with their
        dependencies.
        """
        ...

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs of the last `up`, with secrets in plain text."""
        ...

    def state(self) -> list[ResourceState]:
        """Return the resources in the state, dependencies first."""
        ...
