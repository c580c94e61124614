"""Health checks in a spec: each problem with its place and its next step, all of them at once."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import a_spec

NODE_SETS = [{"name": "cpu", "cpus": 1, "memory_gib": 1}]
IMAGES = dict.fromkeys(
    ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail"), "registry.example/x:1"
)


def problems(**health: Any) -> dict[str, str]:
    given = {"name": "hpc", "images": IMAGES, "node_sets": NODE_SETS, "health": health}
    with pytest.raises(SpecError) as refused:
        parse_cluster(given)
    return {problem.path: problem.text for problem in refused.value.problems}


def test_all_problems_of_checks_are_reported_at_once() -> None:
    found = problems(
        interval="1s",
        checks={
            "clock": {"limt": 5},
            "jail": {"action": "drain"},
            "gpu_cuont": {"enabled": False},
            "gpu_count": {"limit": 4},
        },
    )

    assert found.keys() == {
        "health.interval",
        "health.checks.clock.limt",
        "health.checks.jail.action",
        "health.checks.gpu_cuont",
        "health.checks.gpu_count.limit",
    }
    assert 'Did you mean "limit"?' in found["health.checks.clock.limt"]
    assert found["health.checks.jail.action"].endswith("one outage would fail the check on all nodes and drain them.")
    assert found["health.checks.gpu_count.limit"] == "is fixed: it is the node set's gpus.count. Remove it."


@pytest.mark.parametrize("name", ["HealthCheckProgram", "healthcheckinterval", "HealthCheckNodeState"])
def test_parameters_of_slurm_conf_for_checks_are_ours(name: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_cluster({"name": "hpc", "images": IMAGES, "node_sets": NODE_SETS, "slurm": {"extra": {name: "60"}}})

    (problem,) = refused.value.problems
    assert problem.text == "is managed: set health, and your own check as health.program. Remove it."


def test_checks_are_on_unless_a_spec_switches_them_off() -> None:
    assert a_spec().health.enabled
    assert not a_spec(health={"enabled": False}).health.enabled
