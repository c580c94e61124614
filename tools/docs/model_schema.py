"""JSON schema of models for users: descriptions, defaults as written, no Python names."""

from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from soperator_pulumi.spec.types.addresses import Ports
from soperator_pulumi.spec.types.duration import duration_text
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tools.docs.annotations import one_line

DEFINITIONS = "#/definitions/"
"""Prefix of a reference to a definition."""

Definitions = dict[str, JsonSchemaValue]
"""Schemas of models and enumerations, by name."""


def describe(model: type[BaseModel], definitions: Definitions) -> JsonSchemaValue:
    """Add the schemas of a model and of its parts to the definitions, and return the reference to it."""
    described = model.model_json_schema(ref_template=f"{DEFINITIONS}{{model}}", schema_generator=_Generator)
    definitions |= {**described.pop("$defs", {}), model.__name__: described}
    return {"$ref": f"{DEFINITIONS}{model.__name__}"}


class _Generator(GenerateJsonSchema):
    """Schema generator that omits titles, as they repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - as pydantic has it
        """Omit titles, which repeat the names."""
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Add the descriptions of the fields."""
        described = super().model_schema(schema)
        described.pop("title", None)
        for name, meaning in field_descriptions(schema["cls"]).items():
            described["properties"][name]["description"] = one_line(meaning)
        return {**described, "description": one_line(schema["cls"].__doc__)}

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Omit the title."""
        described = super().enum_schema(schema)
        described.pop("title", None)
        return described

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Refuse keys that do not match the pattern of a mapping's keys."""
        described = super().dict_schema(schema)
        return {**described, "additionalProperties": False} if "patternProperties" in described else described

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Write defaults as a user would. A model's defaults are at its fields; none counts as no default."""
        described = self.generate_inner(schema["schema"])
        match schema.get("default"):
            case None | BaseModel():
                return described
            case timedelta() as duration:
                default: object = duration_text(duration)
            case Share() | Ports() as written:
                default = written.written()
            case tuple() as items:
                default = [item.written() if isinstance(item, Ports) else item for item in items]
            case plain:
                default = plain
        return {**described, "default": default}
