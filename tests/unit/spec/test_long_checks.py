"""Long checks in a spec: defaults, limits by GPU model, and refusals."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.render.long_checks import enabled_checks, long_settings
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster
from soperator_pulumi.spec.health_checks import HealthCheck
from soperator_pulumi.spec.long_checks import LONG_DEFAULTS, LongCheck, long_limit
from tests.rendered.cluster.clusters import IMAGES, a_node_set


def a_cluster(checks: dict[str, Any], *, verify: bool = False, **changes: Any) -> ClusterSpec:
    given = {"name": "hpc", "images": IMAGES, "node_sets": [a_node_set()], "accounting": "none", **changes}
    return parse_cluster({**given, "health": {"long_checks": checks, "verify_new_nodes": verify}})


def problems(checks: dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as caught:
        a_cluster(checks)
    return [str(problem) for problem in caught.value.problems]


def test_every_check_has_defaults_with_a_source() -> None:
    assert set(LONG_DEFAULTS) == set(LongCheck)
    assert all(each.source for each in LONG_DEFAULTS.values())


def test_no_long_check_has_the_name_of_a_quick_one() -> None:
    assert not {each.value for each in LongCheck} & {each.value for each in HealthCheck}


@pytest.mark.parametrize(
    ("gpu_type", "limit"),
    [("h100", 430), ("nvidia_h200-141gb", 430), ("B200", 740), ("a100", 228), ("l4", None), (None, None)],
)
def test_the_limit_is_that_of_the_gpu_model(gpu_type: str | None, limit: float | None) -> None:
    assert long_limit(LongCheck.NCCL_BANDWIDTH, None, gpu_type) == limit
    assert long_limit(LongCheck.NCCL_BANDWIDTH, 300, gpu_type) == 300


def test_checks_of_gpus_are_for_nodes_with_gpus() -> None:
    gpus = a_node_set(name="gpu", gpus={"count": 8, "type": "h100"})
    spec = a_cluster({"nccl_bandwidth": {}, "memory_bandwidth": {}}, node_sets=[a_node_set(), gpus])

    assert set(enabled_checks(spec)) == {LongCheck.NCCL_BANDWIDTH, LongCheck.MEMORY_BANDWIDTH}
    check = spec.health.long_checks[LongCheck.NCCL_BANDWIDTH]
    settings = long_settings(spec, LongCheck.NCCL_BANDWIDTH, check)
    assert settings["node_sets"] == {"gpu": {"alone": 430, "together": 430, "gpus": 8, "first": []}}
    assert enabled_checks(a_cluster({"nccl_bandwidth": {}})) == {}


@pytest.mark.parametrize(
    ("check", "path", "words"),
    [
        ({"memory_bandwidth": {"group": 4}}, "memory_bandwidth.group", "a job has 1 nodes"),
        ({"gpu_diagnostics": {"limit": 4}}, "gpu_diagnostics.limit", "compares no number"),
        ({"ring_bandwidth": {"action": "drain_and_replace"}}, "ring_bandwidth.action", '"log" and "drain"'),
        ({"ring_bandwidth": {"undrain": "verify"}}, "ring_bandwidth.undrain", '"auto" and "never"'),
        ({"ring_bandwidth": {"qos": "low"}}, "ring_bandwidth.qos", "needs accounting"),
        ({"ring_bandwidth": {"arguments": {"gib": 1}}}, "ring_bandwidth.arguments.gib", "Allowed: mib, seconds"),
    ],
)
def test_what_has_no_effect_is_refused(check: dict[str, Any], path: str, words: str) -> None:
    (problem,) = problems(check)
    assert f"health.long_checks.{path}" in problem
    assert words in problem


def test_new_nodes_are_verified_by_the_checks_of_one_node() -> None:
    checks: dict[str, Any] = {"ring_bandwidth": {}, "memory_bandwidth": {}, "storage_bandwidth": {"enabled": False}}
    spec = a_cluster(checks, verify=True)
    check = spec.health.long_checks[LongCheck.MEMORY_BANDWIDTH]
    settings = long_settings(spec, LongCheck.MEMORY_BANDWIDTH, check)

    assert settings["node_sets"]["cpu"]["first"] == ["memory_bandwidth"]


def test_new_nodes_that_nothing_would_verify_are_refused() -> None:
    with pytest.raises(SpecError, match=r"health\.verify_new_nodes.*no long check would verify new nodes of .cpu."):
        a_cluster({"ring_bandwidth": {}}, verify=True)
