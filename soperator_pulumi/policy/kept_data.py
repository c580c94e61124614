"""Policy on data: claims, and the namespaces that hold them, outlive mistakes."""

from collections.abc import Iterator

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import ResourceView


def _kept(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not _holds_data(resource):
        return
    if not resource.protect:
        yield Finding(resource, ("protect",), "got false, needs true: an update or a destroy may delete the data")
    if resource.retain_on_delete is False:
        yield Finding(resource, ("retainOnDelete",), "got false, needs true: a destroy would delete the data")


def _holds_data(resource: ResourceView) -> bool:
    if not resource.is_kubernetes:
        return False
    return resource.kind == "PersistentVolumeClaim" or (resource.kind == "Namespace" and resource.is_ours)


KEPT_DATA = ResourcePolicy(
    name="kept-data",
    description="Claims of the jail and of Slurm's state, and their namespace, are protected and retained.",
    violated_by="`storage.keep: false`; a PersistentVolumeClaim without `protect` and `retain_on_delete`",
    cure="Set storage.keep to true; for a claim of your own, set both options in the program.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("data",),
    check=_kept,
)
