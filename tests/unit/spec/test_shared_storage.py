"""Shared storage: of each system what can hold a root file system, all problems at once with the cure."""

from typing import Any

import pytest

from soperator_pulumi import parse_platform
from soperator_pulumi.errors import SpecError
from soperator_pulumi.platform.shared_storage import parse_shared_storage
from soperator_pulumi.spec.platform.shared_storage import merged_parameters, warnings
from soperator_pulumi.spec.platform.storage_systems import SYSTEMS, StorageSystem

SECRETS = {
    f"csi.storage.k8s.io/{act}-secret-{part}": "juice"
    for act in ("provisioner", "node-publish")
    for part in ("name", "namespace")
}
CLASSES: dict[str, dict[str, str]] = {
    "nfs": {"server": "10.0.0.7", "share": "/export"},
    "fsx_lustre": {"subnetId": "subnet-1", "securityGroupIds": "sg-1"},
    "filestore": {},
    "google_lustre": {"perUnitStorageThroughput": "1000", "network": "projects/p/global/networks/n"},
    "azure_files_nfs": {},
    "azure_lustre": {
        "sku-name": "AMLFS-Durable-Premium-125",
        "zone": "1",
        "maintenance-day-of-week": "Sunday",
        "maintenance-time-of-day-utc": "22:00",
    },
    "nebius": {},
    "cephfs": {"clusterID": "rook-ceph", "fsName": "slurm"},
    "vast": {"root_export": "/k8s", "view_policy": "slurm", "vip_pool_name": "main", **SECRETS},
    "weka": {"filesystemName": "slurm", **SECRETS},
    "juicefs": SECRETS,
}
"""The parameters that only a user knows, for each system with classes."""

SECRET = {"namespace": "storage", "name": "access"}
VOLUMES: dict[str, dict[str, Any]] = {
    "efs": {"handle": "fs-0123456789abcdef0"},
    "fsx_lustre": {"handle": "fs-0123456789abcdef0", "attributes": {"dnsname": "fs.example.com", "mountname": "fsx"}},
    "filestore": {"handle": "modeInstance/zone/nfs/vol1", "attributes": {"ip": "10.0.0.2", "volume": "vol1"}},
    "google_lustre": {"handle": "p/zone/lustre", "attributes": {"ip": "10.0.0.2", "filesystem": "slurm"}},
    "azure_files_nfs": {
        "handle": "slurm-share",
        "attributes": {"storageAccount": "acc", "shareName": "slurm", "protocol": "nfs"},
    },
    "azure_lustre": {"handle": "slurm", "attributes": {"mgs-ip-address": "10.0.0.2"}},
    "cephfs": {
        "handle": "slurm",
        "attributes": {"clusterID": "c", "fsName": "f", "rootPath": "/slurm", "staticVolume": "true"},
        "node_stage_secret": SECRET,
    },
    "vast": {"handle": "slurm"},
    "weka": {"handle": "dir/v1/slurm/jail", "node_publish_secret": SECRET},
    "juicefs": {"handle": "slurm", "node_publish_secret": SECRET},
    "other": {"handle": "slurm", "driver": "csi.example.com"},
}


def problems_of(**description: Any) -> list[str]:
    with pytest.raises(SpecError) as refused:
        parse_shared_storage(description, "storage")
    return [str(problem) for problem in refused.value.problems]


def a_class(system: str, **changes: Any) -> dict[str, Any]:
    return {"system": system, "parameters": CLASSES.get(system, {}), **changes}


def a_volume(system: str, **changes: Any) -> dict[str, Any]:
    return {"system": system, **VOLUMES.get(system, {"handle": "x"}), **changes}


@pytest.mark.parametrize("system", CLASSES)
def test_a_class_needs_only_what_the_user_alone_knows(system: str) -> None:
    assert parse_shared_storage({"storage_class": a_class(system)}, "storage").storage_class


@pytest.mark.parametrize("system", VOLUMES)
def test_a_volume_on_storage_that_exists_is_taken(system: str) -> None:
    assert parse_shared_storage({"volume": a_volume(system)}, "storage").volume


def test_every_system_of_the_table_is_tried_here_or_refused() -> None:
    refused = {system for system, facts in SYSTEMS.items() if facts.class_refused} | {StorageSystem.OTHER}
    assert {*CLASSES} | refused == {*StorageSystem}
    assert {*VOLUMES} | {system for system, facts in SYSTEMS.items() if facts.volume_refused} == {*StorageSystem}


