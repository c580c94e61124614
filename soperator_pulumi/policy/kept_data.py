"""Policy on data: claims, and the namespaces that hold them, outlive mistakes."""

from collections.abc import Iterator

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import UNKNOWN, Path, ResourceView, look


def _kept(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    yield from _deleted_with(resource)
    if not _holds_data(resource):
        return
    if not resource.protect:
        yield Finding(resource, ("protect",), "got false, needs true: an update or a destroy may delete the data")
    if resource.retain_on_delete is False:
        yield Finding(resource, ("retainOnDelete",), "got false, needs true: a destroy would delete the data")


def _deleted_with(resource: ResourceView) -> Iterator[Finding]:
    """Yield what has Kubernetes delete data along with another object."""
    if not resource.is_kubernetes:
        return
    paths: list[Path] = []
    if resource.kind == "StatefulSet" and (resource.is_ours or resource.is_patch):
        paths = [("spec", "persistentVolumeClaimRetentionPolicy", each) for each in ("whenDeleted", "whenScaled")]
    claimed = look(resource.props, "spec", "claimRef") is not None
    if resource.kind == "PersistentVolume" and (resource.is_ours or resource.is_patch or claimed):
        paths = [("spec", "persistentVolumeReclaimPolicy")]
    for path in paths:
        given = look(resource.props, *path)
        if given is UNKNOWN:
            yield not_known(resource, path)
        elif given == "Delete":
            yield Finding(resource, path, 'got "Delete", needs "Retain": the data goes with the object')


def _holds_data(resource: ResourceView) -> bool:
    if not resource.is_kubernetes or resource.is_patch:
        return False  # Pulumi deletes no object with its patch
    return resource.kind == "PersistentVolumeClaim" or (resource.kind == "Namespace" and resource.is_ours)


KEPT_DATA = ResourcePolicy(
    name="kept-data",
    description="Claims of the jail and of Slurm's state, and their namespace, are protected and retained.",
    violated_by="`storage.keep: false`; a PersistentVolumeClaim without `protect` and `retain_on_delete`; "
    "a PersistentVolume with a claim and `persistentVolumeReclaimPolicy: Delete`",
    cure="Set storage.keep to true; for a claim of your own, set both options in the program.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("data",),
    check=_kept,
)
