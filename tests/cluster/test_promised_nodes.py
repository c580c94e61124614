"""A node leaves although a reservation and a pending job ask for it by name.

The cluster of three workers is left as it was.
"""

import pytest

from tests.cluster.slurm import Slurm
from tests.cluster.workers import drained, in_service, nodes, said, set_size
from tests.waiting import wait_until
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


def promise(slurm: Slurm) -> int:
    """Reserve cpu-2 for later, submit a job that asks for it and is to begin later, and return the job."""
    where = ("reservationname=maint-7", "nodes=cpu-2", "users=alice")
    slurm.scontrol("create", *where, "starttime=now+1hour", "duration=60")
    return slurm.submit("true", options="-w cpu-2 --begin=now+1hour -o /dev/null")


def test_it_is_shown_and_the_record_stays_as_long_as_the_node_is_named(workers: Slurm) -> None:
    job = promise(workers)
    set_size(workers, 2)

    shown = said(workers.deployer().preview())
    workers.up()

    assert "reservation maint-7" in shown
    assert f"pending job {job}" in shown
    assert in_service(workers) == {"cpu-0", "cpu-1"}
    assert "cpu-2" in nodes(workers)

    workers.scontrol("delete", "reservationname=maint-7")
    workers.ssh(f"scancel {job}")
    workers.up()

    assert set(nodes(workers)) == {"cpu-0", "cpu-1"}


def test_a_node_whose_record_stayed_takes_jobs_when_it_is_wanted_again_without_being_waited_for(workers: Slurm) -> None:
    job = promise(workers)
    set_size(workers, 2)
    workers.up()
    set_size(workers, 3)
    workers.cluster["node_sets"][0]["wait_until_ready"] = False
    workers.up()

    wait_until(lambda: "cpu-2" in in_service(workers), "its pod has undone our drain")

    workers.scontrol("delete", "reservationname=maint-7")
    workers.scontrol("update", f"jobid={job}", "starttime=now")
    workers.wait_for_job(job, "COMPLETED")


def test_where_it_is_to_be_refused_nothing_is_drained(workers: Slurm) -> None:
    job = promise(workers)
    set_size(workers, 2)

    with pytest.raises(DeployError, match="reservation maint-7"):
        workers.up(workers.for_this_run("{reservations: refuse}"))
    with pytest.raises(DeployError, match=f"job {job}"):
        workers.up(workers.for_this_run("{pending_jobs: refuse}"))

    assert drained(workers) == {}
    assert in_service(workers) == {"cpu-0", "cpu-1", "cpu-2"}
