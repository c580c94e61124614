"""References to stacks that the local engine has deployed."""

from pathlib import Path

import pytest
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine import encryption
from tools.engine.local import other_stacks
from tools.engine.local.state import Resource, State, state_file
from tools.engine.protocol import STACK_TYPE, Target
from tools.engine.values import Properties, plain_map


@pytest.fixture
def target(tmp_path: Path) -> Target:
    target = Target(project=tmp_path, stack="cluster", state=tmp_path / "state")
    outputs = {"class": PropertyValue("fast"), "key": PropertyValue("hush").with_secret(True)}
    for project, stack in (("p", "storage"), ("platform", "prod")):
        deployed(target, project, stack, outputs)
    return target


def deployed(target: Target, project: str, stack: str, outputs: Properties) -> None:
    state = State.load(state_file(target, project, stack), encryption.passphrase(target.state))
    urn = f"urn:pulumi:{stack}::{project}::{STACK_TYPE}::{project}-{stack}"
    state.put(Resource(urn=urn, type=STACK_TYPE, custom=False, outputs=outputs))
    state.save()


@pytest.mark.parametrize("name", ["storage", "organization/p/storage", "organization/platform/prod"])
def test_a_stack_is_found_by_its_name_in_the_project_or_in_full(target: Target, name: str) -> None:
    properties = other_stacks.read(target, "p", name)

    assert plain_map(properties) == {
        "name": name,
        "outputs": {"class": "fast", "key": "hush"},
        "secretOutputNames": ["key"],
    }
    assert properties["outputs"].contains_secret()


def test_a_stack_that_is_not_there_is_answered_with_those_that_are(target: Target) -> None:
    with pytest.raises(UserError) as caught:
        other_stacks.read(target, "p", "prod")
    assert str(caught.value) == (
        "the local engine has deployed no stack 'prod'. It has: organization/p/storage, organization/platform/prod. "
        "Deploy that stack first."
    )
