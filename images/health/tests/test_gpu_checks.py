"""Each check of GPUs: healthy recordings of many machines, each fault, and outputs that are none."""

from pathlib import Path

import pytest

from health_testing.smi_outputs import RECORDINGS, link_errors, link_errors_of_blackwell, links, peers, query
from node_health import earlier_rounds, smi, smi_tables
from node_health.all_checks import CHECKS
from node_health.check_settings import NodeSettings
from node_health.readings import Readings
from node_health.results import CheckResult

LIMITS = {
    "gpu_count": 8,
    "gpu_ecc_corrected": 10_000,
    "gpu_pcie_replays": 480,
    "gpu_memory_used": 1024,
    "nvlink_links": 18,
    "nvlink_errors": 100,
}
OF_QUERY = [name for name, check in CHECKS.items() if check.source == "smi"]

NEW = ("h100-550", "h100-580", "h200-580", "b200-580", "gb200-580", "gb300-580", "l40s-595")
REPAIRS = ("h100-580", "h200-580", "b200-580", "gb200-580", "gb300-580", "l40s-595")
ROWS = ("a10g-515", "a100-525", "a100-570", *NEW)
HBM = tuple(name for name in RECORDINGS if name[:4] in {"a100", "h100", "h200", "b200", "gb20", "gb30", "h800", "v100"})
FABRIC = ("h100-580", "h100mig-570", "b200-580", "gb200-580", "gb300-580")
ALL = tuple(RECORDINGS)
EVENTS = tuple(name for name, machine in RECORDINGS.items() if machine.reasons == "clocks_event")
WORKING = tuple(name for name, machine in RECORDINGS.items() if machine.power == "P0")

