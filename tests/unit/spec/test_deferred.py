"""Values that are known only later are checked as the plain ones are, when they are known."""

import asyncio
from typing import Annotated, Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.types.deferred import Maybe
from tests.strategies import IMAGES, a_cluster

Small = Annotated[int, Field(ge=0, le=9)]


class Example(BaseModel):
    value: Maybe[Small]


async def resolved(output: pulumi.Output[Any]) -> object:
    return await output.future()


def value_when_known(value: object, *, secret: bool = False) -> tuple[object, bool]:
    """Value that a model makes of an Output, and True if it is secret."""

    async def run() -> tuple[object, bool]:
        output: pulumi.Output[object] = pulumi.Output.from_input(value)
        field = Example.model_validate({"value": pulumi.Output.secret(output) if secret else output}).value
        assert isinstance(field, pulumi.Output)
        return await field.future(), await field.is_secret()

    return asyncio.run(run())


@given(st.integers() | st.text(max_size=3) | st.floats() | st.none())
def test_an_output_is_refused_exactly_when_its_plain_value_would_be(value: object) -> None:
    try:
        plain = Example.model_validate({"value": value}).value
    except ValidationError:
        with pytest.raises(SpecError, match="value: got"):
            value_when_known(value)
    else:
        assert value_when_known(value) == (plain, False)


def test_a_secret_stays_secret() -> None:
    assert value_when_known(3, secret=True) == (3, True)


def test_an_unknown_value_of_a_preview_is_not_checked() -> None:
    async def run() -> bool:
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        value: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        known.set_result(False)
        value.set_result(None)
        output = pulumi.Output(set(), value, known)
        field = Example.model_validate({"value": output}).value
        assert isinstance(field, pulumi.Output)
        return await field.is_known()

    assert asyncio.run(run()) is False


def test_fields_that_only_flow_on_take_outputs() -> None:
    async def run() -> object:
        output = pulumi.Output.from_input("registry.example/worker:2")
        spec = parse_cluster(a_cluster(images={**IMAGES, "worker": output}))
        assert isinstance(spec.images.worker, pulumi.Output)
        return await spec.images.worker.future()

    assert asyncio.run(run()) == "registry.example/worker:2"


def test_the_error_of_a_late_value_names_its_field() -> None:
    async def run() -> object:
        output = pulumi.Output.from_input("not an image")
        spec = parse_cluster(a_cluster(images={**IMAGES, "worker": output}))
        assert isinstance(spec.images.worker, pulumi.Output)
        return await spec.images.worker.future()

    with pytest.raises(SpecError, match="worker: got a value that is not shown here, needs an image reference"):
        asyncio.run(run())
