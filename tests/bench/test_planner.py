"""Cost of a plan for a drain of ten thousand nodes, against reading what it plans from."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

from soperator_pulumi.slurm.drain.plan import plan
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Snapshot
from soperator_pulumi.slurm.parsing import read_jobs, read_node_table
from soperator_pulumi.spec.drain import DrainSpec
from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size

ROUNDS = size(5, 1)
NODES, JOBS = size(10_000, 10), size(5_000, 5)
RECORDED = Path(__file__).parents[1] / "unit" / "slurm" / "recorded" / "24.11"
NOW = 1795282154


def recorded(what: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RECORDED / f"{what}.json").read_text())[what]
    return found


def test_the_planner_against_reading_what_it_plans_from() -> None:
    names = [f"gpu-{ordinal}" for ordinal in range(NODES)]
    node, job = recorded("nodes")[0], recorded("jobs")[0]
    update = {"set": True, "infinite": False, "number": NOW}
    nodes = json.dumps({"nodes": [{**node, "name": name} for name in names], "last_update": update})
    jobs = json.dumps({"jobs": [{**job, "job_id": n, "nodes": names[n * 2]} for n in range(JOBS)]})
    leaving = [DrainRequest("gpu", tuple(names), (), DrainSpec(), before=NODES, after=0)]
    marker = Marker("bench", Operation.SCALE_DOWN, "1a2b3c")

    def read() -> Snapshot:
        known, changed = read_node_table(nodes)
        return Snapshot({node.name: node for node in known}, read_jobs(jobs), (), changed)

    def make_plan() -> None:
        plan(leaving, snapshot, marker, elapsed_seconds=0, now=NOW)

    snapshot = read()
    planning, reading = [], []
    for _ in range(ROUNDS):
        planning.append(seconds(make_plan))
        reading.append(seconds(read))
    what = f"plan for {NODES} nodes and {JOBS} jobs"
    report(what, planning, reading, "reading the answers", Goal(1))

    tracemalloc.start()
    make_plan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size_mib = (len(nodes) + len(jobs)) / 2**20
    report(f"memory of a {what}", [peak / 2**20], [size_mib], "the answers of Slurm", Goal(1), unit="MiB")
