"""Long checks in a spec: defaults, limits by GPU model, and refusals."""

import re
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
    assert all(long_default.source for long_default in LONG_DEFAULTS.values())


def test_no_long_check_has_the_name_of_a_quick_one() -> None:
    assert not {long_check.value for long_check in LongCheck} & {health_check.value for health_check in HealthCheck}


@pytest.mark.parametrize(
    ("gpus", "limit"),
    [
        ({"count": 8, "type": "h100"}, 430),
        ({"count": 8, "type": "nvidia_h200-141gb"}, 430),
        ({"count": 8, "type": "B200"}, 740),
        ({"count": 8, "type": "a100"}, 228),
        ({"count": 8, "type": "h800"}, 190),
        ({"count": 8, "type": "nvidia-b300"}, 760),
        ({"count": 4, "type": "gb200"}, None),
        ({"count": 8, "type": "l4"}, None),
        ({"count": 8}, None),
        ({"count": 4, "type": "h100"}, None),
        ({"count": 8, "type": "h100-pcie"}, None),
        ({"count": 8, "type": "nvidia_h100_nvl"}, None),
        (None, None),
    ],
)
def test_the_limit_is_that_of_a_board_with_eight_gpus_of_the_model(
    gpus: dict[str, Any] | None, limit: float | None
) -> None:
    given = a_cluster({}, node_sets=[a_node_set(gpus=gpus)]).node_sets[0].gpus
    assert long_limit(LongCheck.NCCL_BANDWIDTH, None, given) == limit
    assert long_limit(LongCheck.NCCL_BANDWIDTH, 300, given) == 300


@pytest.mark.parametrize(("model", "limit"), [("h100", 330), ("a100", 228), ("b300", 620), ("l4", None)])
def test_a_board_without_nvls_has_a_lower_limit(model: str, limit: float | None) -> None:
    given = a_cluster({}, node_sets=[a_node_set(gpus={"count": 8, "type": model})]).node_sets[0].gpus

    assert long_limit(LongCheck.NCCL_BANDWIDTH, None, given, nvls=False) == limit
    assert long_limit(LongCheck.NCCL_BANDWIDTH, 300, given, nvls=False) == 300


def test_fabrics_have_no_limit_by_default() -> None:
    assert not [
        check
        for check, long_default in LONG_DEFAULTS.items()
        if long_default.size == 2 and (long_default.limit or long_default.by_gpu)
    ]


def test_one_gpu_has_no_bus_bandwidth_and_is_diagnosed_alone() -> None:
    one = a_node_set(gpus={"count": 1, "type": "h100"})
    spec = a_cluster({"nccl_bandwidth": {}, "nccl_pairs": {}, "gpu_diagnostics": {}}, node_sets=[one])
    assert set(enabled_checks(spec)) == {LongCheck.NCCL_PAIRS, LongCheck.GPU_DIAGNOSTICS}


@pytest.mark.parametrize(
    ("check", "verified"),
    [
        ("memory_bandwidth", {"memory_uncorrected", "program"}),
        ("ring_bandwidth", {"program"}),
        ("rdma_bandwidth", {"network_rate", "program"}),
        ("nccl_bandwidth", {"gpu_ecc_uncorrected", "nvlink_links", "program"}),
        ("nccl_pairs", {"gpu_ecc_uncorrected", "nvlink_links", "network_rate", "program"}),
        ("gpu_diagnostics", {"gpu_ecc_uncorrected", "nvlink_links", "program"}),
    ],
)
def test_a_drain_that_waits_for_a_test_ends_by_a_test_of_the_same_hardware(check: str, verified: set[str]) -> None:
    waiting = {name: {"undrain": "verify"} for name in ("nvlink_links", "network_rate", "program")}
    gpus = a_node_set(gpus={"count": 8, "type": "h100"}, rdma={"resource": "rdma/hca"})
    health = {"long_checks": {check: {}}, "checks": waiting, "program": {"script": "true"}}
    spec = parse_cluster({"name": "hpc", "images": IMAGES, "node_sets": [gpus], "accounting": "none", "health": health})
    name = LongCheck(check)
    assert set(long_settings(spec, name, spec.health.long_checks[name])["verifies"]) == verified


def test_without_quick_checks_a_run_waits_for_none() -> None:
    checks: dict[str, Any] = {"memory_bandwidth": {}}
    given = {"name": "hpc", "images": IMAGES, "node_sets": [a_node_set()], "accounting": "none"}

    def settle(*, enabled: bool) -> Any:
        spec = parse_cluster({**given, "health": {"long_checks": checks, "enabled": enabled}})
        name = LongCheck.MEMORY_BANDWIDTH
        return long_settings(spec, name, spec.health.long_checks[name])["settle_seconds"]

    assert (settle(enabled=True), settle(enabled=False)) == (130, 0)


