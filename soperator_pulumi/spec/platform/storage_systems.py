"""Table of systems for shared storage: drivers, parameters and options, from the drivers' manuals.

docs/storage.md shows it. Entries `refused` state why a root file system cannot use a setting, with the cure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StorageSystem(StrEnum):
    """A system of shared storage."""

    NFS = "nfs"
    """Any NFS server, by csi-driver-nfs."""
    EFS = "efs"
    """Amazon EFS."""
    FSX_LUSTRE = "fsx_lustre"
    """Amazon FSx for Lustre."""
    FILESTORE = "filestore"
    """Google Filestore."""
    GOOGLE_LUSTRE = "google_lustre"
    """Google Cloud Managed Lustre."""
    AZURE_FILES_NFS = "azure_files_nfs"
    """Azure Files with NFS."""
    AZURE_LUSTRE = "azure_lustre"
    """Azure Managed Lustre."""
    NEBIUS = "nebius"
    """Nebius' shared filesystem."""
    CEPHFS = "cephfs"
    """CephFS, with Rook or only its driver."""
    VAST = "vast"
    """VAST Data."""
    WEKA = "weka"
    """WEKA."""
    JUICEFS = "juicefs"
    """JuiceFS."""
    OTHER = "other"
    """Any other CSI driver."""


@dataclass(frozen=True)
class StorageFacts:
    """Facts about one system."""

    title: str
    driver: str
    """Name of the CSI driver; empty if the user gives it."""
    verdict: str
    """Fitness for a jail, as a sentence for docs/storage.md."""
    class_refused: str = ""
    """Reason why no StorageClass of the system can hold a root file system, with the cure."""
    volume_refused: str = ""
    """Reason why no PersistentVolume can be created for it by hand, with the cure."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters of a StorageClass that differ from the driver's defaults."""
    required: tuple[str, ...] = ()
    """Parameters that only the user knows."""
    one_of: tuple[str, ...] = ()
    """Parameters of which exactly one is needed."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Parameters with the only value that works for a jail, and the reason."""
    attributes: tuple[str, ...] = ()
    """Attributes that a PersistentVolume needs in addition to its handle."""
    access_field: str = ""
    """Field of a PersistentVolume with the secret that it needs."""
    handle: str = ""
    """Regular expression of a PersistentVolume's handle; empty for any."""
    handle_wanted: str = ""
    """Form of the handle in words."""
    mount_options: tuple[str, ...] = ()
    """Default mount options."""
    required_options: Mapping[str, str] = field(default_factory=dict)
    """Mount options that are required, with the reason."""
    refused_options: Mapping[str, str] = field(default_factory=dict)
    """Mount options that are refused, with the reason and the cure. `*` means any option."""
    waits_for_pod: bool = False
    """Volumes are created when the first pod needs them, in its zone."""
    expands: bool = True
    """Volumes can grow."""
    least_gib: int = 1
    """Smallest volume."""
    warnings: tuple[str, ...] = ()
    """Restrictions that users notice."""


_SECRETS = ("csi.storage.k8s.io/provisioner-secret-name", "csi.storage.k8s.io/provisioner-secret-namespace")
_NODE_SECRETS = ("csi.storage.k8s.io/node-publish-secret-name", "csi.storage.k8s.io/node-publish-secret-namespace")
_FLOCK = {"flock": "without it every lock fails, of dpkg, SQLite and the switch of trees"}
_NO_XATTRS = "No extended attributes and no access control lists: setfacl fails, file capabilities are left out."
_NFS_XATTRS = "No access control lists of POSIX and no file capabilities; attributes user.* only with NFS 4.2."

