"""Policies on names and labels of Kubernetes objects."""

from collections.abc import Iterator

from pydantic import Field

from soperator_pulumi.policy.definition import Circumstances, Edit, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.value_tree import UNKNOWN, look, mapped
from soperator_pulumi.policy.view import PART_OF_LABEL, ResourceView

_AUTONAMED = "pulumi.com/autonamed"


def _names(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not _is_object(resource):
        return
    metadata = look(resource.props, "metadata")
    if metadata is UNKNOWN:
        yield not_known(resource, ("metadata",))
        return
    if not look(metadata, "name") or look(metadata, "annotations", _AUTONAMED) == "true":
        text = "missing: Pulumi generates one, and a new one for every replacement"
        yield Finding(resource, ("metadata", "name"), text)
    if (namespace := look(metadata, "namespace")) == "default" or str(namespace).startswith("kube-"):
        yield Finding(resource, ("metadata", "namespace"), "belongs to Kubernetes: give the object one of its own")


NAMES = ResourcePolicy(
    name="names",
    description="Objects have explicit names, and are outside the namespaces of Kubernetes.",
    violated_by="an object without `metadata.name`, or in the namespace `default` or `kube-...`",
    cure="Set metadata.name and metadata.namespace.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.LOW,
    tags=("names",),
    check=_names,
)


class LabelSettings(PolicySettings):
    """Settings of `labels`."""

    required: tuple[str, ...] = (PART_OF_LABEL,)
    """Labels that every object has. Default: `app.kubernetes.io/part-of`."""
    values: dict[str, str] = Field(default_factory=dict)
    """Values of further required labels: `{cost-centre: "4711"}`. The level `remediate` adds them to objects."""


def _labels(resource: ResourceView, _run: Circumstances, settings: LabelSettings) -> Iterator[Finding]:
    if not _is_object(resource):
        return
    labels, path = resource.labels, ("metadata", "labels")
    if labels is UNKNOWN:
        yield not_known(resource, path)
        return
    for label in dict.fromkeys((*settings.required, *settings.values)):
        given, wanted = look(labels, label), settings.values.get(label)
        if given is UNKNOWN:
            yield not_known(resource, (*path, label))
        elif given in (None, "") or (wanted is not None and given != wanted):
            needs = "" if wanted is None else f' or another value, needs "{wanted}"'
            yield Finding(resource, (*path, label), f"missing{needs}")


def _with_labels(resource: ResourceView, _run: Circumstances, settings: LabelSettings) -> Iterator[Edit]:
    """Yield edits of the object's own labels, never of its pods' labels: that would recreate the pods."""
    if _is_object(resource) and resource.labels is not UNKNOWN:
        given = mapped(resource.labels)
        for label, value in settings.values.items():
            if given.get(label) in (None, ""):
                yield Edit(("metadata", "labels", label), value)


LABELS = ResourcePolicy(
    name="labels",
    description="Objects carry the required labels.",
    violated_by="an object without a label of `required` or of `values`",
    cure="Add the label: in `labels` of a cluster, in metadata.labels of other objects.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.LOW,
    tags=("names",),
    settings=LabelSettings,
    check=_labels,
    remediate=_with_labels,
)


def _is_object(resource: ResourceView) -> bool:
    return (
        resource.is_kubernetes
        and not resource.is_chart
        and not resource.is_patch
        and not resource.kind.endswith("List")
    )
