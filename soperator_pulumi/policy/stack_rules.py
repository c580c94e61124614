"""Configuration of the policies in a stack's file, `soperator:policy`: environment, exceptions and settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.policy.definition import AnyPolicy, PolicySettings
from soperator_pulumi.policy.levels import Environment, PolicyLevel
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.spec.validation.base import Model, refused
from soperator_pulumi.spec.validation.messages import shown
from soperator_pulumi.spec.validation.parse import parse

KEY = "soperator:policy"

M = TypeVar("M", bound=Model)


def _reason(text: str) -> str:
    if not text.strip():
        raise refused("needs the reason, for whoever reads the stack next.")
    return text.strip()


Reason = Annotated[str, AfterValidator(_reason)]
"""A reason in words."""


class ExceptionSpec(Model):
    """An exception from a policy, under `exceptions.<policy>`."""

    reason: Reason
    """Reason of the exception, for whoever reads the stack next."""
    resources: Annotated[tuple[str, ...], Field(min_length=1)] = ()
    """Resources in the program, by `Kind/name` or by URN, `*` standing for any text; a name alone is any kind's.
    Default: all resources."""


class PolicySpec(Model):
    """Policies of a stack: `soperator:policy`."""

    environment: Environment | None = None
    """Environment that decides the level of each policy. Default: the stack's name if it is one of the four, else
    prod."""
    exceptions: dict[str, ExceptionSpec] = Field(default_factory=dict)
    """Exceptions by the policies' names, each with its reason."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings by the policies' names. The page on policies lists them."""


@dataclass(frozen=True)
class StackRules:
    """Environment, exceptions and settings, as far as they are valid. What is not valid counts as not given."""

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
        """Return the exception that holds for a resource, or for the stack, and its reason; None without one.

        An exception is a policy's name, and with `resources` the pattern that matches: `names.resources[0]`.
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
        """Return all exceptions, in the form of `excuse`."""
        return [
            written
            for name, exception in self.exceptions.items()
            for written in [_of_pattern(name, index) for index in range(len(exception.resources))] or [name]
        ]


def _is_of(pattern: str, resource: ResourceView) -> bool:
    """Return True for a pattern of a resource's name, of its kind and name, or of its URN."""
    names = [resource.name]
    if "/" in pattern:
        names.append(f"{resource.last_word}/{resource.name}")
    if pattern.startswith("urn:"):
        names.append(resource.urn)
    first, *others = map(re.escape, pattern.split("*"))
    # The first place of a part is as good as any later one: no way back, so linear for each part.
    expression = (
        first + "".join(f"(?>.*?{each})" for each in others[:-1]) + "".join(f".*{each}" for each in others[-1:])
    )
    return any(re.fullmatch(expression, each, re.DOTALL) for each in names)


def stack_rules(data: object, stack: str, policies: Sequence[AnyPolicy]) -> StackRules:
    """Return the rules of a stack.

    Args:
        data: `soperator:policy` of the stack's configuration; None where it has none.
        stack: Name of the stack.
        policies: All policies that there are.
    """
    known = {policy.name: policy for policy in policies}
    problems: list[Problem] = []
    given = {} if data is None else data
    if not isinstance(given, Mapping):
        problems.append(Problem("", f"got {shown(given)}, needs a mapping of environment, exceptions and settings."))
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
            problems.append(Problem(f"exceptions.{name}", f"has no effect: {known[name].cure} Remove the exception."))
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
            weaker = f'got "{settings.level}", but the policy is {least} in {environment}. Give an exception with its'
            problems.append(Problem(f"{path}.level", f"{weaker} reason instead: exceptions.{name}."))
            settings = settings.model_copy(update={"level": None})
        yield name, settings


def _entries(
    data: object, path: str, known: Mapping[str, AnyPolicy], problems: list[Problem]
) -> Iterator[tuple[str, object]]:
    """Yield the entries under the names of policies, and note the others as problems."""
    if data is not None and not isinstance(data, Mapping):
        problems.append(Problem(path, f"got {shown(data)}, needs a mapping of policies' names."))
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if name in known:
            yield name, value
            continue
        near = get_close_matches(str(name), known, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else "The page on policies lists all names."
        problems.append(Problem(f"{path}.{name}", f"there is no such policy. {hint}"))


def _parsed(model: type[M], value: object, path: str, problems: list[Problem]) -> M | None:
    try:
        return parse(model, value, KEY, "this part", lambda _: iter(()))
    except SpecError as error:
        below = (f"{path}.{each.path}".strip(".") for each in error.problems)
        problems += [Problem(at, each.text) for at, each in zip(below, error.problems, strict=True)]
        return None


def _of_pattern(policy: str, index: int) -> str:
    return f"{policy}.resources[{index}]"
