"""pydantic's errors in our words: what was given, what is allowed, what to do next. Never what may be a secret."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from pydantic_core import ErrorDetails

from soperator_pulumi.spec.validation.base import REFUSED, REFUSED_QUIETLY

_MAX_SHOWN = 64
_NEVER_SHOWN = {"ssh_keys", "secrets", "pull_secrets", "extra", "options", "annotations", "service_annotations"}
"""Fields in which people paste secrets by mistake, or that may hold some."""

_MOVED = {"storage.homes": "is gone: the homes are in the volume of the jail now. Move it to jail.storage."}
"""Keys that there were once, by their paths, and where they are now."""

_NEEDS = {
    "bool_type": "needs true or false.",
    "dict_type": "needs a mapping of keys to values.",
    "list_type": "needs a list.",
    "model_type": "needs a mapping of keys to values.",
    "string_type": "needs text.",
    "tuple_type": "needs a list.",
}


def problem_text(error: ErrorDetails, keys: Sequence[str] = ()) -> str:
    """Return the sentence for one error; `keys` are the allowed ones where an unknown key was given."""
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == REFUSED_QUIETLY:
        return str(context["text"])
    if kind == "missing":
        return "missing. It has no default: give it."
    if kind == "extra_forbidden":
        moved = _MOVED.get(".".join(str(part) for part in error["loc"]))
        if moved is not None:
            return moved
        return _unknown_key(str(error["loc"][-1]), keys)
    if _is_output(given):
        return "got an Output. This field decides what is created, so it needs a plain value."
    return f"got {shown(given, error['loc'])}, {_allowed(error)}"


def _allowed(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == REFUSED:
        return str(context["text"])
    if kind in {"enum", "literal_error"}:
        return f"needs {str(context['expected']).replace(chr(39), chr(34))}."
    hint = " Put it in quotes." if kind == "string_type" and isinstance(error["input"], (bool, int, float)) else ""
    return f"{_NEEDS.get(kind, error['msg'] + '.')}{hint}"


def shown(value: object, location: Sequence[int | str] = ()) -> str:
    """Return a value as a message may show it: short plain ones as they are, others by their kind."""
    if isinstance(value, (Mapping, list, tuple, type(None))):
        return "a mapping" if isinstance(value, Mapping) else "nothing" if value is None else "a list"
    if _NEVER_SHOWN.intersection(str(part) for part in location):
        return "a value that is not shown here"
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    return _shown_text(value) if isinstance(value, str) else f"an object of type {type(value).__name__}"


def _shown_text(text: str) -> str:
    has_credentials = "@" in text and "@sha256:" not in text  # as in user:password@registry
    if len(text) <= _MAX_SHOWN and text.isprintable() and not has_credentials:
        return f'"{text}"'
    return f"a text of {len(text)} characters"


def _is_output(value: object) -> bool:
    """Whether it is a pulumi.Output, told by its type's name: this module stands below the one that knows Pulumi."""
    return type(value).__name__ == "Output"


def meant_key(key: str, keys: Sequence[str]) -> str | None:
    """Return the one of `keys` that was probably meant."""
    near = get_close_matches(key.lower().replace("-", "_"), keys, n=1)
    return near[0] if near else None


def _unknown_key(key: str, keys: Sequence[str]) -> str:
    meant = meant_key(key, keys)
    if meant is not None:
        return f'unknown key. Did you mean "{meant}"?'
    return f"unknown key. Allowed: {', '.join(keys)}." if keys else "unknown key. Remove it."
