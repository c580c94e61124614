"""The page on hooks of jobs: its table, its examples, its reasons."""

import re
from typing import Any

import yaml

from job_hooks.hook_settings import MomentSettings, parse
from soperator_pulumi.policy import POLICIES
from soperator_pulumi.policy.stack_rules import stack_rules
from soperator_pulumi.render.job_hooks import hook_files
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.job_hooks import DEFAULTS
from tests.strategies import a_spec
from tools.docs import hooks_page

PAGE = hooks_page.FILE.read_text()

GPUS: list[dict[str, Any]] = [{"name": "gpu", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8}}]


def example(number: int) -> ClusterSpec:
    text = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[number]
    return a_spec(hooks=yaml.safe_load(text)["config"]["soperator:cluster"]["hooks"], node_sets=GPUS)


def settings(spec: ClusterSpec, moment: str) -> MomentSettings:
    return parse(hook_files(spec)["job_hooks.json"], moment)


def test_the_table_of_hooks_is_that_of_the_sources() -> None:
    assert hooks_page.text() == PAGE, "run `make docs`"
    assert re.findall(r"(?m)^\| `(\w+)` \| (?:prolog|epilog) \|", PAGE) == [*DEFAULTS]


def test_the_first_example_has_built_in_hooks_alone() -> None:
    assert [hook.command for hook in settings(example(0), "prolog").hooks] == [()]


def test_the_second_example_is_valid_and_changes_what_it_shows() -> None:
    prolog, epilog = (settings(example(1), moment).hooks for moment in ("prolog", "epilog"))

    assert [(hook.name, hook.action, hook.seconds) for hook in prolog] == [
        ("gpus_unused_before", "requeue", 30),
        ("map_gpus", "log", 5),
        ("scratch-mounted", "requeue", 10),
    ]
    assert epilog[0].name == "noted"
    assert "drop_page_cache" in [hook.name for hook in epilog]


def test_the_shown_setting_of_the_policy_is_valid() -> None:
    (text,) = re.findall(r"`soperator:policy: (\{.*\})`", PAGE)
    assert stack_rules(yaml.safe_load(text), "prod", POLICIES).problems == ()
