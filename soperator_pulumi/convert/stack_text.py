"""Text of a stack file, with comments about changed values and those that the user has to add."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel

from soperator_pulumi.convert.conversion import Conversion, Placed
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.validation.partial import model_in

_WIDTH = 118
_INDENT = "  "
_OWN_DEFAULTS = "soperator:defaults: {} # the whole cluster is here: nothing comes from the project's defaults"


def stack_text(work: Conversion, title: str) -> str:
    """Return the stack file of a conversion."""
    count = len(work.additions())
    head = [f"A cluster from {title}, written by `soperator convert`."]
    if count:
        head.append(f"{count} values are yours to give: each has a comment that begins with ADD.")
    head += work.remarks
    lines = [*_comment(" ".join(head), ""), "config:", f"{_INDENT}{_OWN_DEFAULTS}", f"{_INDENT}soperator:cluster:"]
    for addition in work.to_correct:
        lines += _comment(f"CORRECT {addition.path}: {addition.text}", _INDENT * 2)
    lines += _mapping(work.stack, ClusterSpec, _INDENT * 2)
    return "\n".join(lines) + "\n"


def _mapping(tree: Mapping[str, Any], model: type[BaseModel] | None, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping: the name first, then the other keys in the order of the spec."""
    fields = [*model.model_fields] if model is not None else []
    for key in sorted(tree, key=lambda key: (key != "name", fields.index(key) if key in fields else len(fields))):
        value = tree[key]
        field = model.model_fields.get(key) if model is not None else None
        below = model_in(field.annotation) if field is not None else None
        yield from _comments(value, indent)
        yield from _entry(f"{indent}{_scalar(key)}:", value, below, indent)


def _entry(start: str, value: Any, model: type[BaseModel] | None, indent: str) -> Iterator[str]:  # noqa: ANN401
    plain = value.value if isinstance(value, Placed) else value
    if isinstance(plain, Mapping) and plain:
        yield start
        yield from _mapping(plain, model, indent + _INDENT)
    elif isinstance(plain, Sequence) and not isinstance(plain, str) and plain:
        yield start
        yield from _sequence(plain, model, indent + _INDENT)
    else:
        yield f"{start} {_scalar(plain)}"


def _sequence(items: Sequence[Any], model: type[BaseModel] | None, indent: str) -> Iterator[str]:
    for item in items:
        plain = item.value if isinstance(item, Placed) else item
        yield from _comments(item, indent)
        if isinstance(plain, Mapping) and plain:
            lines = [*_mapping(plain, model, indent + _INDENT)]
            first = next(index for index, line in enumerate(lines) if not line.lstrip().startswith("#"))
            yield from (line.removeprefix(_INDENT) for line in lines[:first])
            yield f"{indent}- {lines[first].lstrip()}"
            yield from lines[first + 1 :]
        else:
            yield f"{indent}- {_scalar(plain)}"


def _comments(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Placed) and value.to_add:
        yield from _comment(f"ADD {value.to_add}", indent)
    elif isinstance(value, Placed) and value.how:
        yield from _comment(value.how, indent)


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _scalar(value: object) -> str:
    """Return a value as a single line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return str(text).removesuffix("\n").removesuffix("\n...")
