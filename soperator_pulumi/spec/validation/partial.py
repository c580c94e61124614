"""The readable part of a spec with problems, so that the rules between fields can run on it as well.

pydantic runs a model's own validators only if all fields are valid. To report all problems at once, the rules between
fields are pure functions over models in which every unreadable field is `UNKNOWN`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from soperator_pulumi.spec.validation.base import Model

M = TypeVar("M", bound=Model)


class _Unknown:
    """An unreadable value: false, empty, and with attributes and results of methods that are unreadable, too."""

    def __getattr__(self, name: str) -> "_Unknown":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_arguments: object) -> "_Unknown":
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


UNKNOWN = _Unknown()
"""Value of an unreadable field."""


def known(*values: object) -> bool:
    """Return True if all values were readable."""
    return not any(value is UNKNOWN for value in values)


def partial(model: type[M], data: object) -> M:
    """Return the readable part of `data` as a model, or `UNKNOWN`."""
    if isinstance(data, model):
        return data
    if not isinstance(data, Mapping):
        return cast("M", UNKNOWN)
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        values[name] = _read(model, name, data[name]) if name in data else _default(field, values)
    return model.model_construct(None, **values)


def _read(model: type[Model], name: str, value: object) -> object:
    annotation = model.model_fields[name].annotation
    nested = model_in(annotation)
    if nested is not None and get_origin(annotation) is tuple:
        return tuple(partial(nested, item) for item in value) if isinstance(value, (list, tuple)) else UNKNOWN
    if nested is not None and get_origin(annotation) is dict:
        return _read_mapping(nested, get_args(annotation)[0], value)
    if nested is not None and isinstance(value, (Mapping, nested)):
        return partial(nested, value)
    try:
        return _adapters(model)[name].validate_python(value)
    except ValidationError:
        return UNKNOWN


def _read_mapping(nested: type[Model], key_type: type[object], value: object) -> object:
    """Return the readable part of a mapping whose values are models: entries with a readable key."""
    if not isinstance(value, Mapping):
        return UNKNOWN
    keys: TypeAdapter[object] = TypeAdapter(key_type)
    found = {}
    for key, item in value.items():
        try:
            found[keys.validate_python(key)] = partial(nested, item)
        except ValidationError:
            continue
    return found


def _default(field: FieldInfo, values: dict[str, object]) -> object:
    if field.is_required():
        return UNKNOWN
    try:
        readable = {name: value for name, value in values.items() if known(value)}
        default = field.get_default(call_default_factory=True, validated_data=readable)
    except KeyError:
        return UNKNOWN  # derived from an unreadable field
    return cast("object", default)


def model_in(annotation: object) -> type[Model] | None:
    """Return the model in an annotation such as `Model | None`, `tuple[Model, ...]` or `dict[..., Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    if get_origin(annotation) is Annotated:
        return None
    found = [nested for argument in get_args(annotation) if (nested := model_in(argument)) is not None]
    return found[0] if found else None


@cache
def _adapters(model: type[Model]) -> dict[str, TypeAdapter[object]]:
    """Return a separate check for every field of a model, by name."""
    return {name: TypeAdapter(_annotation(field)) for name, field in model.model_fields.items()}


def _annotation(field: FieldInfo) -> type[object]:
    full = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return cast("type[object]", full)