FAULTS: list[tuple[tuple[str, ...], dict[str, str], str, str]] = [
    (ALL, {"<product_brand>NVIDIA<": "<product_brand>GPU is lost<"}, "gpu_query", "found GPU is lost on {gpu}"),
    (("h100-580", "b200-580"), {"<replay_counter>0<": "<replay_counter>Unknown Error<"},
     "gpu_warnings", "found replay_counter: Unknown Error on {gpu}"),
    (tuple(name for name, machine in RECORDINGS.items() if machine.persistence == "Enabled"),
     {"<persistence_mode>Enabled<": "<persistence_mode>Disabled<"}, "gpu_persistence", "off on {gpu}"),
    (("v100-470",), {"</device_memory><total>0</total></double_bit>": "</device_memory><total>3</total></double_bit>"},
     "gpu_ecc_uncorrected", "3 on {gpu}"),
    (("t4-515", "t4-595"), {"<dram_uncorrectable>0<": "<dram_uncorrectable>2<"}, "gpu_ecc_uncorrected", "2 on {gpu}"),
    (("a10g-515", "a100-525", "t4-515"), {"<sram_uncorrectable>0<": "<sram_uncorrectable>1<"},
     "gpu_ecc_uncorrected", "1 on {gpu}"),
    (("a100-570", *NEW), {"<sram_uncorrectable_secded>0<": "<sram_uncorrectable_secded>1<"},
     "gpu_ecc_uncorrected", "1 on {gpu}"),
    (("a100mig-510",), {"<sram_uncorrectable>0<": "<sram_uncorrectable>5<"}, "gpu_ecc_uncorrected", "5 on {gpu}"),
    (("h100mig-570",), {"<sram_uncorrectable_parity>0<": "<sram_uncorrectable_parity>5<"},
     "gpu_ecc_uncorrected", "5 on {gpu}"),
    (ROWS, {"<dram_uncorrectable>0<": "<dram_uncorrectable>2<"}, "gpu_ecc_contained", "2 on {gpu}"),
    (ROWS, {"<dram_correctable>0<": "<dram_correctable>10001<"}, "gpu_ecc_corrected", "10001 on {gpu}"),
    (("v100-470", "t4-515", "t4-595"), {"<pending_retirement>No<": "<pending_retirement>Yes<"},
     "gpu_remap_pending", "pending: pages on {gpu}"),
    (ROWS, {"<remapped_row_pending>No<": "<remapped_row_pending>Yes<"}, "gpu_remap_pending", "pending: rows on {gpu}"),
    (REPAIRS, {"<tpc_repair_pending>No<": "<tpc_repair_pending>Yes<"}, "gpu_remap_pending", "pending: TPC on {gpu}"),
    (REPAIRS, {"<channel_repair_pending>No<": "<channel_repair_pending>Yes<"},
     "gpu_remap_pending", "pending: channel on {gpu}"),
    (ROWS, {"<remapped_row_failure>No<": "<remapped_row_failure>Yes<"}, "gpu_remap_failed", "failed: rows on {gpu}"),
    (("a100-570", *NEW), {"<sram_threshold_exceeded>No<": "<sram_threshold_exceeded>Yes<"},
     "gpu_remap_failed", "failed: SRAM on {gpu}"),
    (("h100-550", "h100pcie-535"), {"<reset_required>No<": "<reset_required>Yes<"},
     "gpu_recovery", "needed: Reset of {gpu}"),
    (("b200-580", "t4-595"), {"<gpu_recovery_action>None<": "<gpu_recovery_action>Reboot<"},
     "gpu_recovery", "needed: Reboot of {gpu}"),
    (tuple(name for name in ALL if name not in EVENTS),
     {"hw_thermal_slowdown>Not Active<": "hw_thermal_slowdown>Active<"},
     "gpu_slowdown", "active: thermal slowdown on {gpu}"),
    (EVENTS, {"hw_slowdown>Not Active<": "hw_slowdown>Active<",
              "hw_power_brake_slowdown>Not Active<": "hw_power_brake_slowdown>Active<"},
     "gpu_slowdown", "active: power brake on {gpu}"),
    (("v100-470", "t4-595", "a10g-515", "a100-525"), {"<gpu_temp>34 C<": "<gpu_temp>91 C<"},
     "gpu_temperature", "{margin} C on {gpu}"),
    (NEW, {"<gpu_temp_tlimit>52 C<": "<gpu_temp_tlimit>-1 C<"}, "gpu_temperature", "-1 C on {gpu}"),
    (tuple(name for name in HBM if not name.startswith("v100")), {"<memory_temp>44 C<": "<memory_temp>97 C<"},
     "gpu_memory_temperature", "-2 C on {gpu}"),
    (tuple(name for name in WORKING if RECORDINGS[name].lanes == 16 and RECORDINGS[name].gpus > 3),
     {"<current_link_width>16x<": "<current_link_width>8x<"}, "gpu_pcie_width", "found 8 of 16 lanes on {gpu}"),
    (tuple(name for name in WORKING if RECORDINGS[name].generation > 3),
     {"<current_link_gen>": "<current_link_gen>1</current_link_gen><x>",
      "</current_link_gen></pcie_gen>": "</x></pcie_gen>"},
     "gpu_pcie_generation", "found 1 of {generation} on {gpu}"),
    (ALL, {"<processes>": "<processes><process_info><pid>4711</pid>\n<type>C</type></process_info>"},
     "gpu_processes", "1 on {gpu}"),
    (ALL, {"<used>4 MiB<": "<used>70000 MiB<"}, "gpu_memory_used", "70000 MiB on {gpu}"),
    (("h100-550", "h800-535", *FABRIC), {"<state>Completed<": "<state>In Progress<"},
     "nvlink_fabric", "found state In Progress on {gpu}"),
    (("h100-550", "h800-535", *FABRIC), {"<status>Success<": "<status>Failure<"},
     "nvlink_fabric", "found status Failure on {gpu}"),
    (("b200-580", "gb200-580", "gb300-580"), {"<summary>Healthy<": "<summary>Limited Capacity<"},
     "nvlink_fabric", "found summary Limited Capacity on {gpu}"),
    (("gb200-580", "gb300-580"), {"<bandwidth>Full<": "<bandwidth>Degraded<"},
     "nvlink_fabric", "found bandwidth Degraded on {gpu}"),
    (("h100-550", *FABRIC), {"<state>Completed<": "<state>N/A<", "<status>Success<": "<status>N/A<"},
     "nvlink_fabric", "found no state on {gpu}"),
]  # fmt: skip

