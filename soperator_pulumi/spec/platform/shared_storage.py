"""Shared storage (ReadWriteMany) for the jail, homes and submounts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field, StrictBool, model_validator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.platform.storage_systems import (
    REFUSED_OPTIONS,
    SYSTEMS,
    WARNED_OPTIONS,
    StorageFacts,
    StorageSystem,
)
from soperator_pulumi.spec.storage import MAX_GIB
from soperator_pulumi.spec.types.absolute_path import AbsolutePath
from soperator_pulumi.spec.types.names import DnsLabel, ObjectName
from soperator_pulumi.spec.validation.base import Matches, Model, broken_rules, whole
from soperator_pulumi.spec.validation.partial import known

MountOption = Annotated[
    str, Matches(r"[A-Za-z0-9_.:/=@-]+", 'needs one option of a mount, such as "nconnect=8", without commas.', 255)
]
"""A mount option."""

DriverName = Annotated[
    str, Matches(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", 'needs the name of a CSI driver, such as "nfs.csi.k8s.io".', 63)
]
"""Name of a CSI driver (CSIDriver)."""

Server = Annotated[
    str, Matches(r"[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?", "needs the name or the address of a server.", 253)
]
"""Name or address of a server."""

SOURCES = ("existing_claim", "existing_class", "storage_class", "volume", "nfs", "host_path")
"""Fields of which exactly one must be given."""

KERNEL_NFS_OPTIONS = ("nfsvers=4.2", "hard", "noatime", "nconnect=8")
"""Default mount options for NFS."""


class ObjectReference(Model):
    """Kubernetes object, given by namespace and name."""

    namespace: DnsLabel
    """Namespace of the object."""
    name: ObjectName
    """Name of the object."""


class CsiStorageClass(Model):
    """A StorageClass to create."""

    system: StorageSystem
    """Storage system behind the class."""
    driver: DriverName | None = None
    """Name of the CSI driver. Default: the system's; required for other, and for a CephFS outside of Rook."""
    parameters: dict[str, str] = Field(default_factory=dict)
    """Parameters of the class, which override those of the table in docs/storage.md."""
    mount_options: tuple[MountOption, ...] | None = None
    """Mount options. Default: those of the table."""


class CsiVolume(Model):
    """A PersistentVolume of a CSI driver, on existing storage."""

    system: StorageSystem
    """Storage system behind the volume."""
    handle: Annotated[str, Field(min_length=1, max_length=1024)]
    """Name by which the driver knows the storage (volumeHandle), such as a file system's id."""
    driver: DriverName | None = None
    """Name of the CSI driver. Default: the system's; required for other, and for a CephFS outside of Rook."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attributes for the driver (volumeAttributes)."""
    node_stage_secret: ObjectReference | None = None
    """Secret with which a machine attaches the volume: CephFS."""
    node_publish_secret: ObjectReference | None = None
    """Secret with which a machine mounts the volume: JuiceFS, VAST, WEKA."""
    mount_options: tuple[MountOption, ...] | None = None
    """Mount options. Default: those of the table in docs/storage.md."""


class NfsVolume(Model):
    """A PersistentVolume on a directory of an NFS server."""

    server: Server
    """Name or address of the server. The kubelet cannot resolve names of the cluster's Services, csi-driver-nfs can."""
    path: AbsolutePath
    """Exported directory, with no_root_squash."""
    csi: StrictBool = False
    """Mount with csi-driver-nfs, which must be installed. Default: false; the kubelet mounts with the machines' own
    client (nfs-common, nfs-utils)."""
    mount_options: tuple[MountOption, ...] | None = None
    """Mount options. Default: nfsvers=4.2, hard, noatime, nconnect=8."""


