"""What deploys a Pulumi program, whichever engine does it: the operations and what they answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tools.console import UserError

STACK_TYPE = "pulumi:pulumi:Stack"
HIDDEN = "[secret]"
"""Stands for the value of a secret."""


class StepOp(StrEnum):
    """What happens to a resource, in Pulumi's words."""

    SAME = "same"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    READ = "read"


@dataclass(frozen=True, kw_only=True)
class Target:
    """Which stack is deployed, and with what.

    Attributes:
        project: Folder of `Pulumi.yaml`.
        stack: Name of the stack; its configuration is `Pulumi.<stack>.yaml` in the project's `stackConfigDir`.
        state: Folder in which the engines keep state, locks and passphrase. Never in the source tree.
        config: Values that win over the stack's file, by full key (`soperator:cluster`).
        environment: Variables for the program and the providers, on top of the caller's.
        lock_timeout_seconds: How long to wait for another run on the same stack.
        python: Interpreter of the program, in place of the one that the project names. The local engine's only.
    """

    project: Path
    stack: str
    state: Path
    config: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    lock_timeout_seconds: float = 30.0
    python: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """What an operation did, or would do, to one resource.

    Attributes:
        urn: Pulumi's unique name of the resource.
        type: Its type token.
        name: Its name in the program.
        operation: What happens to it.
        paths: The properties that differ, as in `spec.replicas`.
        messages: What its provider said meanwhile.
    """

    urn: str
    type: str
    name: str
    operation: StepOp
    paths: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A resource (or, without a URN, the program) that failed, and why."""

    urn: str
    message: str

    @property
    def name(self) -> str:
        """The name of the resource in the program."""
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes of a preview, in the order in which they came."""

    changes: tuple[ResourceChange, ...]
    messages: tuple[str, ...] = ()

    def of(self, *operations: StepOp) -> tuple[ResourceChange, ...]:
        """Return the changes that are one of these operations."""
        return tuple(change for change in self.changes if change.operation in operations)

    def names(self, *operations: StepOp) -> set[str]:
        """Return the names of the resources to which one of these operations happens."""
        return {change.name for change in self.of(*operations)}

    @property
    def changed(self) -> tuple[ResourceChange, ...]:
        """All but the resources that stay as they are."""
        return tuple(c for c in self.changes if c.operation not in {StepOp.SAME, StepOp.READ})


@dataclass(frozen=True, kw_only=True)
class Result(Changes):
    """What was done, and how long it took."""

    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ResourceState:
    """A resource as the state has it. Secrets are replaced by `[secret]`."""

    urn: str
    type: str
    name: str
    id: str
    protect: bool
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]


class DeployError(UserError):
    """An operation failed. What was done until then is in `result`, why is in `failures`."""

    def __init__(self, message: str, *, failures: Sequence[Failure] = (), result: Changes | None = None) -> None:
        super().__init__(message)
        self.failures = tuple(failures)
        self.result = result or Changes(changes=())


def unsupported(message: str) -> str:
    """Say that something can't be had here, and where it can."""
    return f"{message} by the local engine. Leave it out, or install the Pulumi CLI, which supports it."


class Deployer(Protocol):
    """Deploys one stack. Every operation shows what it does while it does it, and raises DeployError when it fails."""

    def preview(self) -> Changes:
        """Say what `up` would do. Nothing is changed."""
        ...

    def up(self) -> Result:
        """Make what the program asks for."""
        ...

    def refresh(self) -> Result:
        """Bring the state in line with what is really there, without changing that."""
        ...

    def destroy(self, *, exclude_protected: bool = False) -> Result:
        """Delete everything in the state.

        Protected resources make it fail before anything is deleted, or, with `exclude_protected`, stay
        together with all that they depend on.
        """
        ...

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs as of the last `up`, secrets among them in plain."""
        ...

    def state(self) -> list[ResourceState]:
        """Return the resources in the state, dependencies first."""
        ...
