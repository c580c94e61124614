"""What people read: the preview, the line while it runs, and the error when it stops."""

from datetime import UTC
from typing import Any

from soperator_pulumi.slurm.leaving import Leaving
from soperator_pulumi.slurm.plan import plan
from soperator_pulumi.slurm.plan_text import preview
from soperator_pulumi.slurm.states import Snapshot
from tests.unit.slurm.planner.situation import (
    HOUR,
    NOW,
    RUN,
    job,
    leaving,
    node,
    reservation,
    snapshot,
)

TO_1420 = 80 * 60


def gpu(*names: int, **more: Any) -> Leaving:
    return leaving(
        ",".join(f"gpu-{each}" for each in names), staying=",".join(f"gpu-{each}" for each in range(names[0])), **more
    )


def previewed(node_sets: Leaving, said: Snapshot) -> list[str]:
    now = plan([node_sets], said, RUN, elapsed_seconds=0, now=NOW)
    return preview(now, [node_sets], said, NOW, cluster="hpc", zone=UTC)


def test_a_preview_says_which_nodes_leave_what_is_on_them_and_until_when() -> None:
    node_set = gpu(60, 61, 62, 63)
    said = snapshot(
        [
            *(node(f"gpu-{each}", "ALLOCATED") for each in range(57)),
            *(node(f"gpu-{each}") for each in (57, 58, 59, 60, 62, 63)),
            node("gpu-61", "MIXED"),
        ],
        [job(4711, "gpu-61", ends_in=TO_1420)],
        [reservation("maint-7", "gpu-62,gpu-63", ends_in=5 * HOUR)],
    )

    assert previewed(node_set, said) == [
        "hpc/gpu: 64 -> 60 nodes. Leaving: gpu-[60-63]",
        "  gpu-60       idle",
        "  gpu-61       job 4711 (alice, train.sh), ends by 14:20",
        "  gpu-[62-63]  reservation maint-7 until 18:00",
        "Idle nodes with lower ordinals: 3 (a StatefulSet can only give up the highest).",
        "Drains now, waits up to 2 h, then abort: everything is put back.",
    ]