class SharedStorageSpec(Model):
    """Shared storage: exactly one of existing_claim, existing_class, storage_class, volume, nfs and host_path."""

    name: ObjectName = "slurm-shared"
    """Name of the created StorageClass or PersistentVolume."""
    existing_claim: ObjectName | None = None
    """An existing claim in the cluster's namespace."""
    existing_class: ObjectName | None = None
    """An existing StorageClass."""
    storage_class: CsiStorageClass | None = None
    """A StorageClass to create."""
    volume: CsiVolume | None = None
    """A PersistentVolume to create on existing storage."""
    nfs: NfsVolume | None = None
    """A PersistentVolume to create on a directory of an NFS server."""
    host_path: AbsolutePath | None = None
    """A directory of the machine: for one machine, or if all machines mount the same file system there."""
    size_gib: Annotated[int, whole(1, MAX_GIB)] = 100
    """Size of the volume or claim in GiB. Most systems do not enforce it. Default: 100."""
    claim: ObjectReference | None = None
    """A claim to create on the storage, for submounts. Its namespace must exist: set create_namespace: false for a
    cluster in it. Default: none, as clusters create the jail's claim."""
    keep: StrictBool = True
    """Protect the created objects, and keep them in a `destroy`. Default: true; Kubernetes always retains the data."""

    @model_validator(mode="after")
    def _follow_the_rules(self) -> "SharedStorageSpec":
        found = list(problems(self))
        if found:
            raise broken_rules(found)
        return self


def problems(storage: SharedStorageSpec, path: str = "") -> Iterator[Problem]:
    """Yield the problems of shared storage, with paths relative to the spec that has it at `path`."""
    dot = f"{path}." if path else ""
    if known(*(getattr(storage, name) for name in SOURCES)):
        given = [name for name in SOURCES if getattr(storage, name) is not None]
        if len(given) != 1:
            text = f"has {' and '.join(given)}" if given else "empty"
            yield Problem(path, f"{text}. Give exactly one of {', '.join(SOURCES)}.")
    if known(storage.storage_class) and storage.storage_class is not None:
        yield from _class_problems(storage.storage_class, f"{dot}storage_class")
    if known(storage.volume) and storage.volume is not None:
        yield from _volume_problems(storage.volume, f"{dot}volume")
    if known(storage.nfs) and storage.nfs is not None:
        yield from _option_problems(storage.nfs.mount_options, None, f"{dot}nfs")
    if (
        known(storage.claim, storage.existing_claim)
        and storage.claim is not None
        and storage.existing_claim is not None
    ):
        yield Problem(f"{dot}claim", "given with existing_claim, which already is a claim. Remove it.")
    system = _system(storage)
    if known(storage.size_gib, storage.claim) and storage.claim is not None and system is not None:
        facts = SYSTEMS[system]
        if storage.size_gib < facts.least_gib:
            text = f"got {storage.size_gib}, but volumes of {facts.title} have at least {facts.least_gib} GiB."
            yield Problem(f"{dot}size_gib", text)


def warnings(storage: SharedStorageSpec) -> Iterator[str]:
    """Yield restrictions that users of the storage will notice, with a remedy."""
    system = _system(storage)
    if system is not None:
        yield from (f"{SYSTEMS[system].title}: {text}" for text in SYSTEMS[system].warnings)
    if storage.nfs is not None:
        yield from (f"NFS: {text}" for text in SYSTEMS[StorageSystem.NFS].warnings)
    if storage.host_path is not None:
        yield (
            f"{storage.host_path} is a directory of every machine: pods on several machines share it only if all "
            "mount the same file system there."
        )
    for source in (storage.storage_class, storage.volume, storage.nfs):
        for option in (source and source.mount_options) or ():
            text = WARNED_OPTIONS.get(option) or WARNED_OPTIONS.get(option.partition("=")[0])
            if text:
                yield f"Mount option {option}: {text}"
    if storage.storage_class is not None and _protocol(storage.storage_class) == "NFS_V3":
        yield "Google Filestore with NFS_V3: locks need a lock service on machines. Give protocol: NFS_V4_1."


def merged_parameters(given: CsiStorageClass) -> dict[str, str]:
    """Return the parameters of a StorageClass: the user's merged over the table's."""
    return {**SYSTEMS[given.system].parameters, **given.parameters}


def mount_options(given: CsiStorageClass | CsiVolume) -> Sequence[str]:
    """Return the mount options: the user's, or else the table's."""
    return SYSTEMS[given.system].mount_options if given.mount_options is None else given.mount_options


def _system(storage: SharedStorageSpec) -> StorageSystem | None:
    for source in (storage.storage_class, storage.volume):
        if known(source) and source is not None and known(source.system):
            return source.system
    return None


def _protocol(given: CsiStorageClass) -> str:
    return merged_parameters(given).get("protocol", "") if given.system is StorageSystem.FILESTORE else ""


