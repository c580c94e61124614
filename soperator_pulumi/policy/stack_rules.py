"""Configuration of the policies in a stack's file, `soperator:policy`: environment, exceptions and settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.policy.definition import AnyPolicy, PolicySettings
from soperator_pulumi.policy.levels import Environment, PolicyLevel
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.base import Model, refused
from soperator_pulumi.spec.validation.messages import shown
from soperator_pulumi.spec.validation.parse import parse
from soperator_pulumi.wording import did_you_mean

KEY = "soperator:policy"

M = TypeVar("M", bound=Model)


def _reason(text: str) -> str:
    if not text.strip():
        raise refused("needs a reason, for the next reader of the stack.")
    return text.strip()


Reason = Annotated[str, AfterValidator(_reason)]
"""A reason in words, not empty."""


class ExceptionSpec(Model):
    """An exception to a policy, under `exceptions.<policy>`."""

    reason: Reason
    """Reason for the exception, for the next reader of the stack."""
    resources: Annotated[tuple[str, ...], Field(min_length=1)] = ()
    """Resources in the program, as `Kind/name` or URN; `*` stands for any text, and a name alone matches any kind.
    Default: all resources."""


class PolicySpec(Model):
    """Policies of a stack: `soperator:policy`."""

    environment: Environment | None = None
    """Environment that decides the levels of policies. Default: the stack's name if it is one of the four, else
    prod."""
    exceptions: dict[str, ExceptionSpec] = Field(default_factory=dict)
    """Exceptions by policy name, with their reasons."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings by policy name. The page on policies lists them."""


@dataclass(frozen=True)
class StackRules:
    """Environment, exceptions and settings of a stack. Invalid parts count as not given."""

    environment: Environment
    exceptions: Mapping[str, ExceptionSpec] = field(default_factory=dict)
    settings: Mapping[str, PolicySettings] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def level(self, policy: AnyPolicy) -> PolicyLevel:
        """Return the level of a policy in this stack."""
        own = self.settings_of(policy).level
        return policy.levels.in_(self.environment) if own is None else own

    def settings_of(self, policy: AnyPolicy) -> PolicySettings:
        """Return the settings of a policy in this stack."""
        return self.settings.get(policy.name, policy.settings())

    def excuse(self, policy: AnyPolicy, resource: ResourceView | None) -> tuple[str, str] | None:
        """Return the exception that excuses a resource, or the stack, and its reason; None if there is none.

        An exception is identified by its policy's name, with `resources` also by the matching pattern:
        `names.resources[0]`.
        """
        exception = self.exceptions.get(policy.name)
        if exception is None:
            return None
        if not exception.resources:
            return policy.name, exception.reason
        matching = (
            index for index, pattern in enumerate(exception.resources) if resource and _is_of(pattern, resource)
        )
        index = next(matching, None)
        return None if index is None else (_of_pattern(policy.name, index), exception.reason)

    def all_exceptions(self) -> list[str]:
        """Return all exceptions, identified as by `excuse`."""
        return [
            written
            for name, exception in self.exceptions.items()
            for written in [_of_pattern(name, index) for index in range(len(exception.resources))] or [name]
        ]


def _is_of(pattern: str, resource: ResourceView) -> bool:
    """Return True if a pattern matches a resource's name, its kind and name, or its URN."""
    names = [resource.name]
    if "/" in pattern:
        names.append(f"{resource.last_word}/{resource.name}")
    if pattern.startswith("urn:"):
        names.append(resource.urn)
    first, *others = map(re.escape, pattern.split("*"))
    # The first match of a part is as good as any later one, so there is no backtracking: linear time for every part.
    expression = (
        first + "".join(f"(?>.*?{other})" for other in others[:-1]) + "".join(f".*{other}" for other in others[-1:])
    )
    return any(re.fullmatch(expression, name, re.DOTALL) for name in names)


def stack_rules(data: object, stack: str, policies: Sequence[AnyPolicy]) -> StackRules:
    """Return the rules of a stack.

    Args:
        data: `soperator:policy` of the stack's configuration; None if it has none.
        stack: Name of the stack.
        policies: All policies that exist.
    """
    known = {policy.name: policy for policy in policies}
    problems: list[Problem] = []
    given = {} if data is None else data
    if not isinstance(given, Mapping):
        problems.append(Problem("", f"got {shown(given)}, needs a mapping with environment, exceptions and settings."))
        given = {}
    top = {key: value for key, value in given.items() if key not in {"exceptions", "settings"}}
    spec = _parsed(PolicySpec, top, "", problems) or PolicySpec()
    default = Environment(stack) if stack in {*Environment} else Environment.PROD
    environment = spec.environment or default
    if stack in {*Environment} and environment.strictness < default.strictness:
        problems.append(
            Problem(
                "environment", f'got "{environment}" in the stack "{stack}". Give "{default}", or rename the stack.'
            )
        )
        environment = default
    exceptions = dict(_exceptions(given.get("exceptions"), known, problems))
    settings = dict(_settings(given.get("settings"), known, environment, problems))
    return StackRules(environment, exceptions, settings, tuple(map(str, problems)))


def _exceptions(
    data: object, known: Mapping[str, AnyPolicy], problems: list[Problem]
) -> Iterator[tuple[str, ExceptionSpec]]:
    for name, value in _entries(data, "exceptions", known, problems):
        if not known[name].exceptable:
            problems.append(Problem(f"exceptions.{name}", f"has no effect: {known[name].cure} Remove this exception."))
        elif (exception := _parsed(ExceptionSpec, value, f"exceptions.{name}", problems)) is not None:
            yield name, exception


def _settings(
    data: object, known: Mapping[str, AnyPolicy], environment: Environment, problems: list[Problem]
) -> Iterator[tuple[str, PolicySettings]]:
    for name, value in _entries(data, "settings", known, problems):
        policy, path = known[name], f"settings.{name}"
        settings = _parsed(policy.settings, value, path, problems)
        if settings is None:
            continue
        least = policy.levels.in_(environment)
        if settings.level is not None and settings.level.strictness < least.strictness:
            weaker = f'got "{settings.level}", but the policy is {least} in {environment}. Give an exception with a'
            problems.append(Problem(f"{path}.level", f"{weaker} reason instead: exceptions.{name}."))
            settings = settings.model_copy(update={"level": None})
        yield name, settings


def _entries(
    data: object, path: str, known: Mapping[str, AnyPolicy], problems: list[Problem]
) -> Iterator[tuple[str, object]]:
    """Yield the entries whose key is a policy's name, and add the others to the problems."""
    if data is not None and not isinstance(data, Mapping):
        problems.append(Problem(path, f"got {shown(data)}, needs a mapping by policy name."))
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if name in known:
            yield name, value
            continue
        hint = did_you_mean(str(name), known, "The page on policies lists all names.")
        problems.append(Problem(f"{path}.{name}", f"there is no such policy. {hint}"))


def _parsed(model: type[M], value: object, path: str, problems: list[Problem]) -> M | None:
    try:
        return parse(model, value, KEY, "this part", lambda _: iter(()))
    except SpecError as error:
        below = (f"{path}.{problem.path}".strip(".") for problem in error.problems)
        problems += [Problem(at, problem.text) for at, problem in zip(below, error.problems, strict=True)]
        return None


def _of_pattern(policy: str, index: int) -> str:
    return f"{policy}.resources[{index}]"
