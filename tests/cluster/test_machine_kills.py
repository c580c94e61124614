"""Machines that end without a word again and again under a stream of jobs, and start again: nothing is lost."""

import random
import time
from collections.abc import Iterator

import pytest

from tests.cluster.several_machines import SeveralMachines, several_machines
from tests.soak import times
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

WORKER, DRAINED = "cpu-1", "cpu-0"
MACHINES = {WORKER: "2", DRAINED: "3"}
REASON = "bad fan"
JOBS = 8
"""Jobs that come before a kill: two run at a time, for 2 s."""
KILLS = 4
"""Kills of a series."""


@pytest.fixture(scope="module")
def trial() -> Iterator[SeveralMachines]:
    with several_machines(WORKER, on="n2") as made:
        made.place(DRAINED, "n3")
        wait_until(lambda: made.state(DRAINED) == "idle", "the other worker has joined")
        made.shell(f"soperator nodes drain -n slurm {DRAINED} --reason '{REASON}'")
        yield made


@pytest.mark.parametrize("series", range(times(1, 5)))
def test_no_job_and_no_drain_of_an_admin_is_lost_by_kills_of_machines(trial: SeveralMachines, series: int) -> None:
    chance = random.Random(series)  # noqa: S311 no secret
    uids = {worker: trial.pod(worker)["uid"] for worker in MACHINES}
    submitted: list[str] = []
    for _ in range(KILLS):
        job = "sbatch --parsable -n1 --mem=50 --wrap 'sleep 2; echo $SLURM_JOB_ID >> done'"
        submitted += trial.user(f"for i in $(seq {JOBS}); do {job}; done").split()
        machine = MACHINES[chance.choice([WORKER, WORKER, DRAINED])]
        time.sleep(chance.uniform(0, 6))  # the time of the kill is what is tried
        trial.box.kubernetes("machine-kill", "--number", machine)
        time.sleep(chance.choice([0, 5, 20]))  # and how long the machine is off
        trial.box.kubernetes("machine-start", "--number", machine)
        wait_until(lambda: is_whole(trial), "all is whole without a hand", seen=lambda: seen(trial))
        # Slurm would wait two minutes with what it has requeued. Its kill of a lost run ends the next one that starts
        # within ten seconds (test_killed_daemons.py).
        trial.user("for job in $(squeue -ho %A -t PD); do scontrol update jobid=$job StartTime=now+15; done; true")
    wait_until(lambda: not trial.user("squeue -ho %A"), "all jobs have ended", seen=lambda: seen(trial))
    done = trial.user("cat done").split()
    assert [job for job in submitted if job not in done] == []
    assert {worker: trial.pod(worker)["uid"] for worker in MACHINES} == uids


def is_whole(trial: SeveralMachines) -> bool:
    states = {worker: trial.state(worker) for worker in MACHINES}
    return (
        states[WORKER] in {"idle", "mix", "alloc"}
        and states[DRAINED] == "drain"
        and trial.user(f"sinfo -hn {DRAINED} -o %E") == REASON
        and all(trial.pod(worker)["ready"] == "True" for worker in MACHINES)
    )


def seen(trial: SeveralMachines) -> str:
    return trial.user("sinfo -N; sinfo -R; squeue")
