"""The public helpers for tests."""

import asyncio

import pulumi
import pulumi_random as random
import pytest

from soperator_pulumi.testing import Secret, deploy
from tests.fakes.shuffled_loop import shuffle_registrations


def test_resources_exports_and_options_are_recorded() -> None:
    def program() -> None:
        parent = pulumi.ComponentResource("test:index:Parent", "parent", {})
        options = pulumi.ResourceOptions(parent=parent, protect=True)
        child = random.RandomBytes("child", length=4, opts=options)
        pulumi.export("length", child.length)
        pulumi.export("secret", pulumi.Output.secret("x"))

    deployment = deploy(program)
    assert [resource.name for resource in deployment.resources()] == ["parent", "child"]
    assert deployment.one("child").parent == "parent"
    assert deployment.one("parent").parent == ""
    assert deployment.one("child", "RandomBytes").inputs == {"length": 4}
    assert deployment.request("child").protect
    assert deployment.exports == {"length": 4, "secret": Secret("x")}


@pytest.mark.parametrize("seed", range(3))
def test_resources_are_recorded_as_the_program_creates_them_in_whatever_order_pulumi_registers_them(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    shuffle_registrations(monkeypatch, seed)
    names = [f"{number}" for number in range(12)]

    def program() -> None:
        for name in names:
            random.RandomBytes(name, length=4)

    assert [resource.name for resource in deploy(program).recorded] == names


def test_what_a_resource_waits_for_is_found_also_through_others() -> None:
    def program() -> None:
        first = random.RandomBytes("first", length=4)
        parent = pulumi.ComponentResource("test:index:Parent", "parent", {})
        middle = pulumi.ResourceOptions(parent=parent, depends_on=[first])
        random.RandomBytes("middle", length=4, opts=middle)
        random.RandomBytes("last", length=4, opts=pulumi.ResourceOptions(depends_on=[parent]))

    deployment = deploy(program)
    assert [awaited.name for awaited in deployment.waits_for(deployment.one("last"))] == ["first", "middle"]
    assert deployment.waits_for(deployment.one("first")) == ()


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    deployment = deploy(lambda: random.RandomBytes("one", length=4))
    with pytest.raises(LookupError, match=r"0 resources are named 'two'\. There are: one\."):
        deployment.one("two")


def test_what_the_program_raises_is_raised() -> None:
    def program() -> None:
        raise pulumi.RunError("no")

    with pytest.raises(pulumi.RunError, match="no"):
        deploy(program)


def test_configuration_and_preview_reach_the_program_and_are_gone_afterwards() -> None:
    seen: list[object] = []

    def program() -> None:
        seen.extend([pulumi.Config("app").get("size"), pulumi.runtime.is_dry_run()])

    deploy(program, config={"app:size": "9"}, preview=True)
    deploy(program)
    assert seen == ["9", True, None, False]


def test_other_stacks_have_the_outputs_that_a_test_gives_them_secrets_as_secrets() -> None:
    def program() -> None:
        storage = pulumi.StackReference("acme/storage/prod")
        for name in ("class", "key"):
            pulumi.export(name, storage.get_output(name))

    deployment = deploy(program, stacks={"acme/storage/prod": {"class": "fast", "key": Secret("x")}})

    assert deployment.exports == {"class": "fast", "key": Secret("x")}
    assert deployment.recorded == (), "a stack that is read is none of the program's resources"


def test_a_stack_without_given_outputs_is_named_with_those_that_have_some() -> None:
    with pytest.raises(LookupError, match=r"no outputs are given for the stack 'a/b/c'\. Given to `stacks`: a/b/d\."):
        deploy(lambda: pulumi.StackReference("a/b/c"), stacks={"a/b/d": {}})


def test_a_secret_does_not_show_in_what_is_printed() -> None:
    assert "hunter2" not in repr(Secret("hunter2"))


def test_outputs_that_were_made_outside_of_a_deployment_do_not_matter_to_it() -> None:
    async def elsewhere() -> pulumi.Output[str]:
        return pulumi.Output.from_input("x").apply(str.upper)

    outside = asyncio.run(elsewhere())
    deployment = deploy(lambda: pulumi.export("inside", pulumi.Output.from_input("y").apply(str.upper)))
    assert deployment.exports == {"inside": "Y"}
    assert outside is not None
