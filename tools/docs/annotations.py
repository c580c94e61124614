"""Helpers for all generators: types in annotations, docstrings on one line."""

import typing
from collections.abc import Iterator

from pydantic import BaseModel


def types_in(annotation: object) -> Iterator[object]:
    """Yield the types in an annotation."""
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from types_in(argument)


def models_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models that the fields of a model name, in the order of the fields."""
    for field in model.model_fields.values():
        for part in types_in(field.annotation):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield part


def one_line(text: str | None) -> str:
    """Return a docstring on one line."""
    return " ".join((text or "").split())
