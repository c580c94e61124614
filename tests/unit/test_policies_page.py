"""The page on policies: its tables, its examples and its commands."""

import re
import tomllib

import pytest
import yaml

import soperator_pulumi
from soperator_pulumi.policy import POLICIES, ResourcePolicy
from soperator_pulumi.policy.exceptions import NAMED_RUNS, SOPERATOR_EXCEPTION
from soperator_pulumi.policy.judge import Judge
from soperator_pulumi.policy.stack_rules import stack_rules
from soperator_pulumi.policy.view import STACK_TYPE, ResourceView
from tests.unit.policy.views import RUN, an_object
from tools import paths
from tools.docs import policies_page

PAGE = policies_page.FILE.read_text()
KEPT_DATA = next(policy for policy in POLICIES if policy.name == "kept-data")


def block(language: str, containing: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    (text,) = (item for item in found if containing in item)
    return str(text)


def test_the_tables_are_what_the_policies_are() -> None:
    assert policies_page.text() == PAGE, "run `make docs`"
    assert PAGE.count("| mandatory |") > len(POLICIES)


def test_the_violation_is_what_is_reported() -> None:
    assert isinstance(KEPT_DATA, ResourcePolicy)
    claim = an_object("core/v1:PersistentVolumeClaim", name="hpc-jail")
    (found,) = Judge(POLICIES, stack_rules(None, "prod", POLICIES), RUN).resource(KEPT_DATA, claim)
    shown = block("text", "hpc-jail")
    assert shown == f"[{found.level}] {found.policy}: {KEPT_DATA.description}\n{found.message}\n"


def test_the_exceptions_and_settings_are_valid() -> None:
    data = yaml.safe_load(block("yaml", "exceptions"))["config"]["soperator:policy"]
    rules = stack_rules(data, "prod", POLICIES)
    assert rules.problems == ()
    assert rules.exceptions.keys() == {"host-paths", "scale-down"}
    assert len(rules.settings) == 4


def test_the_named_run_is_taken() -> None:
    command = block("sh", "CONTROLLER_LOST")
    variables = dict(re.findall(r"(SOPERATOR_\w+)='?([^'\n]*?)'? (?=SOPERATOR|pulumi)", command))
    both = re.search(r"with a semicolon: `(.*?)`", PAGE)
    assert variables.keys() == {"SOPERATOR_CONTROLLER_LOST", SOPERATOR_EXCEPTION}
    assert both

    stack = ResourceView(type=STACK_TYPE, name="prod", urn="urn:prod", props={})
    for given in (variables, {**variables, "SOPERATOR_DRAIN": "hpc: {wait: false}", SOPERATOR_EXCEPTION: both[1]}):
        run = type(RUN)(environment=RUN.environment, project="p", stack="prod", variables=given)
        assert [*NAMED_RUNS.check(stack, run, NAMED_RUNS.settings())] == []
        unnamed = type(RUN)(
            environment=RUN.environment, project="p", stack="prod", variables={**given, SOPERATOR_EXCEPTION: ""}
        )
        assert [*NAMED_RUNS.check(stack, unnamed, NAMED_RUNS.settings())] != []


@pytest.mark.parametrize("word", ["drain: INC-1; controler-lost: INC-1", "drain", "drain: ", "INC-4711"])
def test_a_run_without_a_reason_or_with_a_misspelt_word_is_not_taken(word: str) -> None:
    stack = ResourceView(type=STACK_TYPE, name="prod", urn="urn:prod", props={})
    variables = {"SOPERATOR_DRAIN": "hpc: {wait: false}", SOPERATOR_EXCEPTION: word}
    run = type(RUN)(environment=RUN.environment, project="p", stack="prod", variables=variables)
    assert [*NAMED_RUNS.check(stack, run, NAMED_RUNS.settings())] != []


def test_the_pack_has_the_version_of_the_package_whose_extra_it_needs() -> None:
    extras = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(item.startswith("pulumi-policy") for item in extras["policy"])
    pack = yaml.safe_load((paths.ROOT / "policy" / "PulumiPolicy.yaml").read_text())
    assert pack["version"] == soperator_pulumi.__version__
