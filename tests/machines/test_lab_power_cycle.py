"""A machine of the lab that loses its power with a job on it, and starts again at once: no hand is needed."""

import pytest

from tests.machines.lab_power import MOVED, ON_BOTH, boots, with_power
from tests.machines.lab_slurm import as_user

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

PARTS = {
    "moved": MOVED + ON_BOTH,
    "again": f"""
        {as_user("sbatch --mem=100 -w cpu-1 -J lost -o /dev/null --requeue --wrap 'sleep 4246'")}
        within 120 job lost JobState=RUNNING
        slurm scontrol update nodename=cpu-0 state=drain reason='bad fan'
        uid=$(pod .metadata.uid)
        began=$(date +%s)
        lab-machine 2 off
        lab-machine 2 on
        within 900 job lost Restarts=1; at "requeued"
        within 900 is_on n2; at "pod ready"
        within 400 job lost 'JobState=RUNNING.* Restarts=1 '; at "requeued job runs"
        replaced || echo "the pod is the same"
        slurm sinfo -hn cpu-0 -o 'drain: %t %E'
        {as_user("scancel --me")}
        slurm scontrol update nodename=cpu-0 state=resume
        {ON_BOTH}
    """,
}
"""Parts of the trial by their names."""


def test_a_machine_that_starts_again_at_once_costs_no_job_and_takes_jobs_without_a_hand() -> None:
    said = with_power(PARTS)
    lines = said["again"].splitlines()
    assert "the pod is the same" in lines
    assert "drain: drain bad fan" in lines
    before, after = boots(said["moved"]), boots(said["again"])
    assert after.keys() == before.keys() == {"cpu-0", "cpu-1"}, said
    assert after["cpu-0"] == before["cpu-0"]
    assert after["cpu-1"] not in before.values(), "the machine has not started again"
