"""Changes of a stack, made or planned, and the parser of a Pulumi CLI preview."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from soperator_pulumi.cli.pulumi_runs import pulumi
from soperator_pulumi.errors import SoperatorError

_COLOR = re.compile(r"<\{%[^%]*%\}>")
_PARTS = frozenset({"create-replacement", "delete-replaced", "discard-replaced"})
"""Steps that are parts of a replacement, which has a step of its own."""


class StepOp(StrEnum):
    """Kind of a step on a resource, in Pulumi's words."""

    SAME = "same"
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    READ = "read"


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """Change of one resource, made or planned.

    Attributes:
        urn: Pulumi's unique name of the resource.
        type: Type token.
        name: Name in the program.
        operation: Kind of the step.
        paths: Properties that differ, as in `spec.replicas`.
        messages: Messages of the provider during the step.
    """

    urn: str
    type: str
    name: str
    operation: StepOp
    paths: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Failure of a resource or, without a URN, of the program."""

    urn: str
    message: str

    @property
    def name(self) -> str:
        """Name of the resource in the program."""
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True, kw_only=True)
class StackChanges:
    """Changes of an operation, in order."""

    changes: tuple[ResourceChange, ...]
    messages: tuple[str, ...] = ()

    def of(self, *operations: StepOp) -> tuple[ResourceChange, ...]:
        """Return the changes of these kinds."""
        return tuple(change for change in self.changes if change.operation in operations)

    def names(self, *operations: StepOp) -> set[str]:
        """Return the names of resources that have changes of these kinds."""
        return {change.name for change in self.of(*operations)}

    @property
    def changed(self) -> tuple[ResourceChange, ...]:
        """Changes, without resources that stay the same."""
        return tuple(c for c in self.changes if c.operation not in {StepOp.SAME, StepOp.READ})

    def by_name(self) -> Self:
        """Return the same changes sorted by resource name, as engines make them in varying order."""
        return replace(self, changes=tuple(sorted(self.changes, key=lambda c: (c.name, c.type, c.operation))))


_OTHER_STEPS = {
    "import": StepOp.CREATE,
    "import-replacement": StepOp.REPLACE,
    "read-replacement": StepOp.READ,
    "discard": StepOp.SAME,
    "refresh": StepOp.SAME,
    "remove-pending-replace": StepOp.SAME,
}
"""Steps that Pulumi's engine names differently."""


def previewed(stack: str | None, *words: str) -> tuple[StackChanges, list[Failure]]:
    """Return the changes and failures of a stack's preview by the Pulumi CLI.

    Args:
        stack: Name of the stack. Default: the one that is selected.
        words: Further arguments of `pulumi preview`.

    Raises:
        SoperatorError: There is no CLI, or it answers in no form that is known.
    """
    command = pulumi(stack, "preview", "--json", "--non-interactive", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        digest = json.loads(done.stdout)
        steps, notes = digest.get("steps") or [], digest.get("diagnostics") or []
        failed = [note for note in notes if note.get("severity") == "error"]
        failures = [Failure(urn=str(note.get("urn") or ""), message=_text(note)) for note in failed]
        messages = tuple(_text(note) for note in notes if note.get("severity") not in {"error", "debug"})
        changes = StackChanges(changes=tuple(_changes(steps)), messages=messages)
    except (ValueError, LookupError, AttributeError, TypeError):
        words_of_pulumi = done.stderr.strip() or done.stdout.strip() or "no answer"
        raise SoperatorError(f"pulumi preview: {words_of_pulumi}") from None
    if done.returncode and not failures:
        failures = [Failure(urn="", message=done.stderr.strip() or f"pulumi ended with {done.returncode}")]
    return changes, failures


def _changes(steps: list[Mapping[str, Any]]) -> Iterator[ResourceChange]:
    for step in steps:
        if step["op"] in _PARTS:
            continue
        *_, types, name = step["urn"].split("::", 3)
        operation = _OTHER_STEPS.get(step["op"]) or StepOp(step["op"])  # an unknown one must not pass as no change
        paths = tuple(sorted(step.get("detailedDiff") or step.get("diffReasons") or ()))
        kind = types.rpartition("$")[2]
        yield ResourceChange(urn=step["urn"], type=kind, name=name, operation=operation, paths=paths)


def _text(note: Mapping[str, Any]) -> str:
    return _COLOR.sub("", str(note["message"])).strip()
