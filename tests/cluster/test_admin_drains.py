"""Drains of an admin stay, with the admin's words, whatever a deployment does.

The cluster of three workers is left as it was.
"""

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import NO_TIME, SlurmNode, drain, drained, ended_well, in_service, job_on, scale
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


def reasons(drains: dict[str, SlurmNode]) -> dict[str, tuple[str, str]]:
    return {name: (node.reason, node.set_by) for name, node in drains.items()}


def test_drains_are_untouched_by_an_aborted_scale_down_a_done_one_and_a_scale_up(workers: Slurm) -> None:
    """One node stays, two leave and come back. Ours would be the second's, if it were this cluster's."""
    workers.ssh("rm -f end")
    job = job_on(workers, "cpu-1", "until [ -e end ]; do sleep 0.2; done; sleep 5")
    drain(workers, ["cpu-0"], "bad memory")
    drain(workers, ["cpu-1"], "soperator-pulumi elsewhere: scale-down 1a2b3c")
    drain(workers, ["cpu-2"], "bad disk")
    before = drained(workers)

    with pytest.raises(DeployError, match=f"job {job}"):
        scale(workers, 1, **NO_TIME)
    after_abort = drained(workers)
    workers.ssh("touch end")
    scale(workers, 1, timeout="1m")
    waited_for = ended_well(workers, job)
    after_down = drained(workers)
    scale(workers, 3)
    after_up = drained(workers)

    assert {name: node.since for name, node in after_abort.items()} == {n: node.since for n, node in before.items()}
    assert waited_for  # on the node that the admin was draining
    assert reasons(before) == reasons(after_abort) == reasons(after_down) == reasons(after_up)
    assert in_service(workers) == set()
