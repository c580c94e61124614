"""What `destroy` leaves behind, and whose claims are used."""

import pytest

from tests.rendered.clusters import a_deployment, pod_of

KEPT = ("hpc-namespace", "hpc-shared", "hpc-slurmctld-state")


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("keep", [True, False])
def test_claims_and_their_namespace_are_protected_and_kept_unless_the_spec_says_otherwise(
    name: str, *, keep: bool
) -> None:
    request = a_deployment(storage={"keep": keep}).request(name)
    assert (request.protect, request.retainOnDelete) == (keep, keep)


def test_nothing_else_is_protected() -> None:
    protected = {each.name for each in a_deployment().recorded if each.request.protect or each.request.retainOnDelete}
    assert protected == set(KEPT)


def test_claims_have_the_size_class_and_access_mode_of_the_spec() -> None:
    deployment = a_deployment(
        storage={"homes": {"size_gib": 500, "storage_class": "shared-fast"}, "state": {"size_gib": 20}}
    )
    assert deployment.one("hpc-shared").inputs["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared-fast",
        "resources": {"requests": {"storage": "500Gi"}},
    }
    assert deployment.one("hpc-slurmctld-state").inputs["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}},
    }


def test_existing_claims_are_mounted_and_not_made() -> None:
    deployment = a_deployment(storage={"homes": {"existing_claim": "nfs"}, "state": {"existing_claim": "disk"}})
    assert deployment.resources(":PersistentVolumeClaim") == ()
    claims = {
        name: {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod_of(deployment, name)["volumes"]
            if "persistentVolumeClaim" in volume
        }
        for name in ("hpc-controller", "hpc-login", "hpc-cpu")
    }
    assert claims == {"hpc-controller": {"disk"}, "hpc-login": {"nfs"}, "hpc-cpu": {"nfs"}}


def test_a_namespace_that_exists_is_not_made() -> None:
    assert a_deployment(create_namespace=False).resources(":Namespace") == ()


def test_claims_are_not_part_of_any_stateful_set() -> None:
    for each in a_deployment().resources(":StatefulSet"):
        assert "volumeClaimTemplates" not in each.inputs["spec"]
