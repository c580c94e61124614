"""Parts of a policy, as its author writes them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.policy.levels import Environment, Levels, PolicyLevel, PolicySeverity
from soperator_pulumi.policy.value_tree import Path
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.base import Model


class PolicySettings(Model):
    """Settings of a policy in a stack, under `soperator:policy.settings.<policy>`."""

    level: PolicyLevel | None = None
    """Another level than the environment's, as strict or stricter. A weaker one takes an exception with its reason."""


@dataclass(frozen=True)
class Finding:
    """A part of a resource that violates a policy, or cannot be judged yet."""

    resource: ResourceView | None
    """None for the stack as a whole."""
    path: Path
    """Keys and indices down to the value."""
    text: str
    """Value given, and values allowed. It contains no text of the properties, which may be a secret."""
    unknown: bool = False
    """True where a preview does not know the value."""


def not_known(resource: ResourceView, path: Path) -> Finding:
    """Return the finding of a value that a preview does not know: the deployment judges it."""
    return Finding(resource, path, "not known in this preview", unknown=True)


MARK_AS_SECRET = object()
"""Value of an `Edit` that keeps the value, and marks it as secret."""


@dataclass(frozen=True)
class Edit:
    """A change of a resource's properties that cures a violation."""

    path: Path
    """Keys and indices down to the value."""
    value: object = field(repr=False)
    """Value that takes the place."""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Stack and run that policies judge."""

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
    """Exceptions that have excused nothing so far."""


@dataclass(frozen=True, kw_only=True)
class AnyPolicy:
    """A policy of either kind: its name, its texts for readers, its levels and its settings."""

    name: str
    """Name in exceptions, settings and messages: words with '-' between."""
    description: str
    """The rule, as a sentence."""
    violated_by: str
    """Examples of violations, for the table of all policies."""
    cure: str
    """Next step of whoever violates it, as sentences."""
    levels: Levels
    """Level in each environment."""
    severity: PolicySeverity
    """Damage by a violation."""
    tags: Sequence[str] = ()
    """Words by which reports group policies."""
    settings: type[PolicySettings] = PolicySettings
    """Model of the settings, with their defaults."""
    exceptable: bool = True
    """False where no exception in a stack's file counts."""


@dataclass(frozen=True, kw_only=True)
class ResourcePolicy(AnyPolicy):
    """A rule for each resource by itself, judged before the resource is touched."""

    check: Callable[[ResourceView, Circumstances, Any], Iterable[Finding]]
    """Yields what violates the rule. The last argument has the policy's settings."""
    remediate: Callable[[ResourceView, Circumstances, Any], Iterable[Edit]] | None = None
    """Yields the changes that cure a violation, at the level `remediate`. Only for changes that are safe everywhere."""
    needs_marks: bool = False
    """True where the rule is about marks of secrets (`ResourceView.secrets`)."""


@dataclass(frozen=True, kw_only=True)
class StackPolicy(AnyPolicy):
    """A rule for all resources together, judged when the program has ended."""

    check: Callable[[Sequence[ResourceView], Circumstances, Any], Iterable[Finding]]
    """Yields what violates the rule. The last argument has the policy's settings."""
    counts_exceptions: bool = False
    """True where the rule is about what all other policies have found: it runs last."""
