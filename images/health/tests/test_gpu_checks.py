"""Each check of GPUs: healthy outputs of several drivers, each fault, and outputs that are none."""

from pathlib import Path

import pytest

from health_testing.smi_outputs import GENERATIONS, link_errors, links, peers, query
from node_health import smi
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
OF_QUERY = [name for name, each in CHECKS.items() if each.source == "smi"]

NEW = ("h100-550", "b200-580")
ROWS = ("a100-525", *NEW)
ALL = ("v100-470", *ROWS)

FAULTS: list[tuple[tuple[str, ...], dict[str, str], str, str]] = [
    (("v100-470",), {"</device_memory><total>0</total></double_bit>": "</device_memory><total>3</total></double_bit>"},
     "gpu_ecc_uncorrected", "3 on GPU 2"),
    (("a100-525",), {"<sram_uncorrectable>0<": "<sram_uncorrectable>1<"}, "gpu_ecc_uncorrected", "1 on GPU 2"),
    (NEW, {"<sram_uncorrectable_secded>0<": "<sram_uncorrectable_secded>1<"}, "gpu_ecc_uncorrected", "1 on GPU 2"),
    (ROWS, {"<dram_uncorrectable>0<": "<dram_uncorrectable>2<"}, "gpu_ecc_uncorrected", "2 on GPU 2"),
    (ROWS, {"<dram_correctable>0<": "<dram_correctable>10001<"}, "gpu_ecc_corrected", "10001 on GPU 2"),
    (("v100-470",), {"<pending_retirement>No<": "<pending_retirement>Yes<"}, "gpu_remap_pending", "pending on GPU 2"),
    (ROWS, {"<remapped_row_pending>No<": "<remapped_row_pending>Yes<"}, "gpu_remap_pending", "pending on GPU 2"),
    (ROWS, {"<remapped_row_failure>No<": "<remapped_row_failure>Yes<"}, "gpu_remap_failed", "failed on GPU 2"),
    (("h100-550",), {"<reset_required>No<": "<reset_required>Yes<"}, "gpu_recovery", "needed: Reset of GPU 2"),
    (("b200-580",), {"<gpu_recovery_action>None<": "<gpu_recovery_action>Reboot<"},
     "gpu_recovery", "needed: Reboot of GPU 2"),
    (("v100-470", "a100-525"), {"hw_thermal_slowdown>Not Active<": "hw_thermal_slowdown>Active<"},
     "gpu_slowdown", "active: hw_thermal_slowdown on GPU 2"),
    (NEW, {"hw_power_brake_slowdown>Not Active<": "hw_power_brake_slowdown>Active<"},
     "gpu_slowdown", "active: hw_power_brake_slowdown on GPU 2"),
    (("v100-470", "a100-525"), {"<gpu_temp>34 C<": "<gpu_temp>88 C<"}, "gpu_temperature", "-3 C on GPU 2"),
    (NEW, {"<gpu_temp_tlimit>52 C<": "<gpu_temp_tlimit>-1 C<"}, "gpu_temperature", "-1 C on GPU 2"),
    (NEW, {"<memory_temp>44 C<": "<memory_temp>97 C<"}, "gpu_memory_temperature", "-2 C on GPU 2"),
    (ALL, {"<current_link_width>16x<": "<current_link_width>8x<"}, "gpu_pcie_width", "found 8 of 16 lanes on GPU 2"),
    (ALL, {"<current_link_gen>5<": "<current_link_gen>1<"}, "gpu_pcie_generation", "found 1 of 5 on GPU 2"),
    (ALL, {"<processes>": "<processes><process_info><pid>4711</pid><type>C</type></process_info>"},
     "gpu_processes", "1 on GPU 2"),
    (ALL, {"<used>4 MiB<": "<used>70000 MiB<"}, "gpu_memory_used", "70000 MiB on GPU 2"),
    (NEW, {"<state>Completed<": "<state>In Progress<"}, "nvlink_fabric", "state In Progress on GPU 2"),
    (NEW, {"<status>Success<": "<status>Failure<"}, "nvlink_fabric", "state Failure on GPU 2"),
]  # fmt: skip

