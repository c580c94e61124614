"""`Maybe[T]`: a value, or an Output that is known only after another resource exists.

A field that decides which resources exist, their names or the structure of a file is plain. A field that only flows
into a resource's inputs (an image, a storage class) may be a `pulumi.Output`, which is checked when it resolves.
"""

from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pulumi import Output, RunError
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.validation.messages import problem_text

T = TypeVar("T")

MAY_BE_OUTPUT = "x-may-be-output"
"""This package's keyword in JSON Schema."""


class InvalidOutputError(SpecError, RunError):
    """Invalid value of an Output in a spec. Pulumi prints it without a traceback."""


class _Deferred:
    """Check a plain value at once, and an Output's value when it is known, which may not be in a preview."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain, _ = get_args(source)
        adapter: TypeAdapter[Any] = TypeAdapter(plain)

        def validate(value: object, info: core_schema.ValidationInfo) -> object:
            if not isinstance(value, Output):
                return adapter.validate_python(value)
            field = info.field_name or "value"

            def when_known(resolved: object) -> object:
                try:
                    return adapter.validate_python(resolved)
                except ValidationError as error:
                    # The value may be a secret of another stack, which no check can see here.
                    problems = [Problem(field, problem_text(problem, show_given=False)) for problem in error.errors()]
                    raise InvalidOutputError("An Output in the spec", problems) from None

            return value.apply(when_known)

        return core_schema.with_info_plain_validator_function(validate, json_schema_input_schema=adapter.core_schema)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the plain value, and mark that it may be an Output."""
        return {**handler(schema), MAY_BE_OUTPUT: True}


Maybe: TypeAlias = Annotated[T | Output[T], _Deferred()]
"""A `T`, or a `pulumi.Output[T]`. Pass it on; never compare, format or branch on it."""
