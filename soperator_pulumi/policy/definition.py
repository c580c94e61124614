"""Parts of a policy, as its author writes them, and the application of its edits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from soperator_pulumi.policy.levels import Environment, Levels, PolicyLevel, PolicySeverity
from soperator_pulumi.policy.value_tree import Path
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.base import Model


class PolicySettings(Model):
    """Settings of a policy in a stack, under `soperator:policy.settings.<policy>`."""

    level: PolicyLevel | None = None
    """Level that replaces the environment's, at least as strict. A weaker level needs an exception with a reason."""


@dataclass(frozen=True)
class Finding:
    """A part of a resource that violates a policy, or cannot be judged yet."""

    resource: ResourceView | None
    """The resource; None for the stack as a whole."""
    path: Path
    """Keys and indices down to the value."""
    text: str
    """Value given and values allowed. It never quotes a property, which may be secret."""
    unknown: bool = False
    """True if a preview does not know the value."""


def not_known(resource: ResourceView, path: Path) -> Finding:
    """Return the finding for a value that a preview does not know: the deployment judges it."""
    return Finding(resource, path, "not known in this preview", unknown=True)


MARK_AS_SECRET = object()
"""Value of an `Edit` that marks a value as secret and leaves it as it is."""


@dataclass(frozen=True)
class Edit:
    """A change to a resource's properties that cures a violation."""

    path: Path
    """Keys and indices down to the value."""
    value: object = field(repr=False)
    """The new value."""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """The stack and the run that are judged."""

    environment: Environment
    """Environment of the stack."""
    project: str
    """Name of the Pulumi project."""
    stack: str
    """Name of the stack."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables of the run."""
    problems: Sequence[str] = ()
    """Problems of `soperator:policy`."""
    idle_exceptions: Callable[[], Sequence[str]] = tuple
    """Return the exceptions that have excused nothing so far."""


@dataclass(frozen=True, kw_only=True)
class AnyPolicy:
    """Name, texts for readers, levels and settings of a policy of either kind."""

    name: str
    """Name in exceptions, settings and messages, as words joined by '-'."""
    description: str
    """The rule, as a sentence."""
    violated_by: str
    """Examples of violations, for the table of all policies."""
    cure: str
    """Next step for a user who violates the policy, in sentences."""
    levels: Levels
    """Levels by environment."""
    severity: PolicySeverity
    """Damage that a violation does."""
    tags: Sequence[str] = ()
    """Keywords by which reports group policies."""
    settings: type[PolicySettings] = PolicySettings
    """Model of the settings, with their defaults."""
    exceptable: bool = True
    """False if exceptions in a stack's file have no effect."""


@dataclass(frozen=True, kw_only=True)
class ResourcePolicy(AnyPolicy):
    """A rule that judges resources one by one, before they are touched."""

    check: Callable[[ResourceView, Circumstances, Any], Iterable[Finding]]
    """Yields the violations. The last argument has the policy's settings."""
    remediate: Callable[[ResourceView, Circumstances, Any], Iterable[Edit]] | None = None
    """Yields the changes that cure a violation, at the level `remediate`. Give only changes that are safe
    everywhere."""
    needs_marks: bool = False
    """True if the rule needs to know what is marked as secret (`ResourceView.secrets`)."""


@dataclass(frozen=True, kw_only=True)
class StackPolicy(AnyPolicy):
    """A rule for all resources together, judged when the program has ended."""

    check: Callable[[Sequence[ResourceView], Circumstances, Any], Iterable[Finding]]
    """Yields the violations. The last argument has the policy's settings."""
    counts_exceptions: bool = False
    """True if the rule judges the findings of all other policies: it runs last."""


def edited(resource: ResourceView, edits: Iterable[Edit]) -> ResourceView:
    """Return a resource with the edits applied."""
    props, marks = resource.props, set(resource.secrets or ())
    for edit in edits:
        if edit.value is MARK_AS_SECRET:
            marks.add(edit.path)
        else:
            props = with_value(props, edit.path, edit.value)
    return replace(resource, props=props, secrets=None if resource.secrets is None else frozenset(marks))


def with_value(tree: Any, path: Path, value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with a new value at a path; missing mappings on the way are created."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(tree, list) and isinstance(key, int):
        return [with_value(item, rest, value) if index == key else item for index, item in enumerate(tree)]
    given = tree if isinstance(tree, Mapping) else {}
    return {**given, key: with_value(given.get(key), rest, value)}
