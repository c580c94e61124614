"""Shared storage (ReadWriteMany) for the jail, homes and submounts."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import (
    CSIPersistentVolumeSourceArgs,
    HostPathVolumeSourceArgs,
    NFSVolumeSourceArgs,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    PersistentVolumeInitArgs,
    PersistentVolumeSpecArgs,
    SecretReferenceArgs,
    VolumeResourceRequirementsArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.storage.v1 import StorageClass, StorageClassInitArgs

from soperator_pulumi.errors import SpecError
from soperator_pulumi.platform.chart_component import PartScope, object_labels
from soperator_pulumi.platform.description import InvalidPlatformError
from soperator_pulumi.spec.args import SharedStorageArgs
from soperator_pulumi.spec.platform.shared_storage import (
    KERNEL_NFS_OPTIONS,
    CsiVolume,
    NfsVolume,
    ObjectReference,
    SharedStorageSpec,
    merged_parameters,
    mount_options,
    problems,
    warnings,
)
from soperator_pulumi.spec.platform.storage_systems import SYSTEMS, StorageSystem
from soperator_pulumi.spec.validation.parse import parse

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation of volumes and claims for which Pulumi does not wait: they bind when the first pod uses them."""

_LABELS = object_labels("shared-storage")


class SharedStorage(pulumi.ComponentResource):
    """Storage that many pods can write to: a class, a volume or a claim, created or existing.

    Example::

        import pulumi

        from soperator_pulumi import SharedStorage, SlurmCluster

        storage = SharedStorage("storage", {"nfs": {"server": "10.0.0.7", "path": "/export/slurm"}, "size_gib": 2048})
        cluster = SlurmCluster(
            "hpc",
            jail={"storage": storage.volume},
            images=pulumi.Config("soperator").require_object("images"),
            node_sets=[{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}],
        )

    Kubernetes never deletes the data (reclaim policy Retain). The cluster tests the storage before it fills the jail.
    """

    created: StorageClass | PersistentVolume | None
    """Object that was created; None for existing storage."""

    created_claim: PersistentVolumeClaim | None
    """Claim for submounts; None without `claim`."""

    storage_class: pulumi.Output[str] | None
    """Name of the StorageClass, for `jail.storage.storage_class`."""

    static_volume: pulumi.Output[str] | None
    """Name of the PersistentVolume, for `jail.storage.static_volume`."""

    existing_claim: pulumi.Output[str] | None
    """Name of the claim, for `jail.storage.existing_claim` and `existing_claim` of submounts."""

    volume: Mapping[str, Any]
    """Keys for `jail.storage`: one of the three names, and the size."""

    def __init__(
        self,
        resource_name: str,
        args: SharedStorageArgs | SharedStorageSpec | Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
        *,
        scope: PartScope | None = None,
    ) -> None:
        """Create the storage's objects.

        Args:
            resource_name: Name of the component.
            args: Description of the storage, as in `soperator:platform` of a stack, key `shared_storage`.
            opts: Options of the component. `protect`, `providers` and `depends_on` reach the children.
            scope: Scope of the platform that the storage belongs to; None for storage without a platform.

        Raises:
            InvalidPlatformError: The description has problems; the message lists all of them.
        """
        spec = parse_shared_storage(args, f"SharedStorage {resource_name!r}")
        super().__init__("soperator-pulumi:index:SharedStorage", resource_name, {}, opts)
        depends_on = pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
        self._scope = (scope or PartScope(self, depends_on=depends_on)).within(self)
        for text in warnings(spec):
            pulumi.log.warn(text, self)
        self.created = self._create(resource_name, spec)
        self._name_it(spec)
        self.created_claim = None if spec.claim is None else self._create_claim(resource_name, spec, spec.claim)
        self.volume = self._volume(spec)
        self.register_outputs(
            {
                "storageClass": self.storage_class,
                "staticVolume": self.static_volume,
                "existingClaim": self.existing_claim,
            }
        )

    def _create(self, name: str, spec: SharedStorageSpec) -> StorageClass | PersistentVolume | None:
        """Create the class or the volume, unless it exists."""
        if spec.storage_class is not None:
            return StorageClass(name, class_arguments(spec), self._options(spec))
        source = volume_source(spec)
        if source is None:
            return None
        metadata = ObjectMetaArgs(name=spec.name, labels=_LABELS, annotations=SKIP_AWAIT)
        return PersistentVolume(name, PersistentVolumeInitArgs(metadata=metadata, spec=source), self._options(spec))

    def _name_it(self, spec: SharedStorageSpec) -> None:
        """Set the names that clusters use.

        Names of created objects are outputs: a preview looks up objects whose names it knows.
        """
        self.storage_class = self.static_volume = self.existing_claim = None
        if isinstance(self.created, StorageClass):
            self.storage_class = self.created.id.apply(lambda _: spec.name)
        elif self.created is not None:
            self.static_volume = self.created.id.apply(lambda _: spec.name)
        elif spec.existing_class is not None:
            self.storage_class = pulumi.Output.from_input(spec.existing_class)
        elif spec.existing_claim is not None:
            self.existing_claim = pulumi.Output.from_input(spec.existing_claim)

    def _create_claim(self, name: str, spec: SharedStorageSpec, claim: ObjectReference) -> PersistentVolumeClaim:
        created = PersistentVolumeClaim(
            f"{name}-claim",
            metadata=ObjectMetaArgs(name=claim.name, namespace=claim.namespace, labels=_LABELS, annotations=SKIP_AWAIT),
            spec=PersistentVolumeClaimSpecArgs(
                access_modes=["ReadWriteMany"],
                storage_class_name="" if self.storage_class is None else self.storage_class,
                volume_name=self.static_volume,
                resources=VolumeResourceRequirementsArgs(requests={"storage": f"{spec.size_gib}Gi"}),
            ),
            opts=self._options(spec),
        )
        self.existing_claim = created.id.apply(lambda _: claim.name)
        return created

    def _volume(self, spec: SharedStorageSpec) -> dict[str, Any]:
        if self.existing_claim is not None:
            return {"existing_claim": self.existing_claim}
        if self.static_volume is not None:
            return {"static_volume": self.static_volume, "size_gib": spec.size_gib}
        return {"storage_class": self.storage_class, "size_gib": spec.size_gib}

    def _options(self, spec: SharedStorageSpec) -> pulumi.ResourceOptions:
        return self._scope.options(pulumi.ResourceOptions(protect=spec.keep, retain_on_delete=spec.keep))