ELSEWHERE = {
    "gpu_tool": "test_a_node_without_nvidia_smi_is_logged_and_not_drained",
    "gpu_query": "test_a_tool_that_answers_with_something_else_is_a_finding",
    "gpu_count": "test_a_lost_gpu_is_one_too_few",
    "gpu_model": "test_a_product_is_of_the_node_sets_type",
    "gpu_pcie_replays": "test_packets_sent_again_count_from_the_last_hour",
    "nvlink_missing": "test_boards_without_a_fabric_and_links_are_a_finding_where_a_node_has_several",
    "nvlink_links": "test_links_that_are_down_fail_with_their_number",
    "nvlink_errors": "test_errors_of_a_link_name_it",
    "gpu_peer_access": "test_pairs_without_access_are_named",
}
"""Tests of faults that are no change of one GPU's description, here and in test_round.py."""


def readings(output: str, gpu_type: str = "") -> Readings:
    settings = NodeSettings({}, 10, 60, 8, gpu_type, 1024, (), "/jail/active", (), 0)
    made = Readings(settings)
    made.has_smi, made.smi_problem = True, ""
    made.gpus = smi.parse_query(output)
    made.smi_warnings = smi.warnings(output)
    made.replays = {gpu.name: gpu.replays or 0 for gpu in made.gpus}
    return made


def judged(name: str, made: Readings) -> CheckResult | None:
    limit = len(made.gpus or ()) if name == "gpu_count" else LIMITS.get(name, 0)
    return CHECKS[name].judge(limit, made)


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("name", OF_QUERY)
def test_a_healthy_machine_passes_each_check_that_it_has_values_for(name: str, recording: str) -> None:
    result = judged(name, readings(query(recording)))

    if name == "gpu_persistence" and RECORDINGS[recording].persistence == "Disabled":
        assert result is not None
        assert not result.passed
    else:
        assert result is None or result.passed
    if result is None:
        other = RECORDINGS[recording]
        missing = {
            "gpu_model": True,
            "nvlink_fabric": "<state>Completed<" not in other.fabric,
            "nvlink_missing": recording not in {*FABRIC, "h100-550", "h800-535"},
            "gpu_ecc_contained": "<dram_uncorrectable>0<" not in other.ecc or other.architecture in {"Turing", "Volta"},
            "gpu_ecc_corrected": "rrectable>N/A<" in other.ecc,
            "gpu_ecc_uncorrected": "rrectable>N/A<" in other.ecc and not other.mig,
            "gpu_memory_temperature": "<memory_temp>N/A<" in other.temperature,
        }
        assert missing.get(name), "a value that the output has was not read"


@pytest.mark.parametrize(
    ("recording", "changes", "name", "value"),
    [(recording, *rest) for recordings, *rest in FAULTS for recording in recordings],
)
def test_a_fault_of_one_gpu_fails_its_check_and_no_other(
    recording: str, changes: dict[str, str], name: str, value: str
) -> None:
    healthy = {other: judged(other, readings(query(recording))) for other in OF_QUERY}
    last = RECORDINGS[recording].gpus - 1
    made = readings(query(recording, changes=changes, of=last))
    assert made.gpus is not None
    margin = made.gpus[last].temperature_margin
    words = value.format(
        gpu=f"GPU {last}", margin=f"{margin:g}" if margin else "", generation=RECORDINGS[recording].generation
    )

    if last == 0 and name == "nvlink_fabric" and "no state" in words:
        return
    assert judged(name, made) == CheckResult(passed=False, value=words)
    others = {text: judged(text, made) for text in OF_QUERY if text != name}
    assert {other for other, found in others.items() if found and not found.passed and found != healthy[other]} == set()


def test_a_lost_gpu_is_one_too_few() -> None:
    made = readings(query("h100-550", count=7))

    assert CHECKS["gpu_count"].judge(8, made) == CheckResult(passed=False, value="7")


def test_more_gpus_than_the_node_set_says_are_another_machine() -> None:
    made = readings(query("h100-550", count=8))

    assert CHECKS["gpu_count"].judge(4, made) == CheckResult(passed=False, value="8")


def test_an_idle_gpu_may_lower_its_link() -> None:
    changes = {"<current_link_gen>5<": "<current_link_gen>1<", "<current_link_width>16x<": "<current_link_width>8x<"}
    made = readings(query("h100-550", changes={**changes, ">P0<": ">P8<"}))

    assert judged("gpu_pcie_generation", made) == CheckResult(True, "none")
    assert judged("gpu_pcie_width", made) == CheckResult(True, "8 lanes")


