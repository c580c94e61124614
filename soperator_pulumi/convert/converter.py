"""Conversion of files to a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from soperator_pulumi.convert.conversion import Addition, Conversion, LeafAccount
from soperator_pulumi.convert.conversion_report import report_text
from soperator_pulumi.convert.gpu_parts import warn_of_unlocked_memory
from soperator_pulumi.convert.kubernetes_objects import account_for_others
from soperator_pulumi.convert.settling import settle
from soperator_pulumi.convert.slinky_resources import convert_slinky_resources
from soperator_pulumi.convert.slinky_values import convert_slinky_values
from soperator_pulumi.convert.soperator_resources import convert_soperator_resources
from soperator_pulumi.convert.soperator_values import convert_soperator_values
from soperator_pulumi.convert.sources import Source, SourceKind, read_sources
from soperator_pulumi.convert.stack_text import stack_text
from soperator_pulumi.convert.yaml_tree import leaves_of, overlaid
from soperator_pulumi.errors import ConversionError

_NO_USERS = "No user can log in yet: the input names none. Add them under `users`, each with a uid and ssh_keys."
_NEW_JAIL = (
    "The jail is a new claim of 100 GiB of the default StorageClass, which must support ReadWriteMany; jail.storage "
    "sets another size and class."
)

_SOPERATOR_VALUES = {
    SourceKind.SOPERATOR_CLUSTER_VALUES,
    SourceKind.SOPERATOR_NODE_SETS_VALUES,
    SourceKind.SOPERATOR_FLUX_VALUES,
}


@dataclass(frozen=True)
class Converted:
    """A converted cluster, with an account of every value of its files."""

    title: str
    """Kinds of the converted files."""
    cluster: Mapping[str, Any]
    """The cluster as under `soperator:cluster`, with placeholders for values that the user has to give."""
    entries: Sequence[LeafAccount]
    """Accounts of the values, in the order of the files, and of the chart defaults that mattered."""
    additions: Sequence[Addition]
    """Values that the user has to give before the spec accepts the cluster."""
    _work: Conversion

    def stack_file(self) -> str:
        """Return the content of a stack file."""
        return stack_text(self._work, self.title)

    def report(self) -> str:
        """Return the report for a reader. It shows no value of a Secret."""
        return report_text(self._work, self.title)


def convert(files: Iterable[Path], *, release: str = "") -> Converted:
    """Convert files that describe one cluster.

    Args:
        files: Values of Helm charts, or custom resources, of one project.
        release: Release of Slinky's chart that values are read as, such as `1.1`. Default: the one that the input
            tells, or else the newest.

    Raises:
        ConversionError: A file cannot be read, the files do not describe exactly one cluster, or the release is not
            known.
    """
    sources = read_sources([*files])
    work = Conversion([leaf for source in sources for leaf in source.root.leaves()])
    _convert(work, sources, release)
    settle(work)
    warn_of_unlocked_memory(work)
    cluster = work.plain()
    if cluster.get("login", {}).get("replicas") != 0:
        work.remarks.append(_NO_USERS)
    if "storage" not in cluster.get("jail", {}):
        work.remarks.append(_NEW_JAIL)
    title = ", ".join(dict.fromkeys(source.kind.value for source in sources if source.kind in _described(sources)))
    return Converted(title, work.plain(), work.entries(), work.additions(), work)


def _convert(work: Conversion, sources: Sequence[Source], release: str) -> None:
    kinds = _described(sources)
    if release and kinds != {SourceKind.SLINKY_VALUES}:
        found = ", ".join(sorted(kind.value for kind in kinds))
        raise ConversionError(
            f'--release: got "{release}" for {found}. Only {SourceKind.SLINKY_VALUES.value} take it: leave it out.'
        )
    values = [source for source in sources if source.kind is not SourceKind.OTHER_RESOURCE]
    if kinds <= _SOPERATOR_VALUES:
        for kind in SourceKind:
            if sum(source.kind is kind for source in values) > 1:
                raise ConversionError(
                    f"Two files are {kind.value}. A stack file describes one cluster: give one of them."
                )
        convert_soperator_values(work, values)
        account_for_others(work, sources, {})
    elif kinds == {SourceKind.SLINKY_VALUES}:
        objects = [source.root for source in sources if source.kind is SourceKind.OTHER_RESOURCE]
        convert_slinky_values(work, _merged(work, values), objects, release)
        account_for_others(work, sources, {})
    elif kinds == {SourceKind.SOPERATOR_RESOURCE}:
        convert_soperator_resources(work, sources)
    elif kinds == {SourceKind.SLINKY_RESOURCE}:
        convert_slinky_resources(work, sources)
    else:
        found = "; ".join(f"{source.path or 'a file'}: {source.kind.value}" for source in sources)
        raise ConversionError(
            f"These files do not describe one cluster together: {found}. Give the files of one project, either its "
            "values or "
            "its custom resources."
        )


def _merged(work: Conversion, sources: Sequence[Source]) -> Source:
    """Return values of several files as one, as Helm lays later files over earlier ones."""
    first, *others = sources
    for source in others:
        tree = overlaid(first.tree, source.tree)
        assert isinstance(tree, Mapping)  # noqa: S101 - as both are
        kept = {*leaves_of(tree)}
        work.needless([leaf for leaf in leaves_of(first.tree) if leaf not in kept], "a later file overrules it")
        first = replace(first, tree=tree, path="", chart_version=first.chart_version or source.chart_version)
    return first


def _described(sources: Sequence[Source]) -> set[SourceKind]:
    """Return the kinds of the sources, without other Kubernetes objects.

    Raises:
        ConversionError: There are only other objects.
    """
    found = {source.kind for source in sources} - {SourceKind.OTHER_RESOURCE}
    if not found:
        kinds = ", ".join(sorted({source.resource for source in sources}))
        raise ConversionError(
            f"No custom resource of soperator or Slinky is among these objects: {kinds}. Give the resources of a "
            "cluster, such as `kubectl get slurmclusters,nodesets -o yaml`."
        )
    return found
