"""The engine killed in the middle of `up`: the next one brings the cluster up whole."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.cluster.slurm import QUICK, Slurm, a_node_set
from tests.soak import SOAK

pytestmark = pytest.mark.cluster

STEPS = 44
"""A first `up` prints about a line for each of so many resources."""

MOMENTS = range(1, STEPS, 2) if SOAK else [STEPS // 2]


def kill_after_lines(slurm: Slurm, lines: int) -> None:
    """Kill `up`, program and providers with it, when it has printed so many lines."""
    with slurm.start_up() as up:
        assert up.stderr
        for _, _line in zip(range(lines), up.stderr, strict=False):
            pass
        os.killpg(up.pid, signal.SIGKILL)


@pytest.mark.parametrize("lines", MOMENTS)
def test_up_converges_after_a_kill(new_slurm: Callable[..., Slurm], lines: int) -> None:
    slurm = new_slurm(node_sets=[a_node_set("cpu")])
    kill_after_lines(slurm, lines)

    slurm.up()

    assert slurm.ssh("srun hostname").stdout == "cpu-0\n"
    assert slurm.deployer().up().changed == ()


@pytest.mark.soak
def test_a_change_of_slurms_options_converges_after_a_kill(new_slurm: Callable[..., Slurm]) -> None:
    """The files are new and slurmctld may not have read them: the next `up` sees that."""
    slurm = new_slurm(node_sets=[a_node_set("cpu")])
    slurm.up()
    slurm.cluster["slurm"]["extra"] = {**QUICK, "KillWait": "45"}
    kill_after_lines(slurm, 2)

    slurm.up()

    assert "KillWait                = 45 sec" in slurm.scontrol("show", "config")
    assert slurm.deployer().up().changed == ()
