"""The pages on health checks and their tests: tables, an example, a reason."""

import re

import yaml

from long_checks.job_reading import Reading
from long_checks.measuring import judge
from node_health.state_machine import NodeState, check_of
from soperator_pulumi.render.node_health import node_settings
from soperator_pulumi.spec.health_checks import DEFAULTS, HealthCheck, allowed
from soperator_pulumi.spec.long_checks import LONG_DEFAULTS
from tests.strategies import a_spec
from tools.docs import health_faults, health_page

PAGE = health_page.FILE.read_text()
TESTS = health_faults.FILE.read_text()


def test_the_tables_are_those_of_the_sources() -> None:
    assert (health_page.text(), health_faults.text()) == (PAGE, TESTS), "run `make docs`"
    assert re.findall(r"(?m)^\| `(\w+)` \| [A-Z0-9a-z].*\| \d+ min \|", PAGE) == [*DEFAULTS]
    assert re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| `[^|]+` ?[^|]* \|$", TESTS.split("<!-- faults:")[1]) == [*DEFAULTS]


def test_each_scenario_of_soperator_has_a_test() -> None:
    rows = re.findall(r"(?m)^\| (\d+): .*`test_\w+`.* \|$", TESTS)
    assert [*map(int, rows)] == [2, *range(12, 20), 21]


def test_the_example_is_valid_and_changes_what_it_shows() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    spec = a_spec(
        health=yaml.safe_load(text)["config"]["soperator:cluster"]["health"],
        node_sets=[{"name": "gpu", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8}}],
    )
    checks = node_settings(spec, spec.node_sets[0])["checks"]

    assert checks["volume_space"]["limit"] == 90
    assert checks["gpu_slowdown"]["action"] == "log"
    assert "gpu_memory_used" not in checks
    assert checks["network_ports"]["allowed"] == "8"
    assert (checks["gpu_ecc_uncorrected"]["action"], checks["gpu_ecc_uncorrected"]["undrain"]) == (
        "drain_and_replace",
        "never",
    )
    assert "program" in checks


def test_the_shown_reason_is_a_default() -> None:
    shown = re.findall(r"`health gpu_count: 7, allowed (\d+)`", PAGE)

    assert shown == [allowed(HealthCheck.GPU_COUNT, 8)]


def test_every_limit_of_a_check_ends_a_reason_that_is_known_as_ours() -> None:
    limits = [0, 0.25, 5.25, 95, 1e12]
    quick = [allowed(name, limit) for name in DEFAULTS for limit in [None, *limits]]
    units = filter(None, (long_default.unit for long_default in LONG_DEFAULTS.values()))
    long = [judge(Reading(0), limit, unit)[1].partition(", allowed ")[2] for unit in units for limit in limits]

    endings = {*quick, *long, "an end", "a finished one"}
    drained = {ending: NodeState("IDLE+DRAIN", f"health x: 1, allowed {ending}") for ending in endings}
    assert [text for text, state in drained.items() if check_of(state) != "x"] == []
