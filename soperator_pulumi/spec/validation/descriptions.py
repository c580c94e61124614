"""Texts below the fields of a model, for pages and schemas."""

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field of a model and of its parents, by the field's name.

    pydantic reads sources as well (`use_attribute_docstrings`), but in every program that deploys a cluster, at a third
    of the models' import time.
    """
    parents = [each for each in reversed(model.__mro__) if issubclass(each, BaseModel) and each is not BaseModel]
    return {name: text for each in parents for name, text in _own(each).items()}


def _own(model: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - the source of a class
    found: dict[str, str] = {}
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
