"""Requeueing and cancelling jobs of a real slurmctld: those that are named, and no others."""

from collections.abc import Iterator

import pytest

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.models import Job
from soperator_pulumi.slurm.scontrol import ScontrolClient
from tests.cluster.slurm import Slurm
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture
def client(slurm: Slurm) -> Iterator[SlurmClient]:
    cluster = Cluster(Access(str(slurm.kubernetes.kubeconfig), slurm.kubernetes.target.context))
    yield ScontrolClient(cluster.transport(slurm.namespace, "controller-0", "slurmctld"))
    slurm.ssh("scancel --me")
    wait_until(lambda: not slurm.ssh("squeue --me --noheader").stdout, "no job is left")


def of_array(client: SlurmClient, array: int) -> dict[str, Job]:
    return {job.reference: job for job in client.jobs() if job.reference.startswith(f"{array}_")}


def test_a_task_of_an_array_is_requeued_without_the_others(slurm: Slurm, client: SlurmClient) -> None:
    array = slurm.submit("sleep 300", options="--array=1-2 --nodelist=cpu-0")
    wait_until(lambda: sum(job.active for job in of_array(client, array).values()) == 2, "both tasks run")
    (same_number,) = (job for job in of_array(client, array).values() if job.job_id == array)
    assert client.requeue([same_number.job_id]) == {}
    wait_until(lambda: not of_array(client, array)[same_number.reference].active, "the task waits again")
    (other,) = (job for job in of_array(client, array).values() if job.job_id != array)
    assert other.state == {"RUNNING"}


def test_a_task_of_an_array_is_cancelled_without_the_others(slurm: Slurm, client: SlurmClient) -> None:
    array = slurm.submit("sleep 300", options="--array=1-2 --nodelist=cpu-0")
    wait_until(lambda: sum(job.active for job in of_array(client, array).values()) == 2, "both tasks run")
    assert client.cancel([array]) == {}
    wait_until(lambda: len(of_array(client, array)) == 1, "one task is gone")
    (other,) = of_array(client, array).values()
    assert (other.job_id != array, other.active) == (True, True)


def test_a_job_that_has_ended_does_not_run_again(slurm: Slurm, client: SlurmClient) -> None:
    job_id = slurm.submit("true")
    slurm.wait_for_job(job_id, "COMPLETED")
    assert client.requeue([job_id]) == client.cancel([job_id]) == {}
    # What guards it when it ends between the look and the call: Slurm itself would run it again.
    slurm.scontrol("requeue", "Incomplete", str(job_id))
    assert slurm.job(job_id)["JobState"] == "COMPLETED"


def test_a_job_that_cannot_be_requeued_is_refused_with_slurms_words(slurm: Slurm, client: SlurmClient) -> None:
    job_id = slurm.submit("sleep 300", options="--no-requeue")
    slurm.wait_for_job(job_id, "RUNNING")
    refused = client.requeue([job_id])
    assert refused.keys() == {job_id}
    assert "disabled" in refused[job_id]


def test_a_suspended_job_still_holds_its_node(slurm: Slurm, client: SlurmClient) -> None:
    job_id = slurm.submit("sleep 300", options="--nodelist=cpu-1 --exclusive")
    slurm.wait_for_job(job_id, "RUNNING")
    slurm.scontrol("suspend", str(job_id))
    (job,) = (job for job in client.jobs() if job.job_id == job_id)
    assert job.state == {"SUSPENDED"}
    assert job.active
    assert job.node_names == {"cpu-1"}
