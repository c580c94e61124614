"""pydantic's errors in clear words: value given, values allowed, next step. A value that may be secret is not shown."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from pydantic_core import ErrorDetails

from soperator_pulumi.spec.validation.base import REFUSED, REFUSED_QUIETLY

_MAX_SHOWN = 64
_OF_CHARTS = ("values", "unchecked_values")
_NEVER_SHOWN = {
    "ssh_keys",
    "secrets",
    "pull_secrets",
    "extra",
    "options",
    "annotations",
    "service_annotations",
    *_OF_CHARTS,
}
"""Fields that may hold secrets, or into which users paste secrets by mistake."""

_HIDDEN = "a value that is not shown here"

_NEEDS = {
    "bool_type": "needs true or false.",
    "dict_type": "needs a mapping of keys to values.",
    "list_type": "needs a list.",
    "model_type": "needs a mapping of keys to values.",
    "string_type": "needs text.",
    "tuple_type": "needs a list.",
}


def problem_text(error: ErrorDetails, keys: Sequence[str] = (), *, show_given: bool = True) -> str:
    """Return the sentence that describes one error.

    Args:
        error: The error.
        keys: Allowed keys in place of an unknown one.
        show_given: False if the value given may be a secret.
    """
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == REFUSED_QUIETLY:
        return str(context["text"])
    if kind == "missing":
        return "missing. It has no default: give a value."
    if kind == "extra_forbidden":
        return _unknown_key(str(error["loc"][-1]), keys)
    if type(given).__name__ == "Output":  # by its name, as this module must not import Pulumi
        return "got an Output, needs a plain value, because it decides which resources exist. Give the value itself."
    return f"got {shown(given, error['loc']) if show_given else _HIDDEN}, {_allowed(error)}"


def _allowed(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == REFUSED:
        return str(context["text"])
    if kind in {"enum", "literal_error"}:
        return f"needs {str(context['expected']).replace(chr(39), chr(34))}."
    hint = " Put it in quotes." if kind == "string_type" and isinstance(error["input"], (bool, int, float)) else ""
    return f"{_NEEDS.get(kind, error['msg'] + '.')}{hint}"


def shown(value: object, location: Sequence[int | str] = ()) -> str:
    """Return how a message shows a value: a short plain value literally, any other by its kind."""
    if isinstance(value, (Mapping, list, tuple, type(None))):
        return "a mapping" if isinstance(value, Mapping) else "nothing" if value is None else "a list"
    if _NEVER_SHOWN.intersection(str(part) for part in location) and not isinstance(value, bool):
        return _HIDDEN
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    return _shown_text(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"


def _shown_text(text: str) -> str:
    has_credentials = "@" in text and "@sha256:" not in text  # as in user:password@registry
    if len(text) <= _MAX_SHOWN and text.isprintable() and not has_credentials:
        return f'"{text}"'
    return f"a text of {len(text)} characters"


def meant_key(key: str, keys: Sequence[str]) -> str | None:
    """Return the key that a misspelled one probably means."""
    near = get_close_matches(key.lower().replace("-", "_"), keys, n=1)
    return near[0] if near else None


def _unknown_key(key: str, keys: Sequence[str]) -> str:
    meant = meant_key(key, keys)
    if meant is not None:
        return f'unknown key. Did you mean "{meant}"?'
    return f"unknown key. Allowed: {', '.join(keys)}." if keys else "unknown key. Remove it."
