"""A machine of the lab that loses its power with jobs on it, and is off for good: what a hand does."""

from functools import cache

import pytest

from tests.machines.lab_power import MOVED, ON_BOTH, boots, with_power
from tests.machines.lab_slurm import as_user

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

PARTS = {
    "moved": MOVED + ON_BOTH,
    "dead": f"""
        {as_user("sbatch --mem=100 -w cpu-0 -J kept -o /dev/null --wrap 'sleep 4245'")}
        {as_user("sbatch --mem=100 -w cpu-1 -J lost -o /dev/null --requeue --wrap 'sleep 4245'")}
        {as_user("sbatch --mem=100 -w cpu-1 -J once -o /dev/null --no-requeue --wrap 'sleep 4245'")}
        for name in kept lost once; do within 120 job "$name" JobState=RUNNING; done
        slurm scontrol update nodename=cpu-0 state=drain reason='bad fan'
        uid=$(pod .metadata.uid)
        began=$(date +%s)
        lab-machine 2 off
        within 200 machine Unknown; at "NotReady"
        within 400 job lost 'JobState=PENDING.* Restarts=1 '; at "requeued"
        within 60 job once JobState=NODE_FAIL; at "failed"
        replaced || echo "the pod has no successor yet"
        began=$(date +%s)
        kubectl taint node n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
        within 120 replaced; at "new pod"
        within 400 is_on n1; at "new pod ready"
        within 400 job lost 'JobState=RUNNING.* Restarts=1 '; at "requeued job runs"
        ! job kept 'JobState=RUNNING.* Restarts=0 ' || echo "the other machine's job has run on"
        slurm sinfo -hn cpu-0 -o 'drain: %t %E'
    """,
    "back": f"""
        began=$(date +%s)
        lab-machine 2 on
        within 900 machine True; at "joined again"
        kubectl taint node n2 node.kubernetes.io/out-of-service-
        {as_user("scancel --me")}
        within 120 state cpu-0 drain
        slurm sinfo -hn cpu-0 -o 'drain: %t %E'
    """,
}
"""Parts of the trial by their names."""


@cache
def said() -> dict[str, str]:
    """Return what the parts print."""
    return with_power(PARTS)


def test_a_step_runs_on_the_kernels_of_both_machines() -> None:
    found = boots(said()["moved"])
    assert found.keys() == {"cpu-0", "cpu-1"}, said()["moved"]
    assert found["cpu-0"] != found["cpu-1"]


def test_a_dead_machine_costs_no_job_that_slurm_requeues_and_its_pod_comes_back_by_one_taint() -> None:
    lines = said()["dead"].splitlines()
    assert "the pod has no successor yet" in lines
    assert "the other machine's job has run on" in lines
    assert "drain: drng bad fan" in lines


def test_the_machine_joins_again_and_an_admins_drain_is_as_it_was() -> None:
    assert "drain: drain bad fan" in said()["back"].splitlines()
