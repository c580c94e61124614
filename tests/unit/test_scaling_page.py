"""Examples of docs/scaling.md, and the README's picture: the code prints them, and the package takes them."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from soperator_pulumi.operations.nodes.drain_override import policy_of
from soperator_pulumi.operations.nodes.rolling_update_text import counts, order
from soperator_pulumi.operations.nodes.rolling_update_text import progress as rolling_progress
from soperator_pulumi.operations.nodes.undrain import continue_or_undo
from soperator_pulumi.slurm.drain.lowered_sizes import held_lines
from soperator_pulumi.slurm.drain.plan import Plan, Waiting, plan
from soperator_pulumi.slurm.drain.plan_text import aborted, preview, progress, time_left
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job, Node, NodeSize, Reservation, Snapshot
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.drain import DrainSpec, OnTimeout
from soperator_pulumi.spec.types.duration import duration_text
from tests.defined_tests import defined_tests
from tests.scaling_cases import SHOWN_BY
from tests.unit.operations.nodes.test_recreation import a_pod, a_renewal
from tools import paths

DOCS = paths.ROOT / "docs"
PAGE = (DOCS / "scaling.md").read_text()
CASES = (DOCS / "scaling-cases.md").read_text()
PICTURE = (DOCS / "pictures" / "preview.txt").read_text()
YOUR_CLUSTER = (DOCS / "your-cluster.md").read_text()

NOW = datetime(2026, 11, 24, 13, 8, tzinfo=UTC).timestamp()
RUN = Marker("hpc", Operation.SCALE_DOWN, "1a2b3c")
WAITED_SECONDS = 48 * 60.0


def at(hour: int, minute: int) -> float:
    return datetime(2026, 11, 24, hour, minute, tzinfo=UTC).timestamp()


TRAIN = Job(
    4711,
    "alice",
    "train.sh",
    frozenset({"main"}),
    frozenset({"RUNNING"}),
    "gpu-61",
    frozenset({"gpu-61"}),
    ends_at=at(14, 20),
    requeueable=True,
)
MAINTENANCE = Reservation("maint-7", frozenset({"gpu-62", "gpu-63"}), at(12, 0), at(18, 0), "root")


def gpu(*ordinals: int) -> tuple[str, ...]:
    return tuple(f"gpu-{ordinal}" for ordinal in ordinals)


LEAVING = DrainRequest("gpu", gpu(60, 61, 62, 63), gpu(*range(60)), DrainSpec(), 64, 60)


def said(busy: tuple[str, ...], jobs: tuple[Job, ...] = (TRAIN,), *, drained: bool = False) -> Snapshot:
    """Return what slurmctld says of 64 nodes, of which some are busy; those that leave may be drained by now."""
    nodes = {}
    for name in gpu(*range(64)):
        ours = drained and name in LEAVING.names
        flags = {"ALLOCATED" if name in busy else "IDLE"} | ({"DRAIN"} if ours else set())
        nodes[name] = Node(name, frozenset(flags), frozenset(), str(RUN) if ours else "")
    return Snapshot(nodes, jobs, (MAINTENANCE,), NOW)


def scale_down() -> str:
    before = said(gpu(*range(57), 61))
    planned = plan([LEAVING], before, RUN, elapsed_seconds=0, now=NOW)
    return "\n".join(preview(planned, [LEAVING], before, NOW, cluster="hpc", zone=UTC))


def waiting() -> str:
    planned = plan([LEAVING], said(gpu(61), drained=True), RUN, elapsed_seconds=WAITED_SECONDS, now=NOW)
    line = progress(planned, [LEAVING], NOW, cluster="hpc", elapsed_seconds=WAITED_SECONDS, zone=UTC)
    return f"{line}. {interrupted()}"


def time_is_up() -> str:
    planned = plan([LEAVING], said(gpu(61), drained=True), RUN, elapsed_seconds=2 * 3600, now=NOW)
    return aborted(planned, [LEAVING], NOW, cluster="hpc", zone=UTC)


def recreation() -> str:
    job = Job(4711, "alice", "train.sh", TRAIN.partitions, TRAIN.state, "gpu-0", frozenset(gpu(0)), ends_at=at(14, 20))
    renewed = DrainRequest("gpu", gpu(0, 1), (), DrainSpec(), 2, 2)
    before = said(gpu(0), (job,))
    marker = Marker("hpc", Operation.ROLLING_UPDATE, "1a2b3c")
    planned = plan([renewed], before, marker, elapsed_seconds=0, now=NOW)
    lines = preview(planned, [renewed], before, NOW, cluster="hpc", zone=UTC)
    return "\n".join([*lines, order(a_renewal([], jobs=[job], size=2), gpu(0, 1))])


def held() -> str:
    job = Job(4712, "alice", "train.sh", TRAIN.partitions, frozenset({"PENDING"}), "", frozenset())
    waiting = replace(job, node_memory_mib=65536)
    wide = replace(job, job_id=4713, node_cpus=96)
    nodes = [
        Node(name, frozenset({"IDLE"}), frozenset(), memory_mib=65536, cpus=96, partitions=TRAIN.partitions)
        for name in gpu(0, 1)
    ]
    before = Snapshot({node.name: node for node in nodes}, (waiting, wide), (), NOW)
    return "\n".join(held_lines("gpu", gpu(0, 1), {"gpu": NodeSize(64512, 92)}, before))


def recreating() -> str:
    job = Job(4711, "alice", "train.sh", TRAIN.partitions, TRAIN.state, "gpu-7", frozenset(gpu(7)), ends_at=at(14, 20))
    new = [a_pod(name, revision="new") for name in gpu(*range(8, 47))]
    hands = {"draining": frozenset(gpu(7)), "joining": frozenset(gpu(40))}
    recreation = a_renewal([], new, [job], size=100, max_unavailable=2, **hands)
    waiting = Plan(waiting={"gpu-7": Waiting("held by job 4711", (job,), job.ends_at)})
    return f"gpu: {rolling_progress(recreation, waiting, NOW, time_left(DrainSpec(), 20 * 60), zone=UTC)}"


def repeated() -> str:
    new = [a_pod(name, revision="new", ready=False, runs=False) for name in gpu(0, 1, 5)]
    found = a_renewal([], new, size=20, max_unavailable=2, tolerated=3)
    live = found.status.live
    stateful_set = {**(live.stateful_set or {}), **live.taken_annotation(gpu(0, 1))}
    found = replace(found, status=replace(found.status, live=replace(live, stateful_set=stateful_set)))
    return "\n".join(f"gpu: {line}" for line in counts(found))


def interrupted() -> str:
    return continue_or_undo(Operation.SCALE_DOWN, [LEAVING])


SHOWN = {
    "the preview of a scale-down": scale_down,
    "the line while it waits": waiting,
    "the error when the time is up": time_is_up,
    "the preview of a rolling update": recreation,
    "the jobs that fit no more": held,
    "the line while it recreates nodes": recreating,
    "which nodes count in a repeated update": repeated,
    "how an interrupted run is gone on with": interrupted,
}


@pytest.mark.parametrize("what", SHOWN)
def test_the_page_shows_what_is_printed(what: str) -> None:
    assert f"```text\n{SHOWN[what]()}\n```" in PAGE


def test_the_page_shows_nothing_else() -> None:
    assert len(re.findall(r"```text\n", PAGE)) == len(SHOWN)


def test_the_readme_s_picture_shows_the_preview_of_a_scale_down() -> None:
    names = ("cpu-0", "cpu-1")
    running: dict[str, Any] = {"nodes": "cpu-[0-1]", "node_names": frozenset(names), "ends_at": at(15, 8)}
    job = replace(TRAIN, job_id=1, user="demo", name="train", **running)
    nodes = {name: Node(name, frozenset({"ALLOCATED"}), frozenset()) for name in names}
    before = Snapshot(nodes, (job,), (), NOW)
    leaving = DrainRequest("cpu", names[1:], names[:1], DrainSpec(), 2, 1)
    planned = plan([leaving], before, RUN, elapsed_seconds=0, now=NOW)
    shown = preview(planned, [leaving], before, NOW, cluster="slurm", zone=UTC)

    assert [line for line in shown if line.strip().partition(", ends by ")[0] not in PICTURE] == []


def test_every_example_can_stand_in_a_stack() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    stack = re.findall(r"```yaml\n(.*?)```", YOUR_CLUSTER, re.DOTALL)[0]
    cluster = yaml.safe_load(stack)["config"]["soperator:cluster"]

    assert examples
    for example in examples:
        node_sets = yaml.safe_load(example)["node_sets"]
        parsed = parse_cluster({**cluster, "node_sets": node_sets}, where="docs/scaling.md").node_sets
        assert [value.keys() <= spec.model_fields_set for value, spec in zip(node_sets, parsed, strict=True)] == [True]


def test_every_policy_for_one_run_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the page, and those that the error proposes."""
    policies = re.findall(r"SOPERATOR_DRAIN='(.*?)'", PAGE)

    assert len(policies) >= 4
    for policy in policies:
        monkeypatch.setenv("SOPERATOR_DRAIN", policy)
        assert policy_of("hpc", None) != DrainSpec()


