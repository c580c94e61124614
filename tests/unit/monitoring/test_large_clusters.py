"""The exporter, `soperator status`, and previews at the default of `slurm.max_nodes`: calls, bytes, and memory."""

import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from exporter_testing.answers import DIAG, NODES, job_line
from slurm_exporter.collection import Collector
from slurm_exporter.command import text_of

from soperator_pulumi.cli import status
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.progress import MachineClock
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.spec.drain import DrainSpec
from soperator_pulumi.spec.metrics import MetricsSpec
from soperator_pulumi.spec.slurm import SlurmSpec
from soperator_pulumi.spec.types.quantity import amount

MANY = SlurmSpec().max_nodes
TIMES = 64
FEW = MANY // TIMES
LONGER_NAMES = 1.1

RECORDED = Path(__file__).parents[1] / "slurm/recorded/24.11"


def peak_bytes(act: Callable[[], object]) -> int:
    """Return the most memory that an act has at a time, in addition to what there was before."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exporter_rounds(nodes: int) -> tuple[list[str], int, int]:
    """Return the calls of two rounds, the bytes of a page, and the memory, with a job on every node."""
    node = NODES.splitlines()[1]
    jobs = (job_line(JobID=str(job), UserName=f"user{job % 200}", NodeList=f"gpu-{job}") for job in range(nodes))
    answers = {
        "scontrol": "\n".join(node.replace("gpu-0", f"gpu-{ordinal}") for ordinal in range(nodes)).encode(),
        "squeue": b"".join(jobs),
        "sdiag": DIAG.encode(),
    }
    calls: list[str] = []

    def run(command: Sequence[str]) -> bytes:
        calls.append(command[0])
        return bytes(bytearray(answers[command[0]]))  # a new one each time, as of a program

    collector, pages = Collector(), [b""]

    def rounds() -> None:
        for _ in range(2):  # the second has the most to hold: its own answers, and the page of the first
            collector.round(run)
            pages[0] = text_of(collector)

    peak = peak_bytes(rounds)
    assert collector.nodes() == {f"gpu-{ordinal}" for ordinal in range(nodes)}
    return calls, len(pages[0]), peak


def test_the_exporter_asks_as_often_for_many_nodes_and_needs_half_of_its_memory() -> None:
    few_calls, few_page, few_peak = exporter_rounds(FEW)
    calls, page, peak = exporter_rounds(MANY)

    assert calls == few_calls == ["scontrol", "squeue", "sdiag"] * 2
    assert page <= few_page * TIMES * LONGER_NAMES
    assert peak <= few_peak * TIMES * LONGER_NAMES
    limit = MetricsSpec().pod_resources.limits.memory
    assert limit is not None
    assert peak <= amount(limit) / 2


def many(kind: str, count: int, change: Callable[[int], dict[str, Any]]) -> str:
    """Return a recorded answer with so many of its records, in turn."""
    answer = json.loads((RECORDED / f"{kind}.json").read_text())
    records = answer[kind]
    answer[kind] = [{**records[number % len(records)], **change(number)} for number in range(count)]
    return json.dumps(answer)


class Slurmctld:
    """Transport to a slurmctld with so many nodes, and a job on every one."""

    def __init__(self, nodes: int) -> None:
        self._answers = {
            "nodes": many("nodes", nodes, lambda ordinal: {"name": f"gpu-{ordinal}"}),
            "jobs": many("jobs", nodes, lambda ordinal: {"job_id": ordinal + 1, "nodes": f"gpu-{ordinal}"}),
            "reservations": (RECORDED / "reservations.json").read_text(),
        }
        self.calls: list[str] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        del stdin, timeout_seconds
        self.calls.append(" ".join(command))
        return Answer(0, self._answers["jobs" if command[0] == "squeue" else command[2]], "")


def status_of(nodes: int) -> tuple[list[str], int, int]:
    """Return the calls of a status, its bytes, and its memory."""
    slurmctld, lines = Slurmctld(nodes), [""]

    def show() -> None:
        found = ScontrolClient(slurmctld).snapshot()
        assert (len(found.nodes), len(found.jobs)) == (nodes, nodes)
        lines.extend(status.text("hpc", found))
        json.dumps(status.record("hpc", found))

    peak = peak_bytes(show)
    return slurmctld.calls, len("\n".join(lines)), peak


def preview_of(nodes: int) -> tuple[list[str], int, int]:
    """Return the calls of a preview in which a quarter of the nodes leaves, its bytes, and its memory."""
    slurmctld, lines = Slurmctld(nodes), [""]
    names, left = [f"gpu-{ordinal}" for ordinal in range(nodes)], nodes * 3 // 4
    leaving = DrainRequest("gpu", tuple(names[left:]), tuple(names[:left]), DrainSpec(), before=nodes, after=left)
    draining = Draining(DrainContext(ScontrolClient(slurmctld), "hpc", "hpc", lambda _: None, MachineClock()))

    peak = peak_bytes(lambda: lines.extend(draining.preview([leaving], Operation.SCALE_DOWN)))
    return slurmctld.calls, len("\n".join(lines)), peak


@pytest.mark.parametrize("act", [status_of, preview_of])
def test_a_status_and_a_preview_of_many_nodes_ask_three_times_and_need_memory_by_their_number(
    act: Callable[[int], tuple[list[str], int, int]],
) -> None:
    few_calls, few_bytes, few_peak = act(FEW)
    calls, printed, peak = act(MANY)

    assert calls == few_calls
    assert len(calls) == 3
    assert printed <= few_bytes * TIMES * LONGER_NAMES
    assert peak <= few_peak * TIMES * LONGER_NAMES