ELSEWHERE = {
    "gpu_tool": "test_a_node_without_nvidia_smi_is_logged_and_not_drained",
    "gpu_query": "test_a_tool_that_answers_with_something_else_is_a_finding",
    "gpu_count": "test_a_lost_gpu_is_one_too_few",
    "gpu_model": "test_a_product_is_of_the_node_sets_type",
    "gpu_pcie_replays": "test_packets_sent_again_count_from_the_last_hour",
    "nvlink_links": "test_links_that_are_down_fail_with_their_number",
    "nvlink_errors": "test_errors_of_a_link_name_it",
    "gpu_peer_access": "test_pairs_without_access_are_named",
}
"""Tests of faults that are no change of one GPU's description, here and in test_round.py."""


def readings(output: str, gpu_type: str = "") -> Readings:
    settings = NodeSettings({}, 10, 60, 8, gpu_type, 1024, (), "/jail/active", (), 0)
    made = Readings(settings, has_smi=True, smi_problem="")
    made.gpus = smi.parse_query(output)
    made.replays = {each.name: each.replays or 0 for each in made.gpus}
    return made


def judged(name: str, made: Readings) -> CheckResult | None:
    return CHECKS[name].judge(LIMITS.get(name, 0), made)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", OF_QUERY)
def test_a_healthy_board_passes_each_check_that_it_has_values_for(name: str, generation: str) -> None:
    result = judged(name, readings(query(generation)))

    assert result is None or result.passed
    if result is None:
        older = {"gpu_recovery": (), "nvlink_fabric": ("v100-470", "a100-525"), "gpu_model": ALL}
        assert generation in older.get(name, ()), "a value that the output has was not read"


@pytest.mark.parametrize(
    ("generation", "changes", "name", "value"),
    [(generation, *rest) for generations, *rest in FAULTS for generation in generations],
)
def test_a_fault_of_one_gpu_fails_its_check_and_no_other(
    generation: str, changes: dict[str, str], name: str, value: str
) -> None:
    made = readings(query(generation, changes=changes, of=2))

    assert judged(name, made) == CheckResult(passed=False, value=value)
    others = {each: judged(each, made) for each in OF_QUERY if each != name}
    assert {each for each, result in others.items() if result is not None and not result.passed} == set()


def test_a_lost_gpu_is_one_too_few() -> None:
    assert judged("gpu_count", readings(query("h100-550", count=7))) == CheckResult(passed=False, value="7")


def test_an_idle_gpu_may_lower_its_link() -> None:
    changes = {"<current_link_gen>5<": "<current_link_gen>1<", ">P0<": ">P8<"}

    assert judged("gpu_pcie_generation", readings(query("h100-550", changes=changes))) == CheckResult(True, "none")


def test_packets_sent_again_count_from_the_last_hour() -> None:
    made = readings(query("h100-550"))
    made.replays = {"GPU 3": 481}

    assert judged("gpu_pcie_replays", made) == CheckResult(passed=False, value="481 on GPU 3")


@pytest.mark.parametrize(
    ("gpu_type", "generation", "passed"),
    [
        ("h100", "h100-550", True),
        ("nvidia_h100_80gb", "h100-550", True),
        ("a100", "h100-550", False),
        ("b200", "b200-580", True),
        ("v100", "v100-470", True),
    ],
)
def test_a_product_is_of_the_node_sets_type(gpu_type: str, generation: str, passed: bool) -> None:
    result = judged("gpu_model", readings(query(generation), gpu_type))

    assert result is not None
    assert result.passed is passed
    if not passed:
        assert result.value.startswith("found NVIDIA H100 80GB HBM3 on GPU 0, ")
        assert result.value.endswith(" and 5 more")


@pytest.mark.parametrize("state", ["N/A", "[N/A]", "Not Supported", "[Not Supported]", "Unknown Error", ""])
def test_a_value_that_a_gpu_does_not_have_is_no_value(state: str) -> None:
    changes = {"<gpu_temp_tlimit>52 C<": f"<gpu_temp_tlimit>{state}<", "<used>4 MiB<": f"<used>{state}<"}
    made = readings(query("h100-550", count=1, changes=changes))

    assert made.gpus is not None
    assert made.gpus[0].memory_used_mib is None
    assert judged("gpu_memory_used", made) is None


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\x00\xff garbage",
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n",
        query("h100-550")[:2000],
        query("h100-550").replace("<attached_gpus>8<", "<attached_gpus>7<"),
        '<?xml version="1.0" ?><html></html>',
    ],
)
def test_what_is_no_answer_gives_no_reading(output: str) -> None:
    with pytest.raises(ValueError, match=r"no XML|announced"):
        smi.parse_query(output)


