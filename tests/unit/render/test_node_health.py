"""Settings of the quick checks, as rendered for nodes, against the program that reads them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_health import check_settings
from node_health.all_checks import CHECKS
from node_health.check_settings import CheckSettings, NodeSettings
from soperator_pulumi.render.node_health import FORMAT, health_files
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.spec.health_checks import DEFAULTS, Bound, HealthAction, HealthCheck, Needs
from tests.strategies import a_spec

H100 = {"gpus": {"count": 8, "type": "h100"}, "rdma": {"resource": "rdma/hca"}}


def settings(node_set: dict[str, Any] | None = None, **changes: Any) -> NodeSettings:
    node_sets = [{"name": "gpu", "cpus": 4, "memory_gib": 8, **(node_set or {})}]
    files = health_files(a_spec(node_sets=node_sets, **changes))
    return check_settings.parse(files["gpu.json"])


def test_the_program_knows_the_checks_of_the_spec_and_no_others() -> None:
    assert [*CHECKS] == [*DEFAULTS] == [*HealthCheck]
    assert check_settings.FORMAT == FORMAT


def test_a_node_without_gpus_and_rdma_has_the_checks_of_every_node() -> None:
    of_all = {name for name, default in DEFAULTS.items() if default.needs is Needs.ALL}

    assert {*settings().checks} == of_all - {"network_ports"}


def test_a_node_with_gpus_and_rdma_has_all_checks_but_those_without_a_limit_or_a_program() -> None:
    assert {*HealthCheck} - {*settings(H100).checks} == {"network_ports", "program"}


def test_mig_instances_and_other_makers_have_no_checks_of_whole_gpus() -> None:
    of_mig = settings({"gpus": {"mig": {"1g.10gb": 7}}}).checks
    of_amd = settings({"gpus": {"count": 8, "resource": "amd.com/gpu"}}).checks

    assert "gpu_count" not in of_mig
    assert "gpu_ecc_uncorrected" in of_mig
    assert not [name for name in of_amd if name.startswith(("gpu_", "nvlink_"))]


@pytest.mark.parametrize(
    ("gpu_type", "links"),
    [
        *(("h100", 18), ("nvidia_a100_80gb", 12), ("h800", 8), ("a800-sxm4", 8), ("gb200", 18), ("H20", 18)),
        *(("l40s", None), (None, None), ("h100-pcie", None), ("h100_nvl", None), ("V100", None)),
    ],
)
def test_the_number_of_links_is_that_of_the_model(gpu_type: str | None, links: int | None) -> None:
    gpus = {"count": 4, **({"type": gpu_type} if gpu_type else {})}
    check = settings({"gpus": gpus}).checks["nvlink_links"]

    assert check.limit == links
    assert check.allowed == ("all" if links is None else str(links))


@pytest.mark.parametrize(("count", "gpu_type", "links"), [(8, "v100", 6), (1, "h100", None), (2, "h100", 18)])
def test_a_part_of_a_board_may_have_fewer_links(count: int, gpu_type: str, links: int | None) -> None:
    assert settings({"gpus": {"count": count, "type": gpu_type}}).checks["nvlink_links"].limit == links


def test_the_number_of_gpus_is_that_of_the_node_set() -> None:
    made = settings(H100)

    assert made.gpus == made.checks["gpu_count"].limit == 8
    assert made.checks["gpu_count"].allowed == "8"


def test_changes_of_a_check_reach_it_and_no_other() -> None:
    changed = {
        "limit": 70,
        "action": "log",
        "undrain": "never",
        "failures": 7,
        "passes": 9,
        "every": "2m",
        "node_use": ["busy"],
    }
    before, after = settings(), settings(health={"checks": {"volume_space": changed}})

    source = "The kubelet evicts pods at 90% (nodefs.available 10%)"
    assert after.checks["volume_space"] == CheckSettings(70, "70%", "log", "never", 7, 9, 120, ("busy",), source)
    changed_checks = {name for name, check in after.checks.items() if before.checks[name] != check}
    assert changed_checks == {"volume_space"}


def test_a_check_that_is_off_is_not_there() -> None:
    assert "clock" not in settings(health={"checks": {"clock": {"enabled": False}}}).checks


def test_without_health_there_are_no_checks_and_no_program_of_slurmd() -> None:
    off = {"enabled": False}

    assert settings(health=off).checks == {}
    assert "HealthCheck" not in slurm_conf(a_spec(health=off))


def test_slurmd_runs_the_checks_as_often_and_where_the_spec_says() -> None:
    lines = slurm_conf(
        a_spec(health={"interval": "5m", "node_states": ["IDLE", "MIXED"], "spread": False})
    ).splitlines()

    assert "HealthCheckProgram=/usr/lib/soperator/health/health-check" in lines
    assert "HealthCheckInterval=300" in lines
    assert "HealthCheckNodeState=IDLE,MIXED" in lines


def test_a_program_of_the_users_own_is_a_file_next_to_the_settings() -> None:
    spec = a_spec(health={"program": {"script": "exit 0\n", "timeout": "3s"}})
    files = health_files(spec)
    made = check_settings.parse(files["cpu.json"])

    assert files["program.sh"] == "exit 0\n"
    assert made.program == ("/bin/sh", "/etc/soperator/health/program.sh")
    assert made.program_seconds == 3
    assert "program" in made.checks


@pytest.mark.parametrize(
    ("pod_resources", "memory_mib"),
    [
        (None, 7936),
        ({"requests": {"memory": "64Mi"}, "limits": {"memory": "1Gi"}}, 64),
        ({"requests": {"memory": "1Ti"}}, 8192),
        ({"requests": {"cpu": "1"}}, 0),
    ],
)
def test_the_memory_that_has_to_be_there_is_that_of_the_pod_alone(
    pod_resources: dict[str, Any] | None, memory_mib: int
) -> None:
    """Slurm may schedule more than a pod has: that is no fault of the node."""
    assert settings({"pod_resources": pod_resources} if pod_resources else {}).memory_mib == memory_mib


def test_a_volume_that_nodes_share_is_no_volume_of_the_node() -> None:
    submounts = [
        {"path": "/data", "existing_claim": "data", "read_only": True},
        {"path": "/machine", "host_path": "/mnt"},
        {"path": "/scratch", "scratch_gib": 5, "roles": ["worker"]},
        {"path": "/dev/shm", "memory_gib": 1, "roles": ["worker"]},
        {"path": "/logins", "scratch_gib": 5, "roles": ["login"]},
    ]
    volumes = settings(jail={"submounts": submounts}).volumes

    assert {volume.path for volume in volumes if volume.shared} == {"/jail", "/home", "/data", "/machine"}
    assert {volume.path for volume in volumes if not volume.shared} == {
        "/run/slurm",
        "/var/spool/slurmd",
        "/tmp",
        "/dev/shm",
        "/scratch",
    }
    assert {volume.path for volume in volumes if volume.read_only} == {"/data"}
    assert {volume.path for volume in volumes if volume.in_memory} == {"/tmp", "/dev/shm"}
    assert len({volume.path for volume in volumes}) == len(volumes)


def test_files_of_users_in_memory_are_on_no_disk_and_a_disk_at_tmp_is_one() -> None:
    submounts = [{"path": "/fast", "memory_gib": 4}, {"path": "/tmp", "scratch_gib": 5, "roles": ["worker"]}]
    volumes = settings(jail={"submounts": submounts}).volumes

    assert {volume.path for volume in volumes if volume.in_memory} == {"/fast", "/dev/shm"}


def test_no_outage_of_what_nodes_share_drains_them() -> None:
    of_shared = {HealthCheck.SHARED_VOLUMES, HealthCheck.JAIL, HealthCheck.SLURMD}

    assert {name for name, default in DEFAULTS.items() if default.shared} == of_shared
    assert {DEFAULTS[name].action for name in of_shared} == {HealthAction.LOG}


def test_every_check_with_a_number_has_a_limit_and_every_check_a_source() -> None:
    without = {name for name, default in DEFAULTS.items() if default.bound is not Bound.NONE and default.limit is None}

    assert without == {"gpu_count", "nvlink_links", "network_ports"}
    assert all(default.source for default in DEFAULTS.values())


@given(st.sampled_from([*HealthCheck]), st.integers(1, 100), st.booleans())
def test_whatever_is_changed_the_program_reads_its_settings(name: HealthCheck, failures: int, gpus: bool) -> None:
    program = {"program": {"script": "exit 0"}} if name is HealthCheck.PROGRAM else {}
    made = settings(H100 if gpus else {}, health={"checks": {name.value: {"failures": failures}}, **program})

    assert name not in made.checks or made.checks[name].failures == failures


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"format": 2}', '{"format": 1}', '{"format": 1, "checks": []}']
)
def test_settings_of_another_version_are_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"format 1|key missing|Expecting value"):
        check_settings.parse(text)


def test_the_files_are_json_that_a_person_can_read() -> None:
    text = health_files(a_spec())["cpu.json"]

    assert json.loads(text)["format"] == FORMAT
    assert max(map(len, text.splitlines())) < 100