@pytest.mark.parametrize("lanes", [(8,), (16, 8), (16, 16, 8), (16, 8, 16, 8)])
def test_slots_with_different_lanes_are_no_fault(lanes: tuple[int, ...]) -> None:
    made = readings(query("a100-570", count=len(lanes)))
    assert made.gpus is not None
    made.gpus = tuple(gpu._replace(width=float(width)) for gpu, width in zip(made.gpus, lanes, strict=True))

    assert judged("gpu_pcie_width", made) == CheckResult(True, f"{min(lanes)} lanes")


def test_a_gpu_that_has_lost_lanes_since_a_round_before_fails_with_both_numbers() -> None:
    made = readings(query("t4-595"))
    made.best_widths = {"GPU 0": 16}

    assert judged("gpu_pcie_width", made) == CheckResult(False, "found 8 of 16 lanes on GPU 0")


def test_the_best_of_rounds_before_is_kept() -> None:
    best: dict[str, float] = {}

    assert earlier_rounds.keep(best, {"GPU 0": 8}) == {"GPU 0": 0}
    assert earlier_rounds.keep(best, {"GPU 0": 4}) == {"GPU 0": 8}
    assert best == {"GPU 0": 8}


def test_packets_sent_again_count_from_the_last_hour() -> None:
    made = readings(query("h100-550"))
    made.replays = {"GPU 3": 481}

    assert judged("gpu_pcie_replays", made) == CheckResult(passed=False, value="481 on GPU 3")


TYPES = {
    "NVIDIA H100 80GB HBM3": ("h100", "H100", "h100_sxm", "h100sxm5", "h100-sxm5-80gb", "nvidia-h100-80gb-hbm3"),
    "NVIDIA H100 PCIe": ("h100", "h100-pcie", "h100-pcie-80gb", "h100pcie"),
    "NVIDIA H100 NVL": ("h100_nvl", "h100"),
    "NVIDIA A100-PCIE-40GB": ("a100-pcie", "a100_pcie_40gb", "a100"),
    "Tesla V100-SXM2-32GB": ("v100", "v100-sxm2-32gb", "tesla-v100-sxm2"),
    "Tesla T4": ("t4", "tesla-t4", "nvidia-tesla-t4"),
    "NVIDIA GeForce RTX 4090": ("rtx-4090", "rtx4090", "4090", "geforce-rtx-4090"),
    "NVIDIA RTX 6000 Ada Generation": ("rtx-6000", "rtx6000", "rtx_6000_ada"),
    "NVIDIA L40S": ("l40s", "l40s-48gb"),
    "NVIDIA GB200": ("gb200",),
    "NVIDIA H20-3e": ("h20",),
}
OTHER_TYPES = {
    "NVIDIA H100 80GB HBM3": ("a100", "h200", "h100-nvl", "h100-pcie", "h100-94gb", "h10"),
    "NVIDIA H100 PCIe": ("h100-sxm5",),
    "NVIDIA GH200 480GB": ("h200",),
    "NVIDIA GB200": ("b200",),
    "NVIDIA L40S": ("l4", "l40"),
    "NVIDIA A100-SXM4-80GB": ("a10", "a100-40gb"),
    "NVIDIA A10G": ("a10",),
    "NVIDIA H200": ("h20",),
}


@pytest.mark.parametrize(
    ("product", "gpu_type", "passed"),
    [
        *((product, gpu_type, True) for product, types in TYPES.items() for gpu_type in types),
        *((product, gpu_type, False) for product, types in OTHER_TYPES.items() for gpu_type in types),
    ],
)
def test_a_product_is_of_the_node_sets_type(product: str, gpu_type: str, passed: bool) -> None:
    made = readings(query("h100-550", count=1, changes={"NVIDIA H100 80GB HBM3": product}), gpu_type)
    result = judged("gpu_model", made)

    assert result == CheckResult(passed, "none" if passed else f"found {product} on GPU 0")


@pytest.mark.parametrize("state", ["N/A", "[N/A]", "Not Supported", "[Not Supported]", "Insufficient Permissions", ""])
def test_a_value_that_a_gpu_does_not_have_is_no_value(state: str) -> None:
    changes = {"<gpu_temp_tlimit>52 C<": f"<gpu_temp_tlimit>{state}<", "<used>4 MiB<": f"<used>{state}<"}
    made = readings(query("h100-550", count=1, changes=changes))

    assert made.gpus is not None
    assert made.gpus[0].memory_used_mib is None
    assert judged("gpu_memory_used", made) is None
    assert judged("gpu_query", made) == CheckResult(True, "answers")


