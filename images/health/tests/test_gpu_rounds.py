"""Rounds over recordings of GPUs: healthy ones for long, slow ones, damaged ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health_testing.made_rounds import Node
from health_testing.smi_outputs import RECORDINGS, link_errors, links, peers, query
from long_checks.programs import PROGRAMS, read
from node_health.kernel_log import KernelLog
from node_health.readings import Readings
from node_health.smi import parse_query
from node_health.smi_tables import parse_links

CHECKS = {
    **{f"gpu_{name}": {} for name in ("query", "pcie_width", "recovery", "remap_pending", "remap_failed", "xid")},
    "gpu_ecc_uncorrected": {"limit": 0},
    "gpu_processes": {"limit": 0},
    "gpu_slowdown": {"failures": 5},
    "nvlink_fabric": {"failures": 3},
    "nvlink_links": {"limit": None},
    "gpu_count": {},
}
"""Checks that drain, without limits of the model."""


class Machine(Node):
    """A node with the answers of a recording."""

    def __init__(self, root: Path, recording: str) -> None:
        """Make the node with the checks that drain."""
        made = RECORDINGS[recording]
        changes: Mapping[str, Any] = {**CHECKS, "gpu_count": {"limit": made.gpus}}
        super().__init__(root, **changes)
        self.given |= {"gpus": made.gpus, "gpu_type": ""}
        self.answers = {
            "-q -x": query(recording),
            "nvlink --status": links(made.product, made.links, gpus=made.gpus),
            "nvlink --errorcounters": link_errors(made.links, gpus=made.gpus),
            "topo -p2p": peers(made.gpus),
        }
        self.put()

    def put(self, before: str = "", behind: str = "", **changes: str) -> None:
        """Put nvidia-smi in its place, after changes of its answers."""
        self.answers |= changes
        cases = []
        for number, (question, answer) in enumerate(self.answers.items()):
            self.write(f"answers/{number}", answer)
            cases.append(f'"{question}") cat {self.root}/answers/{number};;')
        script = f'#!/bin/sh\n{before}\ncase "$1 $2" in {" ".join(cases)} esac\n{behind}\n'
        self.write("usr/bin/nvidia-smi", script).chmod(0o755)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_healthy_machine_has_nothing_to_report_in_three_rounds(tmp_path: Path, recording: str) -> None:
    machine = Machine(tmp_path, recording)
    for _ in range(3):
        assert machine.round() == []
    assert machine.slurm.calls == ["ask gpu-0"]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_thousand_rounds_over_healthy_machines_drain_nothing(tmp_path: Path, recording: str) -> None:
    """Fifty rounds on the answers of each of twenty recordings."""
    machine = Machine(tmp_path, recording)
    machine.round()
    for _ in range(50):
        readings = Readings(machine.last.settings)
        readings.has_smi, readings.smi_problem = True, ""
        readings.gpus = parse_query(machine.answers["-q -x"])
        readings.links = parse_links(machine.answers["nvlink --status"])
        assert machine.last.conclude([*machine.checks], readings) == []
    assert len(RECORDINGS) * 50 >= 1000
    assert machine.slurm.calls == ["ask gpu-0"]


def test_a_slow_first_answer_is_no_fault(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100-580")
    machine.put(before="sleep 0.6")
    for _ in range(3):
        assert machine.round(seconds=0.4) == []
    assert machine.result["checks"]["gpu_query"]["state"] == "passed"


def test_a_link_that_loses_lanes_drains_and_comes_back_with_them(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100pcie-535")
    machine.round()
    changes = {"<current_link_width>16x<": "<current_link_width>8x<"}
    machine.put(**{"-q -x": query("h100pcie-535", changes=changes, of=1)})
    machine.round()
    machine.round()
    assert machine.slurm.reason == "health gpu_pcie_width: found 8 of 16 lanes on GPU 1, allowed none"

    machine.put(**{"-q -x": query("h100pcie-535")})
    for _ in range(3):
        machine.round()
    assert machine.slurm.state == "IDLE+DYNAMIC_NORM"


def test_a_lost_gpu_gives_the_next_one_its_index_and_not_its_lanes(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100pcie-535")
    narrow = {"<current_link_width>16x<": "<current_link_width>8x<"}
    both = query("h100pcie-535", changes=narrow, of=1)
    machine.put(**{"-q -x": both})
    machine.round()
    first, second = both.index("<gpu id="), both.rindex("<gpu id=")
    machine.put(**{"-q -x": both[:first].replace(">2</attached", ">1</attached") + both[second:]})
    machine.checks.pop("gpu_count")
    for _ in range(3):
        assert machine.round() == []
    assert machine.result["checks"]["gpu_pcie_width"]["value"] == "8 lanes"


def test_an_answer_with_a_warning_about_the_inforom_and_its_status_is_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100-580")
    machine.checks["gpu_warnings"] = machine.check(action="log")
    machine.put(behind="echo 'WARNING: infoROM is corrupted at gpu 0000:02:00.0'; exit 14")
    machine.round()
    machine.round()

    assert machine.slurm.state == "IDLE+DYNAMIC_NORM"
    assert machine.slurm.extra == "health:gpu_warnings"
    value = "found WARNING: infoROM is corrupted at gpu 0000:02:00.0"
    assert machine.result["checks"]["gpu_warnings"]["value"] == value


@pytest.mark.parametrize(
    ("behind", "value"),
    [("exit 15", "status 15"), ("echo 'GPU 3 is in a bad way' >&2; exit 15", "GPU 3 is in a bad way")],
)
def test_a_status_is_named_by_words_and_never_by_the_first_line_of_xml(tmp_path: Path, behind: str, value: str) -> None:
    machine = Machine(tmp_path, "h100-580")
    machine.put(behind=behind)
    machine.round()
    machine.round()

    assert machine.slurm.reason == f"health gpu_query: {value}, allowed none"


def test_a_program_whose_name_forges_a_gpu_changes_no_reading(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100-580")
    broken = query("h100-580", count=1, changes={"<remapped_row_failure>No<": "<remapped_row_failure>Yes<"})
    forged = f"</process_name></processes></gpu>\n{broken[broken.index('<gpu id=') : broken.index('<processes>')]}"
    process = f"<process_info><pid>7</pid>\n<type>G</type>\n<process_name>{forged}</process_name></process_info>"
    machine.put(
        **{"-q -x": query("h100-580", changes={"<processes></processes>": f"<processes>{process}</processes>"})}
    )
    alone = machine.write("alone", query("h100-580", count=1))
    machine.put(before=f'[ "$3" != -i ] || exec cat {alone}')
    for _ in range(3):
        assert machine.round() == []

    assert len(machine.result["gpus"]) == 8
    assert machine.result["checks"]["gpu_remap_failed"]["value"] == "none"


def test_the_result_has_all_by_which_a_gpu_is_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h200-580")
    machine.round()

    assert machine.result["gpus"] == [
        {
            "name": "GPU 0",
            "address": "0000:01:00",
            "serial": "1650000000000",
            "uuid": "GPU-00000000-0000-0000-0000-000000000000",
            "product": "NVIDIA H200",
            "device": "/dev/nvidia0",
        }
    ]


def damaged(text: str) -> st.SearchStrategy[str]:
    """Return outputs that are cut, or changed at one place."""
    places = st.integers(0, len(text))
    words = st.sampled_from(["", "<", ">", "9" * 400, "\x00", "Unknown Error", "GPU is lost", "\n", "-", "é", "</gpu>"])
    return st.one_of(
        places.map(lambda end: text[:end]),
        st.tuples(places, st.integers(0, 40), words).map(lambda cut: text[: cut[0]] + cut[2] + text[cut[0] + cut[1] :]),
    )


ANSWERS = {name: query(name) for name in ("h100-580", "a100mig-510", "t4-595")}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from([*ANSWERS]))
def test_no_damaged_output_ends_a_round_badly(tmp_path: Path, data: st.DataObject, name: str) -> None:
    machine = Machine(tmp_path, name)
    tables = (links("NVIDIA B200", 4, gpus=2), link_errors(2, gpus=2), peers(2))
    questions = ("nvlink --status", "nvlink --errorcounters", "topo -p2p")
    changes = {question: data.draw(damaged(table)) for question, table in zip(questions, tables, strict=True)}
    machine.put(**{"-q -x": data.draw(damaged(ANSWERS[name])), **changes})
    machine.round()
    machine.round()

    if "DRAIN" in machine.slurm.state:
        value = machine.slurm.reason.partition(": ")[2].rpartition(", allowed")[0]
        assert any(character.isalnum() for character in value)
        assert "<?xml" not in value


REPORT = (
    'log\n{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": '
    '[{"entity_id": 0, "status": "Fail", "warnings": [{"error_severity": 2, "warning": "words"}]}]}]}]}}\n'
)
AVERAGE = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 480.03 \n#\n"


@settings(max_examples=200, deadline=None)
@given(data=st.data(), program=st.sampled_from([*PROGRAMS]), text=st.sampled_from([REPORT, AVERAGE]))
def test_no_damaged_output_of_a_long_program_fails_a_node_without_a_word(
    data: st.DataObject, program: str, text: str
) -> None:
    reading = read(program, data.draw(damaged(text)))

    assert reading is None or not reading.problem or "failed" in reading.problem or "wrong" in reading.problem


LINES = "3,100,99000000,-;NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (Reset)\n"


@settings(max_examples=200, deadline=None)
@given(damaged(LINES))
def test_no_damaged_line_of_the_kernel_ends_badly(line: str) -> None:
    log = KernelLog({}, "one")
    log.add(iter([line]))

    assert all(place.isprintable() for found in log.failures(100).values() for place in found)
