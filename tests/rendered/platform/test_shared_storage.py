"""SharedStorage: the objects that it creates, kept; and the names that a cluster takes, alone and from a platform."""

import re
from typing import Any

import pulumi
import pytest

from soperator_pulumi import Platform, SharedStorage, SlurmCluster
from soperator_pulumi.testing import Deployment, Recorded, deploy
from tests.rendered.cluster.clusters import a_spec
from tools import paths

NFS: dict[str, Any] = {"nfs": {"server": "10.0.0.7", "path": "/export/slurm"}, "size_gib": 2048}


def stored(description: dict[str, Any]) -> Deployment:
    return deploy(lambda: SharedStorage("storage", description))


def kinds(deployment: Deployment) -> set[str]:
    return {
        resource.type.rpartition(":")[2] for resource in deployment.recorded if resource.type.startswith("kubernetes:")
    }


def only(deployment: Deployment, kind: str) -> Recorded:
    (found,) = deployment.resources(f":{kind}")
    return found


def test_a_volume_of_nfs_is_mounted_by_its_driver_where_that_is_wanted() -> None:
    deployment = stored({**NFS, "nfs": {**NFS["nfs"], "csi": True}})
    volume = only(deployment, "PersistentVolume")
    assert kinds(deployment) == {"PersistentVolume"}
    assert volume.inputs["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "2048Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["nfsvers=4.2", "hard", "noatime", "nconnect=8"],
        "csi": {
            "driver": "nfs.csi.k8s.io",
            "volumeHandle": "10.0.0.7#/export/slurm#slurm-shared",
            "volumeAttributes": {"server": "10.0.0.7", "share": "/export/slurm", "mountPermissions": "0"},
        },
    }


def test_a_volume_and_its_claim_name_their_application_and_their_manager() -> None:
    for resource in stored({**NFS, "claim": {"name": "shared", "namespace": "hpc"}}).recorded:
        if resource.type.startswith("kubernetes:"):
            labels = resource.inputs["metadata"]["labels"]
            assert labels["app.kubernetes.io/name"] == "shared-storage"
            assert labels["app.kubernetes.io/managed-by"] == "pulumi"


def test_a_volume_of_nfs_is_mounted_by_the_kubelet_and_retained() -> None:
    nfs = {"server": "nas", "path": "/e", "mount_options": ["nfsvers=4.1"]}
    spec = only(stored({"nfs": nfs}), "PersistentVolume").inputs["spec"]
    assert spec["nfs"] == {"server": "nas", "path": "/e"}
    assert spec["mountOptions"] == ["nfsvers=4.1"]
    assert "csi" not in spec
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"


def test_the_file_system_of_efs_is_a_volume_without_an_access_point() -> None:
    spec = only(
        stored({"volume": {"system": "efs", "handle": "fs-0123456789abcdef0"}, "name": "jail"}), "PersistentVolume"
    ).inputs["spec"]
    assert spec["csi"] == {"driver": "efs.csi.aws.com", "volumeHandle": "fs-0123456789abcdef0"}
    assert "mountOptions" not in spec


def test_a_volume_has_the_secrets_of_its_driver() -> None:
    volume = {
        "system": "cephfs",
        "driver": "ceph.example.com",
        "handle": "slurm",
        "attributes": {"clusterID": "c", "fsName": "f", "rootPath": "/s", "staticVolume": "true"},
        "node_stage_secret": {"namespace": "ceph", "name": "node"},
    }
    csi = only(stored({"volume": volume}), "PersistentVolume").inputs["spec"]["csi"]
    assert csi["nodeStageSecretRef"] == {"namespace": "ceph", "name": "node"}
    assert csi["driver"] == "ceph.example.com"
    assert csi["volumeAttributes"]["rootPath"] == "/s"


def test_a_directory_of_the_machine_is_a_volume() -> None:
    spec = only(stored({"host_path": "/srv/slurm"}), "PersistentVolume").inputs["spec"]
    assert spec["hostPath"] == {"path": "/srv/slurm", "type": "DirectoryOrCreate"}


def test_a_class_has_the_tables_parameters_and_the_users_and_retains_volumes() -> None:
    deployment = stored({"name": "azurefile-nfs", "storage_class": {"system": "azure_files_nfs"}})
    inputs = only(deployment, "StorageClass").inputs
    assert kinds(deployment) == {"StorageClass"}
    assert inputs["metadata"]["name"] == "azurefile-nfs"
    assert inputs["provisioner"] == "file.csi.azure.com"
    assert inputs["parameters"] == {
        "protocol": "nfs",
        "skuName": "Premium_LRS",
        "networkEndpointType": "privateEndpoint",
        "rootSquashType": "NoRootSquash",
        "mountPermissions": "0",
    }
    assert inputs["mountOptions"] == ["nconnect=4", "noresvport", "actimeo=30"]
    assert (inputs["reclaimPolicy"], inputs["volumeBindingMode"]) == ("Retain", "Immediate")
    assert inputs["allowVolumeExpansion"]