@pytest.mark.parametrize(
    "name",
    [
        "java -Durl=a&b",
        "VLLM::Worker<0>",
        "\x01\x1b[31m",
        "</process_name></process_info></processes></gpu><gpu><product_name>",
        "two\nlines & more",
    ],
)
def test_names_of_users_programs_neither_damage_nor_forge_an_answer(name: str) -> None:
    processes = "".join(
        f"<process_info>\n<pid>{pid}</pid>\n<type>C</type>\n<process_name>{name}</process_name>\n"
        "<used_memory>4 MiB</used_memory>\n</process_info>\n"
        for pid in (7, 8)
    )
    output = query("h100-550", changes={"<processes></processes>": f"<processes>\n{processes}</processes>"}, of=3)
    gpus = smi.parse_query(output)

    assert len(gpus) == 8
    assert gpus[3].processes == (7, 8)


def test_a_warning_before_the_answer_does_not_hide_it() -> None:
    assert len(smi.parse_query("WARNING: infoROM is corrupted at gpu 0000:1B:00.0\n" + query("h100-550"))) == 8


def with_links(output: str, errors: str = "") -> Readings:
    made = readings(query("h100-550"))
    made.links = {gpu: each for gpu, each in smi.parse_links(output).items() if each} or None
    made.link_errors = smi.parse_link_errors(errors)
    return made


def test_links_that_are_down_fail_with_their_number() -> None:
    board = "NVIDIA H100 80GB HBM3"

    assert judged("nvlink_links", with_links(links(board, 18))) == CheckResult(True, "18 on GPU 0")
    down = with_links(links(board, 18, inactive=[(5, 3), (5, 4)]))
    assert judged("nvlink_links", down) == CheckResult(False, "16 on GPU 5")


@pytest.mark.parametrize("product", ["NVIDIA H100 PCIe", "NVIDIA H200 NVL", "NVIDIA A100 80GB PCIe"])
def test_a_card_has_no_links_to_count(product: str) -> None:
    made = with_links(links(product, 12, inactive=[(0, each) for each in range(12)]))

    assert made.links is None
    assert judged("nvlink_links", made) is None


@pytest.mark.parametrize("output", ["", "garbage\n", "GPU 0: NVIDIA L40S (UUID: GPU-1)\n"])
def test_a_node_without_links_has_no_reading_of_them(output: str) -> None:
    assert judged("nvlink_links", with_links(output)) is None
    assert judged("nvlink_errors", with_links(output)) is None


def test_errors_of_a_link_name_it() -> None:
    made = with_links(links("NVIDIA H100 80GB HBM3", 18), link_errors(18, errors={(1, 7): 101}))

    assert judged("nvlink_errors", made) == CheckResult(False, "101 on GPU 1 link 7 CRC Errors")


def test_pairs_without_access_are_named() -> None:
    made = readings(query("h100-550"))

    made.peers = smi.parse_peers(peers(8))
    assert judged("gpu_peer_access", made) == CheckResult(True, "none")
    made.peers = smi.parse_peers(peers(8, without={(0, 3): "CNS", (3, 0): "CNS"}))
    assert judged("gpu_peer_access", made) == CheckResult(False, "missing: GPU0-GPU3 CNS, GPU3-GPU0 CNS")


@pytest.mark.parametrize("output", ["", "garbage", peers(4).replace(" GPU3\t", " ", 1)])
def test_what_is_no_table_of_pairs_is_refused(output: str) -> None:
    with pytest.raises(ValueError, match="no table"):
        smi.parse_peers(output)


def test_every_check_of_gpus_has_a_fault() -> None:
    of_gpus = {name for name, each in CHECKS.items() if each.source in {"smi", "links", "peers"}}
    assert {name for _, _, name, _ in FAULTS} | {*ELSEWHERE} == of_gpus

    rounds = Path(__file__).with_name("test_round.py")
    tests = (Path(__file__).read_text() + rounds.read_text()).split("\ndef ")
    for check, name in ELSEWHERE.items():
        (test,) = [each for each in tests if each.startswith(f"{name}(")]
        assert check in test
