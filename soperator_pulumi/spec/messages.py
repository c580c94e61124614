"""pydantic's errors in our words: what was given, what is allowed, what to do next. Never what may be a secret."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TypeGuard

from pydantic_core import ErrorDetails

from soperator_pulumi.spec.base import REFUSED, REFUSED_QUIETLY

_MAX_SHOWN = 64
_NEVER_SHOWN = {"ssh_keys", "secrets", "pull_secrets", "extra", "annotations", "service_annotations"}
"""Fields in which people paste secrets by mistake, or that may hold some."""


def problem_text(error: ErrorDetails, keys: Sequence[str] = ()) -> str:
    """Return the sentence for one error; `keys` are the allowed ones where an unknown key was given."""
    kind, given = error["type"], error["input"]
    got = f"got {shown(given, error['loc'])}"
    context = error.get("ctx", {})
    match kind:
        case _ if kind == REFUSED_QUIETLY:
            return str(context["text"])
        case _ if kind == REFUSED:
            return f"{got}, {context['text']}"
        case "missing":
            return "missing. It has no default: give it."
        case "extra_forbidden":
            return _unknown_key(str(error["loc"][-1]), keys)
        case "enum" | "literal_error":
            return f"{got}, needs {str(context['expected']).replace(chr(39), chr(34))}."
        case "bool_type" | "bool_parsing":
            return f"{got}, needs true or false."
        case "string_type":
            return f"{got}, needs text.{_quote_hint(given)}"
        case "tuple_type" | "list_type":
            return f"{got}, needs a list."
        case "dict_type" | "model_type" | "mapping_type" | "model_attributes_type":
            return f"{got}, needs a mapping of keys to values."
        case "too_short":
            return "empty, needs at least one entry."
        case _:
            return f"{got}: {error['msg']}."


def shown(value: object, location: Sequence[int | str] = ()) -> str:
    """Return a value as a message may show it: short plain ones as they are, others by their kind."""
    if _is_deferred(value):
        return "an Output"
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set)):
        return "a list"
    if _NEVER_SHOWN.intersection(str(part) for part in location):
        return "a value that is not shown here"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value}"
    if isinstance(value, str):
        if len(value) <= _MAX_SHOWN and value.isprintable():
            return f'"{value}"'
        return f"a text of {len(value)} characters"
    return f"an object of type {type(value).__name__}"


def _is_deferred(value: object) -> TypeGuard[object]:
    """Whether it is a pulumi.Output, told by its type's name: this module stands below the one that knows Pulumi."""
    return type(value).__name__ == "Output"


def _quote_hint(given: object) -> str:
    if isinstance(given, (bool, int, float)):
        return " Put it in quotes."
    return ""


def _unknown_key(key: str, keys: Sequence[str]) -> str:
    near = get_close_matches(key.lower().replace("-", "_"), keys, n=1)
    if near:
        return f'unknown key. Did you mean "{near[0]}"?'
    return f"unknown key. Allowed: {', '.join(keys)}." if keys else "unknown key. Remove it."