def test_a_partition_has_a_name_of_slurm() -> None:
    spec = a_cluster({"ring_bandwidth": {"partition": "GPU_short"}})
    assert spec.health.long_checks[LongCheck.RING_BANDWIDTH].partition == "GPU_short"


def test_checks_of_gpus_are_for_nodes_with_gpus() -> None:
    gpus = a_node_set(name="gpu", gpus={"count": 8, "type": "h100"})
    spec = a_cluster({"nccl_bandwidth": {}, "memory_bandwidth": {}}, node_sets=[a_node_set(), gpus])

    assert set(enabled_checks(spec)) == {LongCheck.NCCL_BANDWIDTH, LongCheck.MEMORY_BANDWIDTH}
    check = spec.health.long_checks[LongCheck.NCCL_BANDWIDTH]
    settings = long_settings(spec, LongCheck.NCCL_BANDWIDTH, check)
    assert settings["node_sets"] == {
        "gpu": {"alone": 430, "together": 430, "gpus": 8, "first": [], "without_nvls": 330}
    }
    assert enabled_checks(a_cluster({"nccl_bandwidth": {}})) == {}


@pytest.mark.parametrize(
    ("check", "path", "words"),
    [
        ({"memory_bandwidth": {"group": 4}}, "memory_bandwidth.group", "every job of the check takes 1 of the nodes"),
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


@pytest.mark.parametrize(
    ("containers", "words"),
    [
        (None, "which is not in containers.images. Add it there"),
        ({"images": ["registry.example.com/team/tools:2"]}, "which is not in containers.images. Add it there"),
    ],
)
def test_an_image_that_jobs_would_pull_is_refused(containers: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(SpecError, match=re.escape(words)) as caught:
        a_cluster({"tcp_bandwidth": {"image": "registry.example.com/team/tools:1"}}, containers=containers)
    assert "health.long_checks.tcp_bandwidth.image" in str(caught.value)


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("listed", "image"),
    [
        ("docker.io/team/tools:latest", "team/tools"),
        (f"team/tools:latest@{DIGEST}", "team/tools"),
        (f"team/tools:1@{DIGEST}", f"team/tools@{DIGEST}"),
        (f"team/tools@{DIGEST}", f"team/tools:1@{DIGEST}"),
    ],
)
def test_an_image_is_found_by_every_name_by_which_jobs_start_it(listed: str, image: str) -> None:
    spec = a_cluster({"tcp_bandwidth": {"image": image}}, containers={"images": [listed]})
    name = LongCheck.TCP_BANDWIDTH

    assert long_settings(spec, name, spec.health.long_checks[name])["image"] == image


def test_the_image_of_a_check_that_is_off_may_be_any() -> None:
    a_cluster({"tcp_bandwidth": {"enabled": False, "image": "team/tools"}})


def test_an_image_of_a_check_whose_program_comes_with_the_workers_is_refused() -> None:
    (problem,) = problems({"ring_bandwidth": {"image": "registry.example.com/team/tools:1"}})
    assert "health.long_checks.ring_bandwidth.image: has no effect" in problem


def test_settings_without_an_image_are_those_that_older_images_of_workers_read() -> None:
    spec = a_cluster({"tcp_bandwidth": {}})
    name = LongCheck.TCP_BANDWIDTH

    assert "image" not in long_settings(spec, name, spec.health.long_checks[name])


def test_new_nodes_are_verified_by_the_checks_of_one_node() -> None:
    checks: dict[str, Any] = {"ring_bandwidth": {}, "memory_bandwidth": {}, "storage_bandwidth": {"enabled": False}}
    spec = a_cluster(checks, verify=True)
    check = spec.health.long_checks[LongCheck.MEMORY_BANDWIDTH]
    settings = long_settings(spec, LongCheck.MEMORY_BANDWIDTH, check)

    assert settings["node_sets"]["cpu"]["first"] == ["memory_bandwidth"]


@pytest.mark.parametrize("checks", [{"ring_bandwidth": {}}, {"memory_bandwidth": {"partition": "gpu"}}])
def test_new_nodes_that_nothing_would_verify_are_refused(checks: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"health\.verify_new_nodes.*no long check would verify new nodes of .cpu."):
        a_cluster(checks, verify=True)
