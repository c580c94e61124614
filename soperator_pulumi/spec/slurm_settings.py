"""Settings of slurm.conf in a spec, with names and values checked against Slurm's own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.slurm_parameters import (
    FORBIDDEN_ENTRIES,
    OWNED_PARAMETERS,
    OWNED_PARTITION_OPTIONS,
    PARAMETERS,
    PARTITION_OPTIONS,
    SMALLEST_ENTRIES,
    Kind,
)
from soperator_pulumi.spec.validation.base import refused_parts, refused_quietly

_SHAPES = {
    Kind.NUMBER: re.compile(r"\d{1,19}|UNLIMITED|INFINITE", re.IGNORECASE),
    Kind.BOOLEAN: re.compile(r"YES|NO|TRUE|FALSE|UP|DOWN|0|1", re.IGNORECASE),
    Kind.TIME: re.compile(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}|UNLIMITED|INFINITE", re.IGNORECASE),
    Kind.TEXT: re.compile(r".*"),
}
_UNSAFE = {"#": "starts a comment", '"': "cannot be quoted", "\\": "is an escape, or continues the line"}
_MAX_VALUE = 4096


def _as_text(value: object) -> object:
    """Return a setting as text: numbers and booleans in Slurm's form."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return value


def settings_problems(
    settings: Mapping[str, object], table: Mapping[str, Kind], owned: Mapping[str, str]
) -> list[Problem]:
    """Return the problems of settings, with the keys as paths, but never the values: one may be a password."""
    spelling = {name.lower(): name for name in table}
    seen: dict[str, str] = {}
    found = []
    for key, value in settings.items():
        name = key.lower()
        if name in owned:
            found.append(Problem(key, f"{owned[name]}. Remove it."))
        elif name not in spelling:
            near = get_close_matches(name, spelling, n=1, cutoff=0.75)
            hint = f'Did you mean "{spelling[near[0]]}"?' if near else "See slurm.conf(5) for its settings."
            found.append(Problem(key, f"Slurm has no such setting. {hint}"))
        elif name in seen:
            found.append(Problem(key, f'is the same setting as "{seen[name]}": Slurm ignores case. Remove one.'))
        else:
            text = _value_problem(_as_text(value), table[spelling[name]]) or _entry_problem(name, value)
            found.extend([Problem(key, text)] if text else [])
        seen.setdefault(name, key)
    return found


def _value_problem(value: object, kind: Kind) -> str | None:
    if not isinstance(value, str):
        return "needs text or a number."
    if not value.strip():
        return "empty. Give a value, or remove the key for Slurm's default."
    if not value.isprintable() or len(value) > _MAX_VALUE:
        return f"needs one line of at most {_MAX_VALUE} printable characters."
    unsafe = [f"{character} {reason}" for character, reason in _UNSAFE.items() if character in value]
    if unsafe:
        return f"has a character that slurm.conf cannot hold in a value: {', '.join(unsafe)}. Remove it."
    return None if _SHAPES[kind].fullmatch(value) else f"needs {kind.value}."


def _entry_problem(name: str, value: object) -> str | None:
    """Return the problem of an entry in a comma-separated list; None if there is none."""
    forbidden, smallest = FORBIDDEN_ENTRIES.get(name, {}), SMALLEST_ENTRIES.get(name, {})
    for entry in str(value).split(","):
        word, _, given = (part.strip() for part in entry.lower().partition("="))
        if word in forbidden:
            return f"has the entry {word}, which {forbidden[word]}. Remove that entry."
        if word in smallest:
            least, reason = smallest[word]
            if not re.fullmatch(r"[0-9]{1,9}", given) or int(given) < least:
                return f"has the entry {word}, which needs a whole number of at least {least}: {reason}."
    return None


@dataclass(frozen=True)
class _Settings:
    """Annotation for a mapping of settings, whose names are in a table, in any case."""

    table: Mapping[str, Kind]
    owned: Mapping[str, str]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check before pydantic, which would not accept numbers and booleans."""
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the settings in Slurm's spelling. Other spellings differ only in case."""
        value = {"type": ["string", "number", "boolean"]}
        shapes = {kind: value | _shape(kind) for kind in Kind}
        names = {name: shapes[kind] for name, kind in self.table.items() if name.lower() not in self.owned}
        return {"type": "object", "properties": names, "additionalProperties": value}

    def _check(self, value: object) -> dict[str, str]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise refused_quietly("needs a mapping of names to values.")
        found = settings_problems(value, self.table, self.owned)
        if found:
            raise refused_parts(found)
        spelling = {name.lower(): name for name in self.table}
        return {spelling[key.lower()]: str(_as_text(setting)) for key, setting in value.items()}


def _shape(kind: Kind) -> dict[str, str]:
    """Return the schema for text of a kind. JSON Schema has no case-insensitive patterns."""
    in_any_case = re.sub(r"[A-Z]", lambda letter: f"[{letter[0]}{letter[0].lower()}]", _SHAPES[kind].pattern)
    return {"description": f"{kind.value}."} | ({} if kind is Kind.TEXT else {"pattern": f"^(?:{in_any_case})$"})


SlurmConfExtra = Annotated[dict[str, str], _Settings(PARAMETERS, OWNED_PARAMETERS)]
"""Parameters of slurm.conf, in Slurm's spelling. Accepts numbers and booleans as well."""

PartitionOptions = Annotated[dict[str, str], _Settings(PARTITION_OPTIONS, OWNED_PARTITION_OPTIONS)]
"""Options of a partition line, in Slurm's spelling. Accepts numbers and booleans as well."""
