"""slurmctld does not answer: nodes can be added, none is taken away.

The cluster of three workers is left as it was.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import in_service, nodes, pods, set_size, started_up
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


@contextmanager
def silent(slurm: Slurm) -> Iterator[None]:
    """Take munged's socket away: whoever asks slurmctld gets no answer, and sooner than from one that hangs."""

    def move(source: str, target: str) -> None:
        slurm.exec("controller-0", "munged", "mv", f"/run/munge/{source}", f"/run/munge/{target}")

    move("munge.socket.2", "away")
    try:
        yield
    finally:
        move("away", "munge.socket.2")


def test_a_scale_down_takes_no_pod_away_before_it_answers_again(workers: Slurm) -> None:
    set_size(workers, 1)
    with ExitStack() as stopped, started_up(workers) as up:
        stopped.enter_context(silent(workers))
        assert up.stderr
        assert any("slurmctld does not answer" in line for line in up.stderr)
        there = pods(workers)
        stopped.close()
        _, said = up.communicate(timeout=120)

    assert up.returncode == 0, said
    assert {name for name, pod in there.items() if not pod.metadata.deletion_timestamp} == {"cpu-0", "cpu-1", "cpu-2"}
    assert set(nodes(workers)) == {"cpu-0"}


def test_pods_are_added_all_the_same(workers: Slurm) -> None:
    set_size(workers, 4)
    with ExitStack() as stopped, started_up(workers) as up:
        stopped.enter_context(silent(workers))
        wait_until(lambda: "cpu-3" in pods(workers), "there is a fourth pod", timeout_seconds=120)
        stopped.close()
        _, said = up.communicate(timeout=120)

    assert up.returncode == 0, said
    assert in_service(workers) == {"cpu-0", "cpu-1", "cpu-2", "cpu-3"}