def test_every_policy_has_its_line_and_every_default_is_the_one_of_the_spec() -> None:
    assert set(re.findall(r"(?m)^\| `(\w+)`(?: \(default\))? \| ", PAGE)) >= {
        on_timeout.value for on_timeout in OnTimeout
    }
    assert f"| `{DrainSpec().on_timeout}` (default) |" in PAGE
    assert f"| `grace` | `{duration_text(DrainSpec().grace)}` |" in PAGE
    assert f"| `reservations`, `pending_jobs` | `{DrainSpec().reservations}` |" in PAGE


def test_every_case_is_there_once_in_order() -> None:
    numbers = re.findall(r"(?m)^\| (G?\d+b?) \|", CASES)

    assert numbers == [*map(str, range(1, 13)), "12b", *map(str, range(13, 37)), *(f"G{goal}" for goal in range(1, 13))]


def test_every_case_has_a_test_or_says_why_it_can_not_arise() -> None:
    rows = re.findall(r"(?m)^\| (G?\d+b?) \|(.*)\|$", CASES)

    assert [number for number, row in rows if number not in SHOWN_BY and "Can't arise" not in row] == []
    assert SHOWN_BY.keys() - {number for number, _ in rows} == {"M1", "M2"}
    assert {name for names in SHOWN_BY.values() for name in names} - defined_tests() == set()
