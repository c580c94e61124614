"""Texts below the fields of a model and the members of an enumeration, for pages and schemas."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise

from pydantic import BaseModel


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the texts below the fields of a model and of its parents, by the name of the field.

    pydantic can read sources as well (`use_attribute_docstrings`), but would do so in every program that deploys a
    cluster, which takes a third of the models' import time.
    """
    parents = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel) and base is not BaseModel]
    return {name: text for parent in parents for name, text in _own(parent).items() if name in model.model_fields}


def member_descriptions(enumeration: type[Enum]) -> dict[str, str]:
    """Return the texts below the members of an enumeration, by the name of the member, on one line."""
    found = {}
    for member, text in _with_texts(enumeration):
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
            found[member.targets[0].id] = " ".join(text.split())
    return found


def _own(model: type[BaseModel]) -> dict[str, str]:
    return {
        field.target.id: inspect.cleandoc(text)
        for field, text in _with_texts(model)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _with_texts(of: type) -> Iterator[tuple[ast.stmt, str]]:
    """Yield statements of a class with the texts below them."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - the source of a class
    for statement, below in pairwise(definition.body):
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield statement, text