def parse_shared_storage(data: object, where: str) -> SharedStorageSpec:
    """Return the checked spec of shared storage.

    Raises:
        InvalidPlatformError: The data has problems; all of them at once.
    """
    try:
        return parse(SharedStorageSpec, data, where, "shared storage", problems)
    except SpecError as error:
        raise InvalidPlatformError(error.where, error.problems) from None


def class_arguments(spec: SharedStorageSpec) -> StorageClassInitArgs:
    """Return the inputs of the StorageClass."""
    given = spec.storage_class
    assert given is not None  # noqa: S101 - its caller asks for it
    facts = SYSTEMS[given.system]
    return StorageClassInitArgs(
        metadata=ObjectMetaArgs(name=spec.name, labels=_LABELS),
        provisioner=given.driver or facts.driver,
        parameters=merged_parameters(given) or None,
        mount_options=[*mount_options(given)] or None,
        reclaim_policy="Retain",
        volume_binding_mode="WaitForFirstConsumer" if facts.waits_for_pod else "Immediate",
        allow_volume_expansion=facts.expands,
    )


def volume_source(spec: SharedStorageSpec) -> PersistentVolumeSpecArgs | None:
    """Return the spec of the PersistentVolume; None if none is created."""
    options: Sequence[str] = ()
    source: dict[str, Any]
    if spec.volume is not None:
        options, source = mount_options(spec.volume), {"csi": _csi(spec.volume)}
    elif spec.nfs is not None:
        options, source = spec.nfs.mount_options or KERNEL_NFS_OPTIONS, _nfs(spec.nfs, spec.name)
    elif spec.host_path is not None:
        source = {"host_path": HostPathVolumeSourceArgs(path=spec.host_path, type="DirectoryOrCreate")}
    else:
        return None
    return PersistentVolumeSpecArgs(
        access_modes=["ReadWriteMany"],
        capacity={"storage": f"{spec.size_gib}Gi"},
        persistent_volume_reclaim_policy="Retain",
        storage_class_name="",  # otherwise a default class would be applied to the volume
        mount_options=[*options] or None,
        **source,
    )


def _csi(volume: CsiVolume) -> CSIPersistentVolumeSourceArgs:
    return CSIPersistentVolumeSourceArgs(
        driver=volume.driver or SYSTEMS[volume.system].driver,
        volume_handle=volume.handle,
        volume_attributes=volume.attributes or None,
        node_stage_secret_ref=_secret(volume.node_stage_secret),
        node_publish_secret_ref=_secret(volume.node_publish_secret),
    )


def _secret(reference: ObjectReference | None) -> SecretReferenceArgs | None:
    return None if reference is None else SecretReferenceArgs(name=reference.name, namespace=reference.namespace)


def _nfs(volume: NfsVolume, name: str) -> dict[str, Any]:
    """Return the source of an NFS volume, with a unique handle (csi-driver-nfs, static provisioning)."""
    if not volume.csi:
        return {"nfs": NFSVolumeSourceArgs(server=volume.server, path=volume.path)}
    return {
        "csi": CSIPersistentVolumeSourceArgs(
            driver=SYSTEMS[StorageSystem.NFS].driver,
            volume_handle=f"{volume.server}#{volume.path}#{name}",
            volume_attributes={"server": volume.server, "share": volume.path, "mountPermissions": "0"},
        )
    }
