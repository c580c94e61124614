"""Parsing of a user's description to a checked spec, or to one error with all problems."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.validation.base import BROKEN_RULES, REFUSED_PARTS, Model
from soperator_pulumi.spec.validation.messages import meant_key, problem_text, shown
from soperator_pulumi.spec.validation.partial import model_in, partial

M = TypeVar("M", bound=Model)

_MAX_KEY = 64


def parse(model: type[M], data: object, where: str, what: str, rules: Callable[[M], Iterator[Problem]]) -> M:
    """Return the model of a description.

    Args:
        model: The model.
        data: A mapping as in a stack's configuration, with Outputs for fields that accept them; or a checked model.
        where: Origin of the data in the error: a configuration key, or a component.
        what: Name of the described thing in the error.
        rules: Yields problems between the fields of a model, some of which may be unknown.

    Raises:
        SpecError: The description has problems; all of them at once.
    """
    if isinstance(data, model):
        return data
    if not isinstance(data, Mapping):
        raise SpecError(where, [Problem("", f"got {shown(data)}, needs a mapping that describes {what}.")])
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = [*_field_problems(model, error), *rules(partial(model, data))]
        raise SpecError(where, sorted(dict.fromkeys(found), key=_order)) from None


def _field_problems(model: type[Model], error: ValidationError) -> Iterator[Problem]:
    errors = error.errors(include_url=False)
    misspelled = {
        (*error["loc"][:-1], meant_key(str(error["loc"][-1]), _allowed_keys(model, error)))
        for error in errors
        if error["type"] == "extra_forbidden"
    }
    for detail in errors:
        if detail["type"] == "default_factory_not_called" or (
            detail["type"] == "missing" and detail["loc"] in misspelled
        ):
            continue  # a consequence of another problem
        if detail["type"] == BROKEN_RULES:
            continue  # the rules between fields run again, on all readable fields
        path = _path(detail["loc"])
        if detail["type"] == REFUSED_PARTS:
            for problem in detail["ctx"]["problems"]:
                yield Problem(f"{path}.{_key(problem.path)}", problem.text)
        else:
            yield Problem(path, problem_text(detail, _allowed_keys(model, detail)))


def _path(location: tuple[int | str, ...]) -> str:
    """Return the path of a location: `node_sets[1].name`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in location if part != "[key]"]
    return "".join(parts).removeprefix(".")


def _key(key: str) -> str:
    return key if len(key) <= _MAX_KEY and key.isprintable() else f"<a key of {len(key)} characters>"


def _allowed_keys(model: type[Model], error: ErrorDetails) -> tuple[str, ...]:
    """Return the allowed keys at the location of an error in `model`."""
    at: type[Model] | None = model
    of_user = False  # a key of a mapping is the user's own
    for part in error["loc"][:-1]:
        if at is None:
            return ()
        if isinstance(part, str) and not of_user:
            field = at.model_fields.get(part)
            at = None if field is None else model_in(field.annotation)
            of_user = field is not None and get_origin(field.annotation) is dict
        else:
            of_user = False
    return tuple(at.model_fields) if at is not None else ()


def _order(problem: Problem) -> list[tuple[int, str]]:
    """Return the sort key of a path, with numbers compared by value: node_sets[2] comes before node_sets[10]."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", problem.path)]
