"""Record of the claim on which slurmctld has run, by which it knows a lost state from a new cluster's."""

from typing import Any

from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment, containers_of, pod_of


def variables_of(deployment: Deployment) -> dict[str, Any]:
    return {entry["name"]: entry for entry in containers_of(pod_of(deployment, "hpc-controller"))["slurmctld"]["env"]}


def test_slurmctld_reads_the_record_of_the_state_in_use_if_there_is_one() -> None:
    deployment = a_deployment()
    variables = variables_of(deployment)
    assert variables["STATE_IN_USE"]["valueFrom"]["configMapKeyRef"] == {
        "name": "state-in-use",
        "key": "state-in-use",
        "optional": True,
    }
    assert "STATE_LOSS_ACCEPTED" not in variables


def test_the_record_is_made_after_slurmctld_has_answered() -> None:
    deployment = a_deployment()
    record = deployment.one("hpc-controller-state-in-use")
    assert record.inputs["data"] == {"state-in-use": "on the claim slurmctld-state"}
    assert deployment.one("hpc-controller-ready") in deployment.waits_for(record)


def test_the_record_names_the_claim_and_goes_with_a_destroy_so_that_a_later_up_can_create_it() -> None:
    record = a_deployment(storage={"state": {"existing_claim": "mine"}}).one("hpc-controller-state-in-use")
    assert record.inputs["data"] == {"state-in-use": "on the claim mine"}
    assert not record.request.retainOnDelete


def test_a_reason_reaches_slurmctld() -> None:
    deployment = a_deployment(
        slurm={"extra": {"FirstJobId": 48201}}, storage={"state": {"accept": {"emptied": "a trial"}}}
    )
    assert variables_of(deployment)["STATE_LOSS_ACCEPTED"]["value"] == "a trial"
