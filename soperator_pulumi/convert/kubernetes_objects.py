"""Kubernetes objects in the input: fields that all of them have, and objects that do not describe a cluster."""

from collections.abc import Mapping, Sequence

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.rules import Rule, cannot, needless
from soperator_pulumi.convert.sources import Source, SourceKind
from soperator_pulumi.errors import ConversionError

CHART_LABELS = "labels of Helm and its charts"

OBJECT_RULES: tuple[Rule, ...] = (
    *needless("kind of the object", "apiVersion", "kind"),
    *needless("name of the object", "metadata.name"),
    *needless("a cluster here has its own namespace: `namespace`, by default its name", "metadata.namespace"),
    *needless(
        "written by Kubernetes and by tools",
        "metadata.creationTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.deletionTimestamp",
        "metadata.finalizers.**",
        "metadata.generation",
        "metadata.managedFields.**",
        "metadata.ownerReferences.**",
        "metadata.resourceVersion",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.annotations.kubectl*last-applied-configuration",
        "status.**",
    ),
    *needless(CHART_LABELS, "metadata.labels.helm*chart", "metadata.labels.app*kubernetes*io/*"),
    *cannot("labels are set for all objects together (labels)", "metadata.labels.**"),
    *cannot("annotations are set for all objects together (annotations)", "metadata.annotations.**"),
)
"""Accounts of fields that every object has."""


def only_one(sources: Sequence[Source], kind: str) -> Source | None:
    """Return the only resource of a kind; None if there is none.

    Raises:
        ConversionError: There are several.
    """
    found = [source for source in sources if source.resource == kind]
    if len(found) > 1:
        names = ", ".join(source.root.at("metadata", "name").text() for source in found)
        raise ConversionError(
            f"{len(found)} resources of the kind {kind}: {names}. A stack file describes one cluster: convert them one "
            "by one."
        )
    return found[0] if found else None


def account_for_others(work: Conversion, sources: Sequence[Source], known: Mapping[str, str]) -> None:
    """Report resources that are not converted, as one entry for every resource.

    Args:
        work: The conversion.
        sources: All resources.
        known: Reasons for the project's own kinds that are not converted.
    """
    for source in sorted(sources, key=lambda source: not source.reason):
        kind = source.resource
        if source.is_lost:
            work.cannot(source.root, source.reason)
        elif source.kind is SourceKind.OTHER_RESOURCE:
            article = "an" if kind.startswith(tuple("AEIO")) else "a"
            usual = f"{article} {kind} is not part of a cluster's description; keep it yourself"
            work.needless(source.root, source.reason or usual)
        elif kind in known:
            work.cannot(source.root, known[kind])