SYSTEMS: Mapping[StorageSystem, StorageFacts] = {
    StorageSystem.NFS: StorageFacts(
        title="NFS",
        driver="nfs.csi.k8s.io",
        verdict="fit, exported with no_root_squash",
        parameters={
            "subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}",
            "mountPermissions": "0",
            "onDelete": "retain",
        },
        required=("server", "share"),
        volume_refused="is created by the key nfs, from server and path. Use that key.",
        mount_options=("nfsvers=4.2", "hard", "noatime", "nconnect=8"),
        warnings=(_NFS_XATTRS, "Sizes are not enforced: give the server quotas."),
    ),
    StorageSystem.EFS: StorageFacts(
        title="Amazon EFS",
        driver="efs.csi.aws.com",
        verdict="fit as a volume, not as a class; slow for many small files",
        class_refused="creates an access point per claim, in which all users become one: homes would be open to "
        "all users, and no tree could be filled. Give the file system itself: volume: {system: efs, handle: "
        "fs-0123456789abcdef0}.",
        handle=r"fs-[0-9a-f]{8,40}(:/?[A-Za-z0-9._/-]*)?",
        handle_wanted='the id of the file system, such as "fs-0123456789abcdef0", without an access point ("::fsap-"), '
        "in which all users become one",
        refused_options={"accesspoint": "in an access point all users become one. Remove it."},
        warnings=(
            _NO_XATTRS,
            "177 hard links and 512 locks per file; answers take milliseconds, which makes installing packages slow.",
        ),
    ),
    StorageSystem.FSX_LUSTRE: StorageFacts(
        title="Amazon FSx for Lustre",
        driver="fsx.csi.aws.com",
        verdict="fit, mounted with flock",
        parameters={
            "deploymentType": "PERSISTENT_2",
            "perUnitStorageThroughput": "125",
            "fileSystemTypeVersion": "2.15",
        },
        required=("subnetId", "securityGroupIds"),
        attributes=("dnsname", "mountname"),
        handle=r"fs-[0-9a-f]{8,40}",
        handle_wanted='the id of the file system, such as "fs-0123456789abcdef0"',
        mount_options=("flock", "noatime"),
        required_options=_FLOCK,
        least_gib=1200,
        warnings=("One zone. The machines' kernel must match the Lustre client.",),
    ),
    StorageSystem.FILESTORE: StorageFacts(
        title="Google Filestore",
        driver="filestore.csi.storage.gke.io",
        verdict="fit, with NFS 4.1 for locks",
        parameters={"tier": "zonal", "network": "default", "protocol": "NFS_V4_1"},
        attributes=("ip", "volume"),
        mount_options=("hard", "noatime"),
        waits_for_pod=True,
        least_gib=1024,
        warnings=(_NFS_XATTRS, "One instance per claim, in one zone unless the tier is regional or enterprise."),
    ),
    StorageSystem.GOOGLE_LUSTRE: StorageFacts(
        title="Google Cloud Managed Lustre",
        driver="lustre.csi.storage.gke.io",
        verdict="fit, mounted with flock",
        required=("perUnitStorageThroughput", "network"),
        attributes=("ip", "filesystem"),
        mount_options=("flock", "noatime"),
        required_options=_FLOCK,
        waits_for_pod=True,
        warnings=("One zone.",),
    ),
    StorageSystem.AZURE_FILES_NFS: StorageFacts(
        title="Azure Files with NFS",
        driver="file.csi.azure.com",
        verdict="fit with protocol nfs; slow for many small files",
        parameters={
            "protocol": "nfs",
            "skuName": "Premium_LRS",
            "networkEndpointType": "privateEndpoint",
            "rootSquashType": "NoRootSquash",
            "mountPermissions": "0",
        },
        fixed={
            "protocol": "SMB does not have Linux owners and modes",
            "rootSquashType": "root fills the jail",
            "mountPermissions": "any other value opens the volume's root to all users",
        },
        attributes=("storageAccount", "shareName", "protocol"),
        mount_options=("nconnect=4", "noresvport", "actimeo=30"),
        refused_options=dict.fromkeys(("nfsvers", "vers"), "the driver fixes NFS 4.1. Remove it."),
        least_gib=100,
        warnings=(_NO_XATTRS, "No hard links to symbolic links; small files are slow."),
    ),
    StorageSystem.AZURE_LUSTRE: StorageFacts(
        title="Azure Managed Lustre",
        driver="azurelustre.csi.azure.com",
        verdict="fit, mounted with flock",
        required=("sku-name", "zone", "maintenance-day-of-week", "maintenance-time-of-day-utc"),
        attributes=("mgs-ip-address",),
        mount_options=("flock", "noatime"),
        required_options=_FLOCK,
        expands=False,
        warnings=("Machines start with the taint azurelustre.csi.azure.com/agent-not-ready; only images of Ubuntu.",),
    ),
    StorageSystem.NEBIUS: StorageFacts(
        title="Nebius shared filesystem",
        driver="mounted-fs-path.csi.nebius.ai",
        verdict="fit: a full file system of Linux",
        volume_refused="has a directory per claim, through a class. Use storage_class, or host_path with the directory "
        "at which the machines mount the filesystem.",
        refused_options={"*": "the machines mount the filesystem at their start. Give options there (cloud-init)."},
        waits_for_pod=True,
        expands=False,
        warnings=("The filesystem must be attached to every node group with pods of Slurm. Sizes are not enforced.",),
    ),
    StorageSystem.CEPHFS: StorageFacts(
        title="CephFS",
        driver="rook-ceph.cephfs.csi.ceph.com",
        verdict="fit: a full file system of Linux",
        parameters={
            "csi.storage.k8s.io/provisioner-secret-name": "rook-csi-cephfs-provisioner",
            "csi.storage.k8s.io/provisioner-secret-namespace": "rook-ceph",
            "csi.storage.k8s.io/controller-expand-secret-name": "rook-csi-cephfs-provisioner",
            "csi.storage.k8s.io/controller-expand-secret-namespace": "rook-ceph",
            "csi.storage.k8s.io/node-stage-secret-name": "rook-csi-cephfs-node",
            "csi.storage.k8s.io/node-stage-secret-namespace": "rook-ceph",
            "mounter": "kernel",
            "kernelMountOptions": "recover_session=clean",
        },
        required=("clusterID", "fsName"),
        fixed={"mounter": "the client in user space is slower, and its mounts end with the driver's pod"},
        attributes=("clusterID", "fsName", "rootPath", "staticVolume"),
        access_field="node_stage_secret",
        mount_options=("noatime",),
        warnings=("A client that Ceph has blocked hangs until it mounts again.",),
    ),
    StorageSystem.VAST: StorageFacts(
        title="VAST Data",
        driver="csi.vastdata.com",
        verdict="fit, with a view policy without root squash",
        required=("root_export", "view_policy", *_SECRETS),
        one_of=("vip_pool_name", "vip_pool_fqdn"),
        mount_options=("nfsvers=4.1", "hard", "noatime"),
        warnings=(_NFS_XATTRS, "The view policy must be without root squash."),
    ),
    StorageSystem.WEKA: StorageFacts(
        title="WEKA",
        driver="csi.weka.io",
        verdict="fit: a full file system of Linux",
        parameters={"volumeType": "dir/v1", "capacityEnforcement": "HARD"},
        access_field="node_publish_secret",
        required=("filesystemName", *_SECRETS, *_NODE_SECRETS),
        warnings=(
            "No hard links and renames between directories with quotas: the trees and homes of a claim are in one.",
        ),
    ),
    StorageSystem.JUICEFS: StorageFacts(
        title="JuiceFS",
        driver="csi.juicefs.com",
        verdict="fit with enable-xattr and a metadata engine that is highly available",
        required=(*_SECRETS, *_NODE_SECRETS),
        access_field="node_publish_secret",
        mount_options=("enable-xattr",),
        refused_options={
            "writeback": "other machines would not see data that one has written, and losing a machine loses the "
            "data. Remove it.",
            "writeback_cache": "other machines would not see data that one has written. Remove it.",
        },
        warnings=("Its metadata engine decides on speed and must be highly available. No locks of kind OFD.",),
    ),
    StorageSystem.OTHER: StorageFacts(
        title="Other CSI driver",
        driver="",
        verdict="decided by the probe",
    ),
}
"""Facts about the systems."""

REFUSED_OPTIONS: Mapping[str, str] = {
    "ro": "nothing could be filled. Remove it; a submount takes read_only.",
    "noexec": "the admin shell could not start programs. Remove it.",
    "nolock": "locks would only hold on one machine. Remove it; NFS 4 needs no lock service.",
    "local_lock": "locks would only hold on one machine. Remove it.",
    "localflock": "locks would only hold on one machine. Give flock instead.",
    "noflock": "every lock would fail. Give flock instead.",
    "nobrl": "locks would only hold on one machine. Remove it.",
}
"""Options that no jail can work with, on any system."""

WARNED_OPTIONS: Mapping[str, str] = {
    "soft": "if the server pauses, jobs get errors instead of waiting, and files can be damaged. Give hard.",
    "softerr": "if the server pauses, jobs get errors instead of waiting, and files can be damaged. Give hard.",
    "nfsvers=3": "locks need a lock service on machines and server (rpc.statd). Give nfsvers=4.1 or 4.2.",
    "vers=3": "locks need a lock service on machines and server (rpc.statd). Give nfsvers=4.1 or 4.2.",
    "async": "a machine's crash loses data that programs have flushed. Remove it.",
}
"""Options that users notice."""
