"""`soperator:policy` of a stack: what it may have, and what counts where it is wrong."""

from typing import Any

import pytest

from soperator_pulumi.policy import POLICIES, Environment, PolicyLevel
from soperator_pulumi.policy.sizes import SCALE_DOWN
from soperator_pulumi.policy.stack_rules import StackRules, stack_rules

BY_NAME = {policy.name: policy for policy in POLICIES}


def rules(stack: str = "prod", **data: Any) -> StackRules:
    return stack_rules(data, stack, POLICIES)


@pytest.mark.parametrize(
    ("stack", "environment"), [*((each, each) for each in Environment), ("acme-dev", "prod"), ("", "prod")]
)
def test_the_environment_is_the_stack_s_name_or_the_strictest(stack: str, environment: str) -> None:
    assert stack_rules(None, stack, POLICIES) == StackRules(Environment(environment))


def test_the_file_names_another_environment() -> None:
    assert rules("acme", environment="staging").environment is Environment.STAGING


def test_a_stack_with_the_name_of_an_environment_has_no_weaker_one() -> None:
    found = rules("prod", environment="local")
    assert found.environment is Environment.PROD
    assert [*found.problems] == ['environment: got "local" in the stack "prod". Give "prod", or rename the stack.']


@pytest.mark.parametrize(
    ("policy", "field"),
    [("pinned-images", "moving_tags"), ("network-policies", "directions"), ("gpu-quota", "resources")],
)
def test_no_setting_leaves_a_policy_without_a_rule(policy: str, field: str) -> None:
    (problem,) = rules(settings={policy: {field: []}}).problems
    assert problem.startswith(f"settings.{policy}.{field}: got a list, ")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"environment": "test"}, 'environment: got "test", needs "local", "dev", "staging" or "prod".'),
        ({"exeptions": {}}, 'exeptions: unknown key. Did you mean "exceptions"?'),
        ({"exceptions": []}, "exceptions: got a list, needs a mapping of policies' names."),
        ({"exceptions": {"naems": {}}}, 'exceptions.naems: there is no such policy. Did you mean "names"?'),
        ({"exceptions": {"unlike": {}}}, "exceptions.unlike: there is no such policy. The page on policies"),
        ({"exceptions": {"names": {}}}, "exceptions.names.reason: missing. It has no default: give it."),
        ({"exceptions": {"names": None}}, "exceptions.names: got nothing, needs a mapping that describes this part."),
        ({"exceptions": {"names": {"reason": "  "}}}, "exceptions.names.reason: got"),
        ({"exceptions": {"names": {"reason": "x", "resources": "a"}}}, "exceptions.names.resources: got"),
        ({"settings": {"scale-down": {"at_most": "lots"}}}, 'settings.scale-down.at_most: got "lots", needs a whole'),
        ({"settings": {"scale-down": {"most": 1}}}, "settings.scale-down.most: unknown key."),
        ({"settings": {"names": {"level": "advisory"}}}, 'settings.names.level: got "advisory", but the policy is '),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_the_next_step(data: dict[str, Any], problem: str) -> None:
    (found,) = rules(**data).problems
    assert found.startswith(problem)


def test_a_stack_s_key_that_is_no_mapping_is_named() -> None:
    assert stack_rules("prod", "dev", POLICIES).problems == (
        'got "prod", needs a mapping of environment, exceptions and settings.',
    )


def test_all_mistakes_are_found_at_once_and_what_is_right_counts() -> None:
    right = {"reason": "INC-4711"}
    found = rules(
        environment="everywhere",
        exceptions={"names": right, "labels": {"reason": ""}, "nmaes": right},
        settings={"scale-down": {"at_most": 4}, "gpu-quota": {"limit": -1}},
    )
    assert len(found.problems) == 4
    assert [*found.exceptions] == ["names"]
    assert found.settings_of(SCALE_DOWN).model_dump()["at_most"] == 4
    assert found.environment is Environment.PROD


def test_a_level_may_be_stricter_than_the_environment_s() -> None:
    found = rules("dev", settings={"names": {"level": "mandatory"}})
    assert found.problems == ()
    assert found.level(BY_NAME["names"]) is PolicyLevel.MANDATORY


def test_a_weaker_level_does_not_count() -> None:
    found = rules("prod", settings={"names": {"level": "disabled"}})
    assert found.level(BY_NAME["names"]) is PolicyLevel.MANDATORY


def test_an_exception_holds_for_the_resources_that_it_names() -> None:
    found = rules(exceptions={"names": {"reason": "why", "resources": ["a-*", "b"]}, "labels": {"reason": "all"}})
    names, labels = BY_NAME["names"], BY_NAME["labels"]
    assert found.excuse(names, "a-1") == ("names.resources[0]", "why")
    assert found.excuse(names, "b") == ("names.resources[1]", "why")
    assert found.excuse(names, "c") is None
    assert found.excuse(labels, "anything") == ("labels", "all")
    assert found.excuse(BY_NAME["host-paths"], "a-1") is None
    assert found.all_exceptions() == ["names.resources[0]", "names.resources[1]", "labels"]