@pytest.mark.parametrize("error", ["GPU is lost", "[GPU is lost]", "GPU requires reset", "Unknown Error", "ERR!"])
def test_a_gpu_with_an_error_in_place_of_its_values_is_named_and_has_no_values(error: str) -> None:
    changes = {
        "<used>4 MiB<": f"<used>{error}<",
        "<gpu_temp>34 C<": f"<gpu_temp>{error}<",
        "<replay_counter>0<": f"<replay_counter>{error}<",
        "<dram_uncorrectable>0<": f"<dram_uncorrectable>{error}<",
    }
    made = readings(query("h100-580", changes=changes, of=3))

    assert judged("gpu_query", made) == CheckResult(False, f"found {error} on GPU 3")
    assert judged("gpu_memory_used", made) == CheckResult(True, "4 MiB on GPU 0")


@pytest.mark.parametrize("state", ["Completed", "In Progress"])
def test_a_fabric_that_has_completed_with_an_unknown_error_fails(state: str) -> None:
    changes = {"<state>Completed<": f"<state>{state}<", "<status>Success<": "<status>Unknown Error<"}
    made = readings(query("h100-550", changes=changes, of=2))

    of_state = "" if state == "Completed" else f"state {state} and "
    assert judged("nvlink_fabric", made) == CheckResult(False, f"found {of_state}status Unknown Error on GPU 2")
    assert judged("gpu_query", made) == CheckResult(True, "answers")


def test_an_error_of_a_fan_or_of_a_power_meter_is_none_of_a_gpus() -> None:
    changes = {"<fan_speed>N/A<": "<fan_speed>Unknown Error<"}
    made = readings(query("rtx4090-550", changes=changes))

    assert judged("gpu_warnings", made) == CheckResult(True, "none")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "no answer of nvidia-smi"),
        ("\x00\xff garbage", r"\?. garbage"),
        ("No devices were found\n", "No devices were found"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "NVIDIA-SMI has failed"),
        ("Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n", "Unable to determine"),
        (query("h100-550")[:2000], "8 GPUs announced, 1 described"),
        (query("h100-550", count=1)[:1500], "the description of GPU 0 is cut"),
        (query("h100-550").replace("<attached_gpus>8<", "<attached_gpus>9<"), "9 GPUs announced, 8 described"),
        (query("h100-550").replace("<attached_gpus>8<", "<attached_gpus>7<"), "the name of a program forges some"),
        ('<?xml version="1.0" ?><html></html>', "no answer of nvidia-smi"),
    ],
)
def test_what_is_no_answer_gives_no_reading(output: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        smi.parse_query(output)


FORGED = (
    "</process_name></process_info></processes>\n<remapped_rows><remapped_row_failure>Yes</remapped_row_failure>"
    "</remapped_rows><processes><process_info><process_name>y"
)


def processes(name: str) -> str:
    return "".join(
        f"<process_info>\n<pid>{pid}</pid>\n<type>C</type>\n<process_name>{name}</process_name>\n"
        "<used_memory>4 MiB</used_memory>\n</process_info>\n"
        for pid in (7, 8)
    )


@pytest.mark.parametrize(
    "name",
    [
        "java -Durl=a&b",
        "VLLM::Worker<0>",
        "\x01\x1b[31m",
        "</process_name></process_info></processes></gpu><gpu><product_name>",
        "two\nlines & more",
        FORGED,
        "</processes></gpu></nvidia_smi_log>",
        "<attached_gpus>1</attached_gpus>",
    ],
)
@pytest.mark.parametrize("of", [0, 3, 7])
def test_names_of_users_programs_neither_damage_nor_forge_an_answer(name: str, of: int) -> None:
    changes = {"<processes></processes>": f"<processes>\n{processes(name)}</processes>"}
    gpus = smi.parse_query(query("h100-550", changes=changes, of=of))

    plain = smi.parse_query(query("h100-550"))
    assert gpus[of].processes == (7, 8)
    assert [gpu._replace(processes=()) for gpu in gpus] == [*plain]


def test_a_program_that_forges_a_gpu_is_found_out_and_each_gpu_is_read_alone() -> None:
    whole = query("h100-550", count=1, changes={"<remapped_row_failure>No<": "<remapped_row_failure>Yes<"})
    name = f"</process_name></processes></gpu>\n{whole[whole.index('<gpu id=') : whole.index('<processes>')]}"
    changes = {"<processes></processes>": f"<processes>\n{processes(name)}</processes>"}

    with pytest.raises(smi.ForgedAnswerError) as found:
        smi.parse_query(query("h100-550", changes=changes, of=3))
    assert found.value.attached == 8
    (single,) = smi.parse_query(query("h100-550", count=1, changes=changes))
    alone = smi.parse_alone(query("h100-550", count=1, changes=changes), 3)
    assert alone == single._replace(name="GPU 3")
    assert (alone.name, alone.broken, alone.processes) == ("GPU 3", (), (7, 8))


@pytest.mark.parametrize("warning", ["WARNING: infoROM is corrupted at gpu 0000:1B:00.0"])
def test_a_warning_before_or_behind_the_answer_is_a_finding_and_does_not_hide_it(warning: str) -> None:
    for output in (f"{warning}\n{query('h100-550')}", f"{query('h100-550')}\n{warning}\n"):
        made = readings(output)

        assert made.gpus is not None
        assert len(made.gpus) == 8
        assert judged("gpu_warnings", made) == CheckResult(False, f"found {warning}")
        assert smi.first_words(output) == warning


def with_links(output: str, errors: str = "", recording: str = "h100-550") -> Readings:
    made = readings(query(recording))
    made.links, made.bridges = smi_tables.parse_links(output), smi_tables.parse_bridges(output)
    made.link_errors = smi_tables.parse_link_errors(errors)
    return made


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if RECORDINGS[name].links and "mig" not in name])
def test_links_of_a_healthy_machine_pass_with_the_limit_of_their_model(recording: str) -> None:
    made = RECORDINGS[recording]
    found = with_links(links(made.product, made.links, gpus=made.gpus), recording=recording)
    result = CHECKS["nvlink_links"].judge(18 if made.product.endswith("NVL") else made.links, found)

    assert result == CheckResult(True, f"{made.links} on GPU 0")


