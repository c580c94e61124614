"""Each policy has a program that violates it, and no other policy is violated by that."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from soperator_pulumi import Platform
from soperator_pulumi.policy import POLICIES, Environment
from soperator_pulumi.policy.definition import AnyPolicy
from soperator_pulumi.policy.recorded import Judgement, judge
from soperator_pulumi.testing import deploy
from tests.rendered.cluster.clusters import provided
from tests.rendered.platform.platforms import WHOLE
from tests.rendered.policy import packs
from tests.rendered.policy.packs import Pack
from tests.rendered.policy.violating import OF_THE_RUN, TAKEN, VIOLATING, WAYS_ROUND, a_cluster, deployed
from tools import paths

ALL = {policy.name: policy for policy in POLICIES}


def judged(
    name: str,
    environment: str = "prod",
    policy: Mapping[str, Any] | None = None,
    policies: Sequence[AnyPolicy] = POLICIES,
) -> Judgement:
    case = VIOLATING[name]
    deployment, before = case.deployed()
    return judge(
        deployment,
        environment=environment,
        policy={**case.policy, **(policy or {})},
        before=before,
        policies=policies,
        variables=case.variables,
    )


def failing(judgement: Judgement) -> set[str]:
    return {violation.policy for violation in judgement.violations if violation.level.fails}


def test_each_policy_has_a_program_that_violates_it() -> None:
    assert VIOLATING.keys() == ALL.keys()


TARBALL = {"tarball": {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}}


@pytest.mark.parametrize(
    "program", [TAKEN, a_cluster(jail={"source": TARBALL})], ids=["as it is", "its jail from a tarball"]
)
def test_a_cluster_that_prod_takes_violates_nothing(program: Callable[[], object]) -> None:
    assert judge(deployed(program), environment="prod", variables={}).violations == ()


@pytest.mark.parametrize("environment", [*Environment])
@pytest.mark.parametrize(
    "containers", [{}, {"images": ["docker.io/library/ubuntu:24.04"], "images_secret": "registry"}], ids=["none", "one"]
)
def test_images_of_containers_violate_nothing_in_any_environment(
    containers: dict[str, Any], environment: Environment
) -> None:
    with_containers = deployed(a_cluster(containers=containers))
    found = judge(with_containers, environment=environment, variables={}).violations
    assert found == judge(deployed(TAKEN), environment=environment, variables={}).violations


def test_the_pack_finds_nothing_in_it_either(prod: Pack) -> None:
    assert prod.judge(deployed(TAKEN)) == []


def test_a_platform_violates_nothing() -> None:
    whole = deploy(lambda: Platform("platform", WHOLE), outputs=provided)
    assert judge(whole, environment="prod", variables={}).violations == ()


def test_the_exception_in_the_page_on_ci_admits_a_drain_that_waits_for_nothing() -> None:
    (excepting,) = re.findall(r"```yaml\n(.*?)```", (paths.ROOT / "docs" / "ci.md").read_text(), re.DOTALL)

    assert failing(judged("drain-policies")) == {"drain-policies"}
    assert failing(judged("drain-policies", policy=yaml.safe_load(excepting)["config"]["soperator:policy"])) == set()


def test_a_mistake_in_the_stack_s_file_is_reported_once() -> None:
    assert len(judged("policy-configuration").violations) == 1


@pytest.mark.parametrize("name", VIOLATING)
def test_the_program_violates_this_policy_and_no_other(name: str) -> None:
    found = judged(name)
    assert failing(found) == {name}
    for message in found.failures:
        assert message.startswith(f"{name}: ")
        assert ALL[name].cure in message


@pytest.mark.parametrize("name", [name for name in VIOLATING if name not in OF_THE_RUN])
def test_a_program_that_violates_a_policy_fails_in_preview(prod: Pack, name: str) -> None:
    found = prod.judge(*VIOLATING[name].deployed())
    assert packs.failing(found) == {name}
    assert all(diagnostic.message.startswith(diagnostic.description) for diagnostic in found)


def test_a_rest_api_that_admits_everyone_is_as_public_as_logins() -> None:
    rest = {"tls": {"secret": "rest-certificate"}, "allowed_sources": ["0.0.0.0/0"]}
    found = judge(deploy(a_cluster(rest=rest), outputs=provided), environment="prod", variables={})

    assert failing(found) == {"public-logins"}
    assert ["rest.allowed_sources" in message for message in found.failures] == [True]


@pytest.mark.parametrize("way", WAYS_ROUND)
def test_no_way_leads_round_a_policy(way: str) -> None:
    policy, program = WAYS_ROUND[way]
    assert failing(judge(deploy(program, outputs=provided), environment="prod", variables={})) == {policy}


@pytest.mark.parametrize("environment", [*Environment])
@pytest.mark.parametrize("name", VIOLATING)
def test_a_violation_counts_as_the_environment_says(name: str, environment: Environment) -> None:
    level = ALL[name].levels.in_(environment)
    found = judged(name, environment, policies=POLICIES if name in OF_THE_RUN else [ALL[name]])
    levels = {violation.level for violation in found.violations if violation.policy == name}
    corrected = any(remediation.startswith(f"{name}: ") for remediation in found.remediations)
    assert levels == ({level} if level not in {"disabled", "remediate"} else set())
    assert corrected is (level == "remediate")


@pytest.mark.parametrize("name", [name for name in VIOLATING if ALL[name].exceptable])
def test_a_reason_in_the_stack_excuses_the_violation(name: str) -> None:
    exceptions = {"exceptions": {name: {"reason": "INC-4711"}}}
    assert judged(name, policy=exceptions, policies=[ALL[name], ALL["unused-exceptions"]]).violations == ()


@pytest.mark.parametrize("name", [name for name in VIOLATING if not ALL[name].exceptable])
def test_no_exception_excuses_a_policy_about_the_run_or_the_policies(name: str) -> None:
    exceptions = {**VIOLATING[name].policy.get("exceptions", {}), name: {"reason": "INC-4711"}}
    found = judged(name, policy={"exceptions": exceptions})
    assert name in failing(found)
    assert any(f"exceptions.{name}: has no effect" in message for message in found.failures)


@pytest.mark.parametrize("name", [name for name in VIOLATING if ALL[name].exceptable])
def test_an_exception_for_another_resource_excuses_nothing(name: str) -> None:
    exceptions = {"exceptions": {name: {"reason": "INC-4711", "resources": ["another-*"]}}}
    found = judged(name, policy=exceptions, policies=[ALL[name], ALL["unused-exceptions"]])
    assert failing(found) == {name, "unused-exceptions"}