@pytest.mark.parametrize("system", CLASSES)
def test_a_class_without_them_names_all_of_them(system: str) -> None:
    needed = {*CLASSES[system]} - {secret for secret in SECRETS if "node-publish" in secret and system == "vast"}
    if not needed:
        return
    found = problems_of(storage_class={"system": system})
    for name in needed - {"vip_pool_name"}:
        assert any(problem.startswith(f"storage_class.parameters.{name}: missing") for problem in found), name


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a class of EFS": (
        {"storage_class": {"system": "efs"}},
        (
            "storage_class.system: Amazon EFS creates an access point per claim, in which "
            "all users become one: homes "
            "would be open to all users, and no tree could be filled. Give the file system "
            "itself: volume: {system: efs, "
            "handle: fs-0123456789abcdef0}."
        ),
    ),
    "an access point": (
        {"volume": a_volume("efs", handle="fs-0123456789abcdef0::fsap-0123456789abcdef0")},
        (
            'volume.handle: got "fs-0123456789abcdef0::fsap-0123456789abcdef0", needs the id '
            "of the file system, such as "
            '"fs-0123456789abcdef0", without an access point ("::fsap-"), in which all users become one.'
        ),
    ),
    "an access point as an option": (
        {"volume": a_volume("efs", mount_options=["accesspoint=fsap-1"])},
        'volume.mount_options: got "accesspoint=fsap-1": in an access point all users become one. Remove it.',
    ),
    "Lustre without locks": (
        {"storage_class": a_class("fsx_lustre", mount_options=["noatime"])},
        (
            'storage_class.mount_options: needs "flock": without it every lock fails, of '
            "dpkg, SQLite and the switch of "
            "trees. Add it."
        ),
    ),
    "Lustre with locks of one machine": (
        {"volume": a_volume("google_lustre", mount_options=["localflock", "flock"])},
        'volume.mount_options: got "localflock": locks would only hold on one machine. Give flock instead.',
    ),
    "NFS 4.1 of a basic tier": (
        {"storage_class": a_class("filestore", parameters={"tier": "standard"})},
        (
            'storage_class.parameters.tier: got "standard", which only supports NFS 3. Choose zonal, regional or '
            "enterprise, or give protocol: NFS_V3, whose locks need a lock service."
        ),
    ),
    "SMB": (
        {"storage_class": a_class("azure_files_nfs", parameters={"protocol": "smb"})},
        (
            'storage_class.parameters.protocol: got "smb", needs "nfs": SMB does not have Linux owners and modes. '
            "Remove it."
        ),
    ),
    "a squashed root": (
        {"storage_class": a_class("azure_files_nfs", parameters={"rootSquashType": "RootSquash"})},
        (
            'storage_class.parameters.rootSquashType: got "RootSquash", needs '
            '"NoRootSquash": root fills the jail. '
            "Remove it."
        ),
    ),
    "a standard SKU": (
        {"storage_class": a_class("azure_files_nfs", parameters={"skuName": "Standard_LRS"})},
        (
            'storage_class.parameters.skuName: got "Standard_LRS", but NFS needs a premium one: Premium_LRS or '
            "Premium_ZRS."
        ),
    ),
    "a version of NFS for Azure": (
        {"storage_class": a_class("azure_files_nfs", mount_options=["nfsvers=4.2"])},
        'storage_class.mount_options: got "nfsvers=4.2": the driver fixes NFS 4.1. Remove it.',
    ),
    "options for Nebius": (
        {"storage_class": a_class("nebius", mount_options=["noatime"])},
        (
            'storage_class.mount_options: got "noatime": the machines mount the filesystem '
            "at their start. Give options "
            "there (cloud-init)."
        ),
    ),
    "a volume of Nebius": (
        {"volume": {"system": "nebius", "handle": "x"}},
        (
            "volume.system: Nebius shared filesystem has a directory per claim, through a class. Use storage_class, or "
            "host_path with the directory at which the machines mount the filesystem."
        ),
    ),
    "a volume of NFS by hand": (
        {"volume": {"system": "nfs", "handle": "x"}},
        "volume.system: NFS is created by the key nfs, from server and path. Use that key.",
    ),
    "JuiceFS with writeback": (
        {"storage_class": a_class("juicefs", mount_options=["enable-xattr", "writeback"])},
        (
            'storage_class.mount_options: got "writeback": other machines would not see '
            "data that one has written, and losing a machine loses the data. Remove it."
        ),
    ),
    "two pools of VAST": (
        {"storage_class": a_class("vast", parameters={**CLASSES["vast"], "vip_pool_fqdn": "vip.example.com"})},
        "storage_class.parameters: needs exactly one of vip_pool_name and vip_pool_fqdn for VAST Data.",
    ),
    "CephFS without its secret": (
        {"volume": {**VOLUMES["cephfs"], "system": "cephfs", "node_stage_secret": None}},
        "volume.node_stage_secret: missing: CephFS needs it. Give namespace and name.",
    ),
    "noexec": (
        {"nfs": {"server": "nas", "path": "/e", "mount_options": ["noexec"]}},
        'nfs.mount_options: got "noexec": the admin shell could not start programs. Remove it.',
    ),
    "no locks": (
        {"nfs": {"server": "nas", "path": "/e", "mount_options": ["nfsvers=3", "nolock"]}},
        (
            'nfs.mount_options: got "nolock": locks would only hold on one machine. Remove it; NFS 4 needs no lock '
            "service."
        ),
    ),
    "another system without its driver": (
        {"storage_class": {"system": "other"}},
        "storage_class.driver: missing: the system `other` has no default driver. Give the name of the CSI driver.",
    ),
    "another system's driver": (
        {"storage_class": {"system": "other", "driver": "efs.csi.aws.com"}},
        'storage_class.driver: got "efs.csi.aws.com", which is the driver of system efs. Give that system.',
    ),
    "nothing": (
        {},
        "empty. Give exactly one of existing_claim, existing_class, storage_class, volume, nfs, host_path.",
    ),
    "two": (
        {"existing_class": "a", "host_path": "/b"},
        (
            "has existing_class and host_path. Give exactly one of existing_claim, "
            "existing_class, storage_class, volume, "
            "nfs, host_path."
        ),
    ),
    "a claim of a claim": (
        {"existing_claim": "a", "claim": {"namespace": "b", "name": "c"}},
        "claim: given with existing_claim, which already is a claim. Remove it.",
    ),
    "a claim that is too small": (
        {"storage_class": a_class("filestore"), "claim": {"namespace": "b", "name": "c"}, "size_gib": 100},
        "size_gib: got 100, but volumes of Google Filestore have at least 1024 GiB.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_hold_a_jail_is_refused_with_the_reason_and_the_cure(name: str) -> None:
    description, expected = REFUSALS[name]
    assert problems_of(**description) == [expected]


def test_all_problems_are_reported_at_once() -> None:
    found = problems_of(
        name="Not A Name",
        storage_class={"system": "fsx_lustre", "mount_options": ["ro"]},
        nfs={"server": "nas", "path": "relative", "mount_options": ["nolock"]},
    )
    places = [problem.partition(":")[0] for problem in found]
    assert places == [
        (
            "has storage_class and nfs. Give exactly one of existing_claim, existing_class, "
            "storage_class, volume, nfs, "
            "host_path."
        ),
        "name",
        "nfs.mount_options",
        "nfs.path",
        "storage_class.mount_options",
        "storage_class.mount_options",
        "storage_class.parameters.securityGroupIds",
        "storage_class.parameters.subnetId",
    ]


def test_problems_stand_at_their_place_in_a_platform() -> None:
    with pytest.raises(SpecError) as refused:
        parse_platform({"storage_class": "fast", "shared_storage": {"storage_class": {"system": "efs"}}})
    places = [problem.path for problem in refused.value.problems]
    assert places == ["shared_storage.storage_class.system", "storage_class"]


def test_parameters_of_the_user_replace_those_of_the_table() -> None:
    spec = parse_shared_storage({"storage_class": a_class("filestore", parameters={"tier": "enterprise"})}, "storage")
    assert spec.storage_class
    assert merged_parameters(spec.storage_class) == {"tier": "enterprise", "network": "default", "protocol": "NFS_V4_1"}


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"volume": a_volume("efs")}, "177 hard links"),
        ({"host_path": "/mnt/shared"}, "/mnt/shared is a directory of every machine"),
        ({"nfs": {"server": "nas", "path": "/e", "mount_options": ["soft"]}}, "Mount option soft: "),
        ({"nfs": {"server": "nas", "path": "/e", "mount_options": ["vers=3"]}}, "Mount option vers=3: locks need"),
        ({"storage_class": a_class("filestore", parameters={"protocol": "NFS_V3", "tier": "premium"})}, "NFS_V3"),
    ],
)
def test_what_users_will_notice_is_a_warning(description: dict[str, Any], words: str) -> None:
    assert any(words in text for text in warnings(parse_shared_storage(description, "storage")))


def test_nothing_is_warned_of_a_class_that_exists() -> None:
    assert not [*warnings(parse_shared_storage({"existing_class": "fast"}, "storage"))]
