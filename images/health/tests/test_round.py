"""Rounds of a node against a slurmctld of one node: what they drain, undrain, report, and leave alone."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from health_testing.made_rounds import MINUTE, Node, adapter
from health_testing.smi_outputs import query
from node_health.earlier_rounds import ports_before
from node_health.node_record import NoAnswerError, parse_node
from node_health.state_machine import NodeState


@pytest.fixture
def gpus(tmp_path: Path) -> Node:
    node = Node(tmp_path, gpu_query={}, gpu_count={"limit": 8})
    node.smi(query("h100-550"))
    return node


def names(events: Iterable[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def test_a_healthy_round_reports_nothing_and_after_the_first_asks_slurmctld_nothing(gpus: Node) -> None:
    assert gpus.round() == []
    assert gpus.slurm.calls == ["ask gpu-0"]
    assert gpus.round() == gpus.round() == []
    assert gpus.slurm.calls == ["ask gpu-0"]
    assert gpus.result["healthy"] is True
    assert gpus.result["checks"]["gpu_count"] == {
        "state": "passed",
        "value": "8",
        "allowed": "8",
        "action": "drain",
        "failures": 0,
        "passes": 3,
    }


def test_the_second_failure_in_a_row_drains_and_the_third_pass_undrains(gpus: Node) -> None:
    gpus.round()
    gpus.smi(query("h100-550", count=7))
    assert gpus.round() == []
    assert names(gpus.round()) == ["failed", "drained"]
    assert gpus.slurm.reason == "health gpu_count: 7, allowed 8"
    assert gpus.result["held"] == {
        "reason": "health gpu_count: 7, allowed 8",
        "check": "gpu_count",
        "replace": False,
        "to_verify": False,
    }
    assert gpus.round() == []

    gpus.smi(query("h100-550"))
    assert names([*gpus.round(), *gpus.round(), *gpus.round()]) == ["passed", "undrained"]
    assert gpus.slurm.state == "IDLE+DYNAMIC_NORM"
    assert gpus.result["held"] is None


def test_a_single_wrong_sample_drains_nothing(gpus: Node) -> None:
    for count in (8, 7, 8, 7, 8, 7):
        gpus.smi(query("h100-550", count=count))
        assert gpus.round() == []
    assert "DRAIN" not in gpus.slurm.state


def test_an_admins_drain_stays_and_keeps_its_reason(gpus: Node) -> None:
    gpus.slurm.state, gpus.slurm.reason = "IDLE+DRAIN", "fan of PSU 2"
    gpus.smi(query("h100-550", count=7))

    assert names([*gpus.round(), *gpus.round()]) == ["failed"]
    gpus.smi(query("h100-550"))
    for _ in range(4):
        gpus.round()
    assert gpus.slurm.reason == "fan of PSU 2"
    assert gpus.slurm.state == "IDLE+DRAIN"


def test_a_reason_that_an_admin_has_written_over_it_stays(gpus: Node) -> None:
    gpus.smi(query("h100-550", count=7))
    gpus.round()
    gpus.round()
    gpus.slurm.reason = "sent for repair"
    gpus.smi(query("h100-550"))
    for _ in range(4):
        gpus.round()

    assert (gpus.slurm.state, gpus.slurm.reason) == ("IDLE+DRAIN+DYNAMIC_NORM", "sent for repair")


def test_a_node_is_drained_once_someone_elses_drain_is_over(gpus: Node) -> None:
    gpus.slurm.state, gpus.slurm.reason = "IDLE+DRAIN", "fan of PSU 2"
    gpus.smi(query("h100-550", count=7))
    gpus.round()
    gpus.round()
    gpus.slurm.state = "IDLE"

    assert names(gpus.round()) == ["drained"]


def test_a_new_pod_without_memory_ends_the_drain_of_the_pod_before_it(gpus: Node) -> None:
    gpus.slurm.state, gpus.slurm.reason = "IDLE+DRAIN", "health gpu_count: 7, allowed 8"

    assert names([*gpus.round(), *gpus.round(), *gpus.round()]) == ["undrained"]


@pytest.mark.parametrize("undrain", ["verify", "never"])
def test_a_drain_that_needs_a_person_stays_and_the_result_says_what_is_needed(gpus: Node, undrain: str) -> None:
    gpus.checks["gpu_count"] |= {"undrain": undrain}
    gpus.smi(query("h100-550", count=7))
    gpus.round()
    gpus.round()
    gpus.smi(query("h100-550"))
    for _ in range(5):
        gpus.round()

    assert gpus.slurm.reason == "health gpu_count: 7, allowed 8"
    assert gpus.result["held"]["replace"] is False
    assert gpus.result["held"]["to_verify"] is (undrain == "verify")


def test_a_check_that_asks_for_another_machine_writes_so_into_the_reason_and_ends_its_own_drain(gpus: Node) -> None:
    gpus.checks["gpu_count"] |= {"action": "drain_and_replace"}
    gpus.smi(query("h100-550", count=7))
    gpus.round()
    gpus.round()
    assert gpus.slurm.reason == "health gpu_count: 7 (replace the machine), allowed 8"
    assert gpus.result["held"]["replace"] is True

    gpus.smi(query("h100-550"))
    assert names([*gpus.round(), *gpus.round(), *gpus.round()]) == ["passed", "undrained"]


def test_a_check_that_logs_drains_nothing(gpus: Node) -> None:
    gpus.checks["gpu_count"]["action"] = "log"
    gpus.smi(query("h100-550", count=7))

    (event,) = [*gpus.round(), *gpus.round(), *gpus.round()]
    assert event == {"event": "failed", "check": "gpu_count", "value": "7", "allowed": "8", "action": "log"}
    assert not [call for call in gpus.slurm.calls if call.startswith(("drain", "undrain"))]


def test_a_finding_that_drains_nothing_is_shown_once_and_removed_when_it_ends(gpus: Node) -> None:
    gpus.checks["gpu_count"]["action"] = "log"
    gpus.smi(query("h100-550", count=7))
    for _ in range(4):
        gpus.round()
    assert gpus.slurm.extra == "health:gpu_count"
    gpus.smi(query("h100-550"))
    for _ in range(3):
        gpus.round()

    assert gpus.slurm.extra == ""
    assert [call for call in gpus.slurm.calls if call != "ask gpu-0"] == ["show gpu-0"] * 2
    assert len(gpus.slurm.calls) == 5


def test_a_text_of_an_admin_stays_and_a_new_pod_removes_the_finding_of_the_one_before_it(gpus: Node) -> None:
    gpus.slurm.extra = "health:gpu_count"
    gpus.round()
    assert gpus.slurm.extra == ""

    gpus.slurm.extra = "rack 7"
    gpus.checks["gpu_count"]["action"] = "log"
    gpus.smi(query("h100-550", count=7))
    for _ in range(3):
        gpus.round()
    assert gpus.slurm.extra == "rack 7"


def test_an_outage_of_slurmctld_is_reported_once_and_the_drain_follows_later(gpus: Node) -> None:
    gpus.slurm.answers = False
    gpus.smi(query("h100-550", count=7))

    assert names([*gpus.round(), *gpus.round(), *gpus.round()]) == ["unanswered", "failed"]
    gpus.slurm.answers = True
    assert names(gpus.round()) == ["drained"]


def test_a_tool_that_hangs_is_a_finding_within_its_bound(gpus: Node) -> None:
    gpus.smi(query("h100-550"), script="sleep 600 & wait")
    gpus.given["smi_seconds"] = 0.2

    gpus.round(seconds=0.4)
    assert names(gpus.round(seconds=0.4)) == ["failed", "drained"]
    assert gpus.slurm.reason == "health gpu_query: no answer in 0.2 s, allowed none"
    assert gpus.result["checks"]["gpu_count"]["state"] == "unknown"


@pytest.mark.parametrize(
    ("output", "script", "value"),
    [
        ("", "", "no answer of nvidia-smi"),
        ("garbage", "", "garbage"),
        (query("h100-550")[:9000], "", "8 GPUs announced, 4 described"),
        ("No devices were found\n", "trap 'exit 6' EXIT", "No devices were found"),
        ("", "echo 'Unable to determine the device handle' >&2; exit 15", "Unable to determine the device handle"),
    ],
)
def test_a_tool_that_answers_with_something_else_is_a_finding(gpus: Node, output: str, script: str, value: str) -> None:
    gpus.smi(output, script)
    gpus.round()
    gpus.round()

    assert gpus.slurm.reason == f"health gpu_query: {value}, allowed none"


def test_a_node_without_nvidia_smi_is_logged_and_not_drained(tmp_path: Path) -> None:
    node = Node(tmp_path, gpu_tool={"action": "log"}, gpu_query={}, gpu_count={"limit": 8})

    assert names([*node.round(), *node.round()]) == ["failed"]
    assert node.result["checks"]["gpu_query"]["state"] == "unknown"
    assert "DRAIN" not in node.slurm.state


def test_one_call_of_nvidia_smi_serves_all_checks_of_it(gpus: Node) -> None:
    gpus.checks |= {"gpu_temperature": gpus.check(), "gpu_pcie_width": gpus.check(), "gpu_slowdown": gpus.check()}
    gpus.smi(query("h100-550"), script=f"echo called >> {gpus.root}/calls")

    gpus.round()
    assert (gpus.root / "calls").read_text() == "called\n"


def test_without_the_kernels_log_its_checks_have_no_value_and_drain_nothing(tmp_path: Path) -> None:
    names = ("gpu_xid", "kernel_network", "kernel_disk", "kernel_machine_check", "kernel_killed_slurm")
    node = Node(tmp_path, **{name: {"failures": 1} for name in names})

    assert node.round() == node.round() == []
    shown = {name: (check["state"], check["value"]) for name, check in node.result["checks"].items()}
    assert shown == dict.fromkeys(names, ("unknown", ""))


def test_a_check_runs_as_often_as_it_says(gpus: Node) -> None:
    gpus.checks = {"gpu_count": gpus.check(limit=8, every_seconds=5 * MINUTE)}
    gpus.smi(query("h100-550"), script=f"echo called >> {gpus.root}/calls")

    for _ in range(11):
        gpus.round()
    assert (gpus.root / "calls").read_text() == "called\n" * 3


def a_step(node: Node, command: str, uid: int = 0) -> None:
    node.write("proc/4711/comm", "slurmstepd\n")
    node.write("proc/4711/status", f"Name:\tslurmstepd\nUid:\t{uid}\t0\t0\t0\n")
    node.write("proc/4711/cmdline", command)


@pytest.mark.parametrize(
    ("command", "uid", "drained"),
    [
        ("slurmstepd: [12.0]\0", 0, False),
        ("/usr/sbin/slurmstepd\0infinity\0", 0, True),
        ("slurmstepd: [12.0]\0", 1001, True),
    ],
)
def test_a_check_of_idle_nodes_does_not_count_while_a_step_runs(
    gpus: Node, command: str, uid: int, drained: bool
) -> None:
    gpus.checks = {"gpu_processes": gpus.check(failures=1, states=["idle"])}
    process = "<processes><process_info><pid>9</pid><type>C</type></process_info>"
    gpus.smi(query("h100-550", changes={"<processes>": process}))
    a_step(gpus, command, uid)

    gpus.round()
    assert ("DRAIN" in gpus.slurm.state) is drained


def test_a_reboot_forgets_what_was_counted(gpus: Node) -> None:
    gpus.smi(query("h100-550", count=7))
    gpus.round()
    gpus.write("proc/sys/kernel/random/boot_id", "two\n")

    assert gpus.round() == []
    assert "DRAIN" not in gpus.slurm.state


def program_of(node: Node, script: str) -> None:
    node.given["program"] = ["/bin/sh", str(node.write("program.sh", script))]
    node.checks = {"program": node.check(failures=1, passes=1)}


def test_a_program_of_the_users_own_drains_with_its_first_line(tmp_path: Path) -> None:
    node = Node(tmp_path)
    program_of(node, "echo 'raid is degraded'; echo more; exit 3")
    node.round()
    assert node.slurm.reason == "health program: status 3: raid is degraded, allowed none"

    program_of(node, "exit 0")
    assert names(node.round()) == ["passed", "undrained"]


def test_a_program_of_the_users_own_that_hangs_is_a_failure(tmp_path: Path) -> None:
    node = Node(tmp_path)
    program_of(node, "sleep 600")
    node.round(seconds=1)

    assert node.slurm.reason == "health program: no answer in 0.25 s, allowed none"


def volume_of(node: Node, *, shared: bool, options: str = "rw") -> Path:
    folder = node.root / "volume"
    folder.mkdir(exist_ok=True)
    node.given["volumes"] = [{"path": str(folder), "shared": shared, "read_only": False}]
    node.write("proc/self/mountinfo", f"36 35 98:0 / {folder} rw,noatime shared:1 - ext4 /dev/sda {options}\n")
    node.checks = {
        "volumes": node.check(failures=1),
        "shared_volumes": node.check(failures=1, action="log"),
        "volume_space": node.check(limit=100),
        "volume_inodes": node.check(limit=100),
    }
    return folder


@pytest.mark.parametrize("shared", [True, False])
def test_a_volume_that_answers_passes_and_nothing_stays_in_it(tmp_path: Path, shared: bool) -> None:
    node = Node(tmp_path)
    folder = volume_of(node, shared=shared)

    assert node.round() == []
    assert list(folder.iterdir()) == []
    assert node.result["checks"]["shared_volumes" if shared else "volumes"]["state"] == "passed"
    assert node.result["checks"]["volume_space"]["state"] == ("unknown" if shared else "passed")


def test_files_in_memory_fill_no_disk(tmp_path: Path) -> None:
    node = Node(tmp_path)
    volume_of(node, shared=False)
    node.given["volumes"][0]["in_memory"] = True
    node.checks["shared_memory_used"] = node.check(limit=100)

    assert node.round() == []
    assert node.result["checks"]["volume_space"]["state"] == "unknown"
    assert node.result["checks"]["shared_memory_used"]["state"] == "passed"


@pytest.mark.parametrize("shared", [True, False])
def test_only_the_nodes_own_volume_drains_when_it_becomes_read_only(tmp_path: Path, shared: bool) -> None:
    node = Node(tmp_path)
    folder = volume_of(node, shared=shared, options="ro,errors=remount-ro")

    events = node.round()
    assert events[0]["value"] == f"failed: {folder} is read-only"
    assert ("DRAIN" in node.slurm.state) is not shared


@pytest.mark.parametrize("trap", ["link", "pipe"])
def test_files_that_a_user_puts_into_a_volume_are_neither_written_nor_waited_for(tmp_path: Path, trap: str) -> None:
    node = Node(tmp_path)
    folder = volume_of(node, shared=False)
    secret = tmp_path / "root's"
    secret.write_text("kept")
    # Names by process id can be guessed: the next ones are all taken.
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    for pid in range(last, last + 3000):
        place = folder / f".soperator-health-{pid}"
        place.symlink_to(secret) if trap == "link" else os.mkfifo(place)

    assert node.round(seconds=4) == []
    assert secret.read_text() == "kept"


@pytest.mark.parametrize(("space", "busy", "drained"), [(100, True, False), (100, False, True), (50, True, True)])
def test_a_volume_that_a_job_has_filled_drains_nothing_before_the_job_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: int, busy: bool, drained: bool
) -> None:
    node = Node(tmp_path)
    folder = volume_of(node, shared=False)
    folder.rmdir()
    folder.write_text("takes no file, as a full volume")
    full = SimpleNamespace(f_blocks=100, f_bavail=100 - space, f_files=0, f_ffree=0)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    if busy:
        a_step(node, "slurmstepd: [12.0]\0")
    node.round()

    assert ("DRAIN" in node.slurm.state) is drained


def test_a_volume_that_is_gone_is_named(tmp_path: Path) -> None:
    node = Node(tmp_path)
    folder = volume_of(node, shared=False)
    node.write("proc/self/mountinfo", "")
    node.round()

    assert node.slurm.reason == f"health volumes: failed: {folder} is not mounted, allowed none"


def test_a_jail_without_an_active_tree_is_logged(tmp_path: Path) -> None:
    node = Node(tmp_path, jail={"action": "log", "failures": 1})
    node.given["volumes"] = []
    assert node.round() == []
    node.root.joinpath("active").symlink_to("trees/none")
    node.checks["volumes"] = node.check()
    moved = {**node.given, "jail": str(node.root / "active")}
    node.given = moved

    (event,) = node.round()
    assert event["value"] == "no active tree"


def test_a_damaged_answer_of_scontrol_is_no_state() -> None:
    with pytest.raises(NoAnswerError):
        parse_node("slurm_load_node error: Unable to contact slurm controller\n")


SHOWN = (
    "NodeName=gpu-0 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=0.10 "
    "State=IDLE+DRAIN+DYNAMIC_NORM ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A  Partitions=main  "
    "Reason=health gpu_count: 7, allowed 8 [root@2026-11-23T06:00:00] Extra=health:clock \n"
)


@pytest.mark.parametrize("user", ["root", "jane@ad.example.com"])
def test_an_answer_of_scontrol_is_read_with_its_reason_and_findings(user: str) -> None:
    shown, reason = SHOWN.replace("root@", f"{user}@"), "health gpu_count: 7, allowed 8"
    assert parse_node(shown) == NodeState("IDLE+DRAIN+DYNAMIC_NORM", reason, "health:clock")


@pytest.fixture
def network(tmp_path: Path) -> Node:
    names_of_checks = ("network_port_lost", "network_rate", "network_symbol_errors", "network_flaps")
    node = Node(tmp_path, **{name: {"failures": 1} for name in names_of_checks})
    node.checks["network_symbol_errors"] = node.check(limit=120, failures=1)
    for number in (0, 1):
        adapter(node, number)
    adapter(node, 2, state="1: DOWN")
    return node


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"state": "1: DOWN"}, "health network_port_lost: down: mlx5_1/1, allowed none"),
        ({"rate": "200 Gb/sec (2X NDR)"}, "health network_rate: lower than before: mlx5_1/1 200 Gb/s, allowed none"),
        ({"counters/symbol_error": "121"}, "health network_symbol_errors: 121 on mlx5_1/1, allowed 120"),
        ({"counters/link_downed": "4"}, "health network_flaps: 1 on mlx5_1/1, allowed none"),
    ],
)
def test_a_port_counts_from_its_own_state_before(network: Node, files: dict[str, str], reason: str) -> None:
    assert network.round() == network.round() == []
    adapter(network, 1, **files)
    network.round()

    assert network.slurm.reason == reason


@pytest.mark.parametrize(("bad", "good"), [({"state": "1: DOWN"}, {}), ({"rate": "200 Gb/sec (2X NDR)"}, {})])
def test_a_new_pod_does_not_bring_back_a_node_whose_port_is_as_bad_as_before(
    network: Node, bad: dict[str, str], good: dict[str, str]
) -> None:
    network.round()
    adapter(network, 1, **bad)
    network.round()
    drained = network.slurm.reason

    network.memory = {}
    for _ in range(5):
        network.round()
    assert (network.slurm.state, network.slurm.reason) == ("IDLE+DRAIN+DYNAMIC_NORM", drained)

    adapter(network, 1, **good)
    for _ in range(3):
        network.round()
    assert network.slurm.state == "IDLE+DYNAMIC_NORM"


def test_ports_are_read_from_reasons_with_more_of_them_than_are_named() -> None:
    lost = "health network_port_lost: down: mlx5_0/1, mlx5_1/1, mlx5_2/1 and 5 more, allowed none"
    assert ports_before(lost) == {"mlx5_0/1": 0, "mlx5_1/1": 0, "mlx5_2/1": 0}
    replaced = "health network_port_lost: down: mlx5_0/1, mlx5_1/1 (replace the machine), allowed none"
    assert ports_before(replaced) == {"mlx5_0/1": 0, "mlx5_1/1": 0}
    slower = "health network_rate: lower than before: mlx5_0/1 200 Gb/s, mlx5_3/1 2.5 Gb/s, allowed 0 Gb/s"
    assert ports_before(slower) == {"mlx5_0/1": 201, "mlx5_3/1": 3.5}
    assert ports_before("health network_rate: 100 Gb/s on mlx5_0/1, allowed 400 Gb/s") == {}


def test_errors_of_a_port_are_forgiven_after_an_hour(network: Node) -> None:
    network.checks = {"network_symbol_errors": network.check(limit=120, failures=1, passes=1)}
    network.round()
    adapter(network, 1, **{"counters/symbol_error": "500"})
    network.round()
    assert "DRAIN" in network.slurm.state
    for _ in range(75):
        network.round()
    assert "DRAIN" not in network.slurm.state


def test_a_counter_that_was_reset_counts_from_zero(network: Node) -> None:
    adapter(network, 1, **{"counters/symbol_error": "5000"})
    assert network.round() == []
    adapter(network, 1, **{"counters/symbol_error": "100"})
    assert network.round() == []
    adapter(network, 1, **{"counters/symbol_error": "200"})
    network.round()
    assert network.slurm.reason == "health network_symbol_errors: 200 on mlx5_1/1, allowed 120"


def test_memory_of_the_machine_and_its_errors(tmp_path: Path) -> None:
    node = Node(tmp_path, memory_available={"limit": 80, "failures": 1, "passes": 1, "unit": "%"})
    node.checks["memory_uncorrected"] = node.check(failures=1, undrain="verify")
    node.write("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1000000 kB\n")
    node.write("sys/devices/system/edac/mc/mc0/ue_count", "0\n")
    assert node.round() == []

    node.write("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 524288 kB\n")
    node.round()
    assert node.slurm.reason == "health memory_available: 50%, allowed 80%"
    node.write("sys/devices/system/edac/mc/mc0/ue_count", "1\n")
    node.round()
    assert node.slurm.reason == "health memory_uncorrected: 1 on mc0, allowed none"


STATISTICS = (
    f"anon 7\nactive_file {60 * 1024**2}\ninactive_file {30 * 1024**2}\nslab_reclaimable {10 * 1024**2}\nshmem 9\n"
)


def test_a_limit_of_the_pod_counts_where_it_is_lower(tmp_path: Path) -> None:
    node = Node(tmp_path, memory_available={"limit": 80, "failures": 1, "unit": "%"})
    node.write("proc/meminfo", "MemAvailable: 99999999 kB\n")
    for name, text in {"max": 1024**3, "current": 900 * 1024**2, "stat": STATISTICS}.items():
        node.write(f"sys/fs/cgroup/memory.{name}", f"{text}\n")
    node.round()

    assert node.slurm.reason == "health memory_available: 21.9%, allowed 80%"


def test_a_node_without_memory_of_its_own_has_no_reading_of_it(tmp_path: Path) -> None:
    node = Node(tmp_path, memory_available={"limit": 80, "failures": 1})
    node.given["memory_mib"] = 0
    node.write("proc/meminfo", "MemAvailable: 1 kB\n")

    assert node.round() == []


def test_process_ids_count_for_machine_and_pod(tmp_path: Path) -> None:
    node = Node(tmp_path, process_ids={"limit": 90, "failures": 1, "unit": "%"})
    node.write("proc/loadavg", "0.5 0.4 0.3 2/500 4711\n")
    node.write("proc/sys/kernel/pid_max", "1000\n")
    assert node.round() == []
    node.write("sys/fs/cgroup/pids.current", "95\n")
    node.write("sys/fs/cgroup/pids.max", "100\n")
    node.round()

    assert node.slurm.reason == "health process_ids: 95%, allowed 90%"


@pytest.mark.parametrize(
    ("groups", "folder"),
    [
        ("0::/\n", "sys/fs/cgroup"),
        ("0::/pod/slurmd\n", "sys/fs/cgroup/pod"),
        ("9:name=systemd:/x\n8:pids:/\n", "sys/fs/cgroup/pids"),
        ("8:pids:/pod/slurmd\n", "sys/fs/cgroup/pids/pod"),
    ],
)
def test_process_ids_count_in_every_cgroup_that_the_container_sees(tmp_path: Path, groups: str, folder: str) -> None:
    node = Node(tmp_path, process_ids={"limit": 90, "failures": 1, "unit": "%"})
    node.write("proc/self/cgroup", groups)
    node.write(f"{folder}/pids.current", "95\n")
    node.write(f"{folder}/pids.max", "100\n")
    node.round()

    assert node.slurm.reason == "health process_ids: 95%, allowed 90%"


def test_users_alone_are_measured_against_the_limit_of_a_user(tmp_path: Path) -> None:
    limits = {"limit": 90, "failures": 1, "unit": "%"}
    node = Node(tmp_path, process_ids=limits, users_process_ids={**limits, "action": "log"})
    node.given["process_limit"] = 1000
    node.write("proc/loadavg", "0.5 0.4 0.3 2/1950 4711\n")
    node.write("proc/sys/kernel/pid_max", "100000\n")
    node.write("proc/8/status", "Uid:\t2001\t2001\t2001\t2001\nThreads:\t950\n")
    node.round()

    assert node.result["checks"]["process_ids"]["value"] == "1%"
    assert node.result["checks"]["users_process_ids"]["value"] == "95% on user 2001"


def test_a_user_who_has_all_process_ids_of_a_pod_is_named_and_drains_nothing(tmp_path: Path) -> None:
    limits = {"failures": 1, "unit": "%"}
    finding = {**limits, "limit": 80, "action": "log"}
    node = Node(tmp_path, process_ids={**limits, "limit": 90}, users_process_ids=finding)
    node.write("proc/loadavg", "0.5 0.4 0.3 2/4300 4711\n")
    node.write("proc/sys/kernel/pid_max", "4194304\n")
    node.write("sys/fs/cgroup/pids.current", "4096\n")
    node.write("sys/fs/cgroup/pids.max", "4096\n")
    node.write("proc/7/status", "Name:\tslurmd\nUid:\t0\t0\t0\t0\nThreads:\t46\n")
    for pid in range(100, 500):
        node.write(f"proc/{pid}/status", "")
        status = b"Name:\tUid:\\n0\xff\nUid:\t2001\t2001\t2001\t2001\nThreads:\t10\n"
        (tmp_path / f"proc/{pid}/status").write_bytes(status)
    node.write("proc/900/status", "Uid:\t2002\t2002\t2002\t2002\nThreads:\t50\n")

    node.round()

    assert node.slurm.reason == ""
    assert node.result["checks"]["process_ids"]["value"] == "1.12%"
    assert node.result["checks"]["users_process_ids"]["value"] == "97.7% on user 2001"


def test_users_who_have_all_process_ids_of_a_pod_together_are_a_finding(tmp_path: Path) -> None:
    node = Node(tmp_path, users_process_ids={"failures": 1, "unit": "%", "limit": 80, "action": "log"})
    node.write("proc/loadavg", "0.5 0.4 0.3 2/990 4711\n")
    node.write("proc/sys/kernel/pid_max", "1000\n")
    for uid in (2001, 2002, 2003):
        node.write(f"proc/{uid}/status", f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t330\n")

    node.round()

    assert node.result["checks"]["users_process_ids"]["value"] == "99% on all users"


def test_process_ids_that_no_user_of_the_pod_has_drain_it(tmp_path: Path) -> None:
    node = Node(tmp_path, process_ids={"limit": 90, "failures": 1, "unit": "%"})
    node.write("proc/loadavg", "0.5 0.4 0.3 2/970 4711\n")
    node.write("proc/sys/kernel/pid_max", "1000\n")
    node.write("proc/900/status", "Uid:\t2002\t2002\t2002\t2002\nThreads:\t50\n")

    node.round()

    assert node.slurm.reason == "health process_ids: 92%, allowed 90%"


def test_a_tool_that_cannot_be_ended_is_not_started_again(gpus: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus.smi(query("h100-550"), script=f"echo called >> {gpus.root}/calls")
    gpus.memory = {"boot": "one", "left": {"smi": os.getpid()}}

    gpus.round()
    gpus.round()
    assert not (gpus.root / "calls").exists()
    assert gpus.slurm.reason == "health gpu_query: no answer in 40 s, allowed none"
    gpus.memory["left"] = {"smi": 2**22 + 1}
    gpus.round()
    assert (gpus.root / "calls").exists()
