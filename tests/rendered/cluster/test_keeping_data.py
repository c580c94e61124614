"""Objects that `destroy` leaves behind, and owners of the claims in use."""

import pytest

from soperator_pulumi.testing import Deployment, Recorded
from tests.rendered.cluster.clusters import a_deployment, all_pods


def one(deployment: Deployment, name: str) -> Recorded:
    """The object of this logical name: a component may have the same one."""
    return next(
        resource
        for resource in deployment.resources()
        if resource.name == name and resource.type.startswith("kubernetes:")
    )


KEPT = ("hpc-namespace", "hpc-jail", "hpc-slurmctld-state")


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("keep", [True, False])
def test_claims_and_their_namespace_are_protected_and_kept_unless_the_spec_says_otherwise(
    name: str, *, keep: bool
) -> None:
    request = one(a_deployment(storage={"keep": keep}), name).request
    assert (request.protect, request.retainOnDelete) == (keep, keep)


def test_nothing_else_is_protected() -> None:
    protected = {
        resource.name
        for resource in a_deployment().recorded
        if resource.request.protect or resource.request.retainOnDelete
    }
    assert protected == set(KEPT)


def test_claims_have_the_size_class_and_access_mode_of_the_spec() -> None:
    deployment = a_deployment(
        jail={"storage": {"size_gib": 500, "storage_class": "shared-fast"}}, storage={"state": {"size_gib": 20}}
    )
    assert one(deployment, "hpc-jail").inputs["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared-fast",
        "resources": {"requests": {"storage": "500Gi"}},
    }
    assert deployment.one("hpc-slurmctld-state").inputs["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "20Gi"}},
    }


def test_a_static_volume_is_claimed_by_its_name_without_a_class_that_would_make_another() -> None:
    deployment = a_deployment(jail={"storage": {"static_volume": "nfs-export", "size_gib": 50}})
    assert one(deployment, "hpc-jail").inputs["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": "nfs-export",
        "resources": {"requests": {"storage": "50Gi"}},
    }


def test_existing_claims_are_mounted_and_not_made() -> None:
    deployment = a_deployment(
        jail={"storage": {"existing_claim": "nfs"}}, storage={"state": {"existing_claim": "disk"}}
    )
    assert deployment.resources(":PersistentVolumeClaim") == ()
    claims = {
        name: {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        }
        for name, pod in all_pods(deployment).items()
    }
    assert claims.pop("controller") == {"disk", "nfs"}
    assert set(map(frozenset, claims.values())) == {frozenset({"nfs"})}


def test_a_namespace_that_exists_is_not_made() -> None:
    assert a_deployment(create_namespace=False).resources(":Namespace") == ()


def test_claims_are_not_part_of_any_stateful_set() -> None:
    for resource in a_deployment().resources(":StatefulSet"):
        assert "volumeClaimTemplates" not in resource.inputs["spec"]
