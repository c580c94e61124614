"""Tables of rules: paths of an input, with the account of the values there; and the accounts of Kubernetes objects.

A rule applies to all values at its path that have no account yet. `*` matches any characters of one key or index, `**`
at the end matches everything below. The first rule that matches counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.source_kinds import SourceKind
from soperator_pulumi.convert.sources import Source
from soperator_pulumi.convert.yaml_tree import Leaf, Section
from soperator_pulumi.errors import ConversionError


class RuleVerdict(Enum):
    """Account of the values that a rule matches."""

    CANNOT = auto()
    """The values have no counterpart."""
    NEEDLESS = auto()
    """The values are not needed."""
    EMPTY = auto()
    """Only empty values are accounted for. Other values at the path are read elsewhere, or unknown."""


@dataclass(frozen=True)
class Rule:
    """A path, with the account of the values there."""

    pattern: str
    verdict: RuleVerdict
    text: str
    switch: str = ""
    """Path, from the same root, of the value that turns the feature on: if it is off, the values are not needed."""

    def fits(self, keys: Sequence[str | int]) -> bool:
        """Return True if the rule matches the value with these keys."""
        parts = self.pattern.split(".")
        if parts[-1] == "**":
            parts.pop()
            if len(keys) < len(parts):
                return False
            keys = keys[: len(parts)]
        return len(keys) == len(parts) and all(
            fnmatchcase(str(key), part) for part, key in zip(parts, keys, strict=True)
        )


def cannot(text: str, *patterns: str, switch: str = "") -> tuple[Rule, ...]:
    """Return rules for values without a counterpart, with one reason for all."""
    return tuple(Rule(pattern, RuleVerdict.CANNOT, text, switch) for pattern in patterns)


def needless(text: str, *patterns: str) -> tuple[Rule, ...]:
    """Return rules for values that are not needed, with one reason for all."""
    return tuple(Rule(pattern, RuleVerdict.NEEDLESS, text) for pattern in patterns)


def empty(*patterns: str) -> tuple[Rule, ...]:
    """Return rules for keys that a conversion reads itself, so that only empty values remain."""
    return tuple(Rule(pattern, RuleVerdict.EMPTY, "empty") for pattern in patterns)


def apply(
    work: Conversion,
    root: Section,
    leaves: Iterable[Leaf],
    depth: int,
    rules: Sequence[Rule],
    *,
    elsewhere: Sequence[tuple[str, ...]] = (),
) -> None:
    """Apply the rules to the values that have no account yet.

    Args:
        work: The conversion.
        root: The root of the rules' paths, with defaults; it also holds the switches.
        leaves: The values.
        depth: Number of keys from the document to the root.
        rules: The rules, starting with the specific ones.
        elsewhere: Keys, from the document, of places that other rules account for.
    """
    on = {rule.switch: root.at(*rule.switch.split(".")).is_on() for rule in rules if rule.switch}
    for leaf in leaves:
        if work.is_accounted(leaf) or any(leaf.keys[: len(keys)] == keys for keys in elsewhere):
            continue
        rule = next((rule for rule in rules if rule.fits(leaf.keys[depth:])), None)
        if rule is None or (rule.verdict is RuleVerdict.EMPTY and not leaf.is_empty):
            continue
        if not on.get(rule.switch, True):
            work.needless([leaf], f"{rule.switch} is off")
        elif rule.verdict is RuleVerdict.CANNOT:
            work.cannot([leaf], rule.text)
        else:
            work.needless([leaf], rule.text)


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
