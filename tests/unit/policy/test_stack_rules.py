"""`soperator:policy` of a stack: what it may have, and what counts where it is wrong."""

from typing import Any

import pytest

from soperator_pulumi.policy import POLICIES, Environment, PolicyLevel, ResourceView
from soperator_pulumi.policy.sizes import SCALE_DOWN
from soperator_pulumi.policy.stack_rules import StackRules, stack_rules

BY_NAME = {policy.name: policy for policy in POLICIES}


def named(name: str, kind: str = "networking.k8s.io/v1:NetworkPolicy") -> ResourceView:
    type_ = f"kubernetes:{kind}"
    return ResourceView(type=type_, name=name, urn=f"urn:pulumi:prod::project::{type_}::{name}", props={})


def rules(stack: str = "prod", **data: Any) -> StackRules:
    return stack_rules(data, stack, POLICIES)


@pytest.mark.parametrize(
    ("stack", "environment"),
    [*((environment, environment) for environment in Environment), ("acme-dev", "prod"), ("", "prod")],
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
        ({"exceptions": []}, "exceptions: got a list, needs a mapping by policy name."),
        ({"exceptions": {"naems": {}}}, 'exceptions.naems: there is no such policy. Did you mean "names"?'),
        ({"exceptions": {"unlike": {}}}, "exceptions.unlike: there is no such policy. The page on policies"),
        ({"exceptions": {"names": {}}}, "exceptions.names.reason: missing. It has no default: give a value."),
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
        'got "prod", needs a mapping with environment, exceptions and settings.',
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
    assert found.excuse(names, named("a-1")) == ("names.resources[0]", "why")
    assert found.excuse(names, named("b")) == ("names.resources[1]", "why")
    assert found.excuse(names, named("c")) is None
    assert found.excuse(names, None) is None, "the stack as a whole has no name"
    assert found.excuse(labels, named("anything")) == ("labels", "all")
    assert found.excuse(labels, None) == ("labels", "all")
    assert found.excuse(BY_NAME["host-paths"], named("a-1")) is None
    assert found.all_exceptions() == ["names.resources[0]", "names.resources[1]", "labels"]


@pytest.mark.parametrize(
    ("pattern", "policies", "budgets"),
    [
        ("web", True, True),
        ("NetworkPolicy/web", True, False),
        ("NetworkPolicy/*", True, False),
        ("*/web", True, True),
        ("Network*", False, False),
        ("urn:pulumi:prod::project::kubernetes:networking.k8s.io/v1:NetworkPolicy::web", True, False),
        ("urn:pulumi:*::kubernetes:policy/v1:*::web", False, True),
        ("[v-x]eb", False, False),
        ("we?", False, False),
        ("", False, False),
    ],
)
def test_an_exception_names_a_kind_too(pattern: str, policies: bool, budgets: bool) -> None:
    found = rules(exceptions={"labels": {"reason": "why", "resources": [pattern]}})
    for kind, excused in (("networking.k8s.io/v1:NetworkPolicy", policies), ("policy/v1:PodDisruptionBudget", budgets)):
        assert (found.excuse(BY_NAME["labels"], named("web", kind)) is not None) is excused


def test_an_exception_whose_list_is_empty_is_a_mistake_and_not_one_for_all() -> None:
    found = rules(exceptions={"labels": {"reason": "why", "resources": []}})
    (problem,) = found.problems
    assert problem.startswith("exceptions.labels.resources: ")
    assert found.exceptions == {}


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [("a*b*c", True), ("a*bb*c", True), ("*c", True), ("a*", True), ("a*d*c", False), ("*b", False), ("b*", False)],
)
def test_a_star_stands_for_any_text(pattern: str, *, matches: bool) -> None:
    own = rules(exceptions={"labels": {"reason": "why", "resources": [pattern]}})
    assert (own.excuse(BY_NAME["labels"], named("abxbbc")) is not None) is matches


def test_a_pattern_of_many_stars_takes_no_longer_than_another() -> None:
    """With a way back from each star, it took years."""
    own = rules(exceptions={"labels": {"reason": "why", "resources": ["*a" * 40 + "x"]}})
    assert own.excuse(BY_NAME["labels"], named("a" * 200)) is None