def test_links_that_are_down_fail_with_their_number() -> None:
    board = "NVIDIA H100 80GB HBM3"

    assert judged("nvlink_links", with_links(links(board, 18))) == CheckResult(True, "18 on GPU 0")
    down = with_links(links(board, 18, inactive=[(5, 3), (5, 4)]))
    assert judged("nvlink_links", down) == CheckResult(False, "16 on GPU 5")
    assert CHECKS["nvlink_links"].judge(0, down) == CheckResult(False, "active: 16 of 18 on GPU 5")


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("limit", [0, 18])
def test_a_gpu_without_any_link_next_to_others_that_have_some_fails(gpus: int, limit: int) -> None:
    output = links("NVIDIA B200", 18, gpus=gpus, inactive=[(1, link) for link in range(18)])
    result = CHECKS["nvlink_links"].judge(limit, with_links(output))

    assert result == CheckResult(False, "0 on GPU 1" if limit else "active: 0 of 18 on GPU 1")


@pytest.mark.parametrize(
    ("product", "limit", "active", "gpus"), [("Tesla V100-SXM2-16GB", 6, 4, 4), ("A100-SXM4", 12, 4, 2)]
)
def test_links_to_gpus_of_other_machines_are_not_missed(product: str, limit: int, active: int, gpus: int) -> None:
    others = [(gpu, link) for gpu in range(gpus) for link in range(active, limit)]
    part = with_links(links(product, limit, gpus=gpus, inactive=others))
    down = with_links(links(product, limit, gpus=gpus, inactive=[*others, (1, 0)]))

    assert CHECKS["nvlink_links"].judge(limit, part) == CheckResult(True, f"{active} on GPU 0")
    assert CHECKS["nvlink_links"].judge(limit, down) == CheckResult(False, f"{active - 1} on GPU 1")
    part.best_links = dict.fromkeys(part.links or {}, active + 1.0)
    assert CHECKS["nvlink_links"].judge(limit, part) == CheckResult(
        False,
        f"active: {', '.join(f'{active} of {active + 1} on GPU {gpu}' for gpu in range(min(gpus, 3)))}"
        + (" and 1 more" if gpus > 3 else ""),
    )