def test_a_class_of_zones_waits_for_the_first_pod() -> None:
    inputs = only(stored({"storage_class": {"system": "nebius"}}), "StorageClass").inputs
    assert inputs["volumeBindingMode"] == "WaitForFirstConsumer"
    assert not inputs["allowVolumeExpansion"]
    assert "mountOptions" not in inputs


@pytest.mark.parametrize(("kept", "keep"), [({}, True), ({"keep": False}, False)])
def test_what_is_created_is_protected_and_kept_unless_that_is_switched_off(
    kept: dict[str, bool], *, keep: bool
) -> None:
    deployment = stored({**NFS, "claim": {"namespace": "slurm", "name": "data"}, **kept})
    for kind in ("PersistentVolume", "PersistentVolumeClaim"):
        request = deployment.request(only(deployment, kind).name, f":{kind}")
        assert (bool(request.protect), bool(request.retainOnDelete)) == (keep, keep)


def test_a_claim_for_submounts_takes_the_volume_and_no_class_by_default() -> None:
    spec = only(stored({**NFS, "claim": {"namespace": "slurm", "name": "data"}}), "PersistentVolumeClaim").inputs[
        "spec"
    ]
    assert spec == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": "slurm-shared",
        "resources": {"requests": {"storage": "2048Gi"}},
    }


@pytest.mark.parametrize(
    ("description", "volume"),
    [
        (NFS, {"static_volume": "slurm-shared", "size_gib": 2048}),
        ({"storage_class": {"system": "nebius"}}, {"storage_class": "slurm-shared", "size_gib": 100}),
        ({"existing_class": "fast"}, {"storage_class": "fast", "size_gib": 100}),
        ({"existing_claim": "data"}, {"existing_claim": "data"}),
        ({**NFS, "claim": {"namespace": "slurm", "name": "data"}}, {"existing_claim": "data"}),
    ],
)
def test_a_cluster_takes_the_names(description: dict[str, Any], volume: dict[str, Any]) -> None:
    found: list[dict[str, Any]] = []

    def program() -> None:
        pulumi.Output.all(**SharedStorage("storage", description).volume).apply(found.append)

    deploy(program)
    assert found == [volume]


def test_a_jail_claims_the_volume_after_it_is_created() -> None:
    def program() -> None:
        storage = SharedStorage("storage", NFS)
        SlurmCluster("hpc", a_spec(jail={"storage": storage.volume}))

    deployment = deploy(program)
    claim = next(resource for resource in deployment.resources(":PersistentVolumeClaim") if resource.name == "hpc-jail")
    assert claim.inputs["spec"]["volumeName"] == "slurm-shared"
    assert claim.inputs["spec"]["storageClassName"] == ""
    assert claim.inputs["spec"]["resources"] == {"requests": {"storage": "2048Gi"}}
    assert "storage" in {awaited.name for awaited in deployment.waits_for(claim)}


def test_a_platform_has_shared_storage_whose_names_are_defaults_of_clusters() -> None:
    def program() -> None:
        platform = Platform("platform", {"shared_storage": NFS})
        SlurmCluster("hpc", a_spec(), platform=platform)
        SlurmCluster("lab", a_spec(jail={"storage": {"storage_class": "own"}}, name="lab"), platform=platform)

    deployment = deploy(program)
    claims = {resource.name: resource.inputs["spec"] for resource in deployment.resources(":PersistentVolumeClaim")}
    assert claims["hpc-jail"]["volumeName"] == "slurm-shared"
    assert claims["hpc-jail"]["resources"] == {"requests": {"storage": "2048Gi"}}
    assert claims["lab-jail"]["storageClassName"] == "own"
    assert "volumeName" not in claims["lab-jail"]


def test_the_program_of_the_page_deploys() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (paths.ROOT / "docs" / "storage.md").read_text(), re.DOTALL)

    deployment = deploy(lambda: exec(program, {"description": a_spec()}))  # noqa: S102 - the page's own

    claim = next(resource for resource in deployment.resources(":PersistentVolumeClaim") if resource.name == "hpc-jail")
    assert claim.inputs["spec"]["volumeName"] == "slurm-shared"


def test_what_users_will_notice_is_a_warning_of_the_deployment(caplog: pytest.LogCaptureFixture) -> None:
    stored({"volume": {"system": "efs", "handle": "fs-0123456789abcdef0"}})
    assert "177 hard links" in caplog.text