def _class_problems(given: CsiStorageClass, path: str) -> Iterator[Problem]:
    if not known(given.system):
        return
    facts = SYSTEMS[given.system]
    if facts.class_refused:
        yield Problem(f"{path}.system", f"{facts.title} {facts.class_refused}")
        return
    yield from _driver_problems(given, facts, path)
    if known(given.parameters):
        yield from _parameter_problems(given, facts, f"{path}.parameters")
    yield from _option_problems(given.mount_options, facts, path)


def _parameter_problems(given: CsiStorageClass, facts: StorageFacts, path: str) -> Iterator[Problem]:
    merged = merged_parameters(given)
    for name in facts.required:
        if not merged.get(name):
            yield Problem(f"{path}.{name}", f"missing: {facts.title} needs it. Give it.")
    if facts.one_of and sum(name in merged for name in facts.one_of) != 1:
        yield Problem(path, f"needs exactly one of {' and '.join(facts.one_of)} for {facts.title}.")
    for name, why in facts.fixed.items():
        if merged[name] != facts.parameters[name]:
            wanted = facts.parameters[name]
            yield Problem(f"{path}.{name}", f'got "{merged[name]}", needs "{wanted}": {why}. Remove it.')
    sku = merged.get("skuName", "")
    if given.system is StorageSystem.AZURE_FILES_NFS and not sku.startswith("Premium"):
        yield Problem(f"{path}.skuName", f'got "{sku}", but NFS needs a premium one: Premium_LRS or Premium_ZRS.')
    tier = merged.get("tier", "")
    if _protocol(given) == "NFS_V4_1" and tier in {"standard", "premium", "basic_hdd", "basic_ssd"}:
        yield Problem(
            f"{path}.tier",
            f'got "{tier}", which only supports NFS 3. Choose zonal, regional or enterprise, or give protocol: NFS_V3, '
            "whose locks need a lock service.",
        )


def _volume_problems(given: CsiVolume, path: str) -> Iterator[Problem]:
    if not known(given.system):
        return
    facts = SYSTEMS[given.system]
    if facts.volume_refused:
        yield Problem(f"{path}.system", f"{facts.title} {facts.volume_refused}")
        return
    yield from _driver_problems(given, facts, path)
    if known(given.handle) and facts.handle and not re.fullmatch(facts.handle, given.handle):
        yield Problem(f"{path}.handle", f'got "{given.handle}", needs {facts.handle_wanted}.')
    if facts.access_field and known(getattr(given, facts.access_field)) and getattr(given, facts.access_field) is None:
        yield Problem(f"{path}.{facts.access_field}", f"missing: {facts.title} needs it. Give namespace and name.")
    if known(given.attributes):
        for name in facts.attributes:
            if not given.attributes.get(name):
                yield Problem(f"{path}.attributes.{name}", f"missing: {facts.title} needs it. Give it.")
    yield from _option_problems(given.mount_options, facts, path)


def _driver_problems(given: CsiStorageClass | CsiVolume, facts: StorageFacts, path: str) -> Iterator[Problem]:
    if known(given.driver) and given.driver is None and not facts.driver:
        yield Problem(
            f"{path}.driver", "missing: the system `other` has no default driver. Give the name of the CSI driver."
        )
    if known(given.driver) and given.driver is not None:
        owner = next((system for system, other in SYSTEMS.items() if other.driver == given.driver), None)
        if owner is not None and SYSTEMS[owner] is not facts:
            yield Problem(
                f"{path}.driver", f'got "{given.driver}", which is the driver of system {owner}. Give that system.'
            )


def _option_problems(options: Sequence[str] | None, facts: StorageFacts | None, path: str) -> Iterator[Problem]:
    if not known(options) or options is None:
        return
    names = {option.partition("=")[0]: option for option in options}
    own: Mapping[str, str] = {} if facts is None else facts.refused_options
    refused = {**REFUSED_OPTIONS, **own, **(dict.fromkeys(names, own["*"]) if "*" in own else {})}
    for name, option in names.items():
        if name in refused and option != "local_lock=none":
            yield Problem(f"{path}.mount_options", f'got "{option}": {refused[name]}')
    for name, why in ({} if facts is None else facts.required_options).items():
        if name not in names:
            yield Problem(f"{path}.mount_options", f'needs "{name}": {why}. Add it.')