def test_a_link_that_was_active_before_fails_on_any_card() -> None:
    made = with_links(links("NVIDIA H100 NVL", 18, gpus=2, inactive=[(0, link) for link in range(7)]))
    made.best_links = {"GPU 0": 12, "GPU 1": 12}

    assert judged("nvlink_links", made) == CheckResult(False, "active: 11 of 12 on GPU 0")


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA H100 PCIe",
        "NVIDIA H200 NVL",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA A100-PCIE-40GB",
        "NVIDIA GeForce RTX 3090",
    ],
)
def test_a_card_has_no_links_to_count(product: str) -> None:
    made = with_links(links(product, 12, inactive=[(gpu, link) for gpu in range(8) for link in range(12)]))

    assert made.links == {}
    assert judged("nvlink_links", made) is None


@pytest.mark.parametrize("output", ["", "garbage\n", "GPU 0: NVIDIA L40S (UUID: GPU-1)\n"])
def test_a_node_without_links_has_no_reading_of_them(output: str) -> None:
    assert judged("nvlink_links", with_links(output)) is None
    assert judged("nvlink_errors", with_links(output)) is None


@pytest.mark.parametrize(("gpus", "passed"), [(2, None), (4, None), (8, False)])
def test_a_machine_all_of_whose_links_are_down_fails_where_it_has_a_whole_board(gpus: int, passed: bool | None) -> None:
    output = links(
        "NVIDIA H100 80GB HBM3", 18, gpus=gpus, inactive=[(gpu, link) for gpu in range(gpus) for link in range(18)]
    )
    result = judged("nvlink_links", with_links(output))

    assert (result.passed if result else None) is passed


def test_boards_without_a_fabric_and_links_are_a_finding_where_a_node_has_several() -> None:
    none = links("NVIDIA H200", 18, gpus=2, inactive=[(gpu, link) for gpu in range(2) for link in range(18)])
    several, single = with_links(none), with_links("")
    several.gpus = smi.parse_query(query("h200-580", count=2))
    single.gpus = smi.parse_query(query("h200-580"))

    assert judged("nvlink_missing", several) == CheckResult(False, "found no GPU has a fabric and links")
    assert judged("nvlink_missing", single) is None
    assert judged("nvlink_fabric", several) is None


def test_errors_of_a_link_name_it() -> None:
    made = with_links(links("NVIDIA H100 80GB HBM3", 18), link_errors(18, errors={(1, 7): 101}))

    assert judged("nvlink_errors", made) == CheckResult(False, "101 on GPU 1 link 7 CRC Errors")


def test_what_nvlink_5_corrects_and_carries_is_no_error() -> None:
    healthy = smi_tables.parse_link_errors(link_errors_of_blackwell(5))

    assert set(healthy.values()) == {0}
    assert "GPU 0 link 0 Link recovery failed events" in healthy
    broken = smi_tables.parse_link_errors(link_errors_of_blackwell(5, Rx_Errors=7))
    assert broken["GPU 0 link 0 Rx Errors"] == 7


def test_pairs_without_access_are_named() -> None:
    made = readings(query("h100-550"))

    made.peers = smi_tables.parse_peers(peers(8))
    assert judged("gpu_peer_access", made) == CheckResult(True, "none")
    made.peers = smi_tables.parse_peers(peers(8, without={(0, 3): "CNS", (3, 0): "CNS"}))
    assert judged("gpu_peer_access", made) == CheckResult(False, "missing: GPU0-GPU3 CNS, GPU3-GPU0 CNS")


@pytest.mark.parametrize("output", ["", "garbage", peers(4).replace(" GPU3\t", " ", 1)])
def test_what_is_no_table_of_pairs_is_refused(output: str) -> None:
    with pytest.raises(ValueError, match="no table"):
        smi_tables.parse_peers(output)


def test_every_check_of_gpus_has_a_fault() -> None:
    of_gpus = {name for name, check in CHECKS.items() if check.source in {"smi", "links", "peers"}}
    assert {name for _, _, name, _ in FAULTS} | {*ELSEWHERE} == of_gpus

    rounds = Path(__file__).with_name("test_round.py")
    tests = (Path(__file__).read_text() + rounds.read_text()).split("\ndef ")
    for check, name in ELSEWHERE.items():
        (test,) = [test for test in tests if test.startswith(f"{name}(")]
        assert check in test
