"""Conversion of files to a cluster. The last step removes what the spec refuses, with the reason in the report."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from soperator_pulumi.convert.conversion import TO_ADD, Addition, Conversion, LeafAccount, Placed
from soperator_pulumi.convert.gpu_parts import warn_of_unlocked_memory
from soperator_pulumi.convert.output import report_text, stack_text
from soperator_pulumi.convert.rules import account_for_others
from soperator_pulumi.convert.slinky_conversion import convert_slinky_resources, convert_slinky_values
from soperator_pulumi.convert.slurm_text import give_every_node_set_a_partition
from soperator_pulumi.convert.soperator_conversion import convert_soperator_resources, convert_soperator_values
from soperator_pulumi.convert.source_kinds import SourceKind
from soperator_pulumi.convert.sources import Source, read_sources
from soperator_pulumi.convert.yaml_tree import leaves_of, overlaid
from soperator_pulumi.errors import ConversionError, Problem, SpecError
from soperator_pulumi.spec.cluster import parse_cluster

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
        by_kind = [[source for source in values if source.kind is kind] for kind in SourceKind]
        convert_soperator_values(work, [_one_cluster(work, found) for found in by_kind if found])
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


def _one_cluster(work: Conversion, sources: Sequence[Source]) -> Source:
    """Return values of one chart of soperator in several files as one.

    Raises:
        ConversionError: They name several clusters, or node sets are in files as well as in releases.
    """
    kind = sources[0].kind
    names = {source.root.at("clusterName").text() for source in sources} - {""}
    are_node_sets = len(sources) > 1 and kind is SourceKind.SOPERATOR_NODE_SETS_VALUES
    are_releases = are_node_sets and all(source.is_release for source in sources)
    if len(names) > 1 or (are_node_sets and not are_releases and not all(source.is_file for source in sources)):
        clusters = f" for {', '.join(sorted(names))}" if names else ""
        raise ConversionError(
            f"Two files are {kind.value}{clusters}. A stack file describes one cluster: give one of them."
        )
    if are_releases:
        items = [item.tree for source in sources for item in source.root.at("nodesets").items()]
        return _merged(work, [replace(source, tree={**source.tree, "nodesets": items}) for source in sources])
    if are_node_sets:
        work.remarks.append(
            f"Several files have `nodesets`. The list of {sources[-1].file} counts, because Helm merges no lists. If "
            "the files belong to several releases of the chart, write all node sets into one list."
        )
    return _merged(work, sources)


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


_OF_REPOSITORIES = {
    "GitRepo": ("spec", "paths"),
    "Kustomization": ("spec", "path"),
    "Application": ("spec", "source", "path"),
    "ApplicationSet": ("spec", "template", "spec", "source", "path"),
}
"""Kinds of objects that name folders of a repository, with the keys of the folders."""


def _described(sources: Sequence[Source]) -> set[SourceKind]:
    """Return the kinds of the sources, without other Kubernetes objects.

    Raises:
        ConversionError: There are only other objects.
    """
    found = {source.kind for source in sources} - {SourceKind.OTHER_RESOURCE}
    if not found:
        if named := [source.root for source in sources if source.resource in _OF_REPOSITORIES]:
            objects = ", ".join(f"{root.at('kind').text()}/{root.at('metadata', 'name').text()}" for root in named)
            paths = [leaf for root in named for way in _OF_REPOSITORIES.values() for leaf in root.at(*way).leaves()]
            folders = f": {', '.join(str(leaf.value) for leaf in paths)}" if paths else ""
            verb = "names" if len(named) == 1 else "name"
            raise ConversionError(
                f"{objects} {verb} files of a repository, which are not in the input. Instead, convert the files there"
                f"{folders}."
            )
        kinds = ", ".join(sorted({source.resource or "an object without a kind" for source in sources}))
        raise ConversionError(
            f"No custom resource of soperator or Slinky is among these objects: {kinds}. Give the resources of a "
            "cluster, such as `kubectl get slurmclusters,nodesets -o yaml`."
        )
    return found


_ROUNDS = 20
"""Most rounds. A round reveals problems of values that do not fit together."""

_ITEMS = ("partitions", "jail.submounts")
"""Lists whose items are removed as a whole: without one field, an item means something else, or nothing."""

_NEEDED = re.compile(r"name|node_sets\[\d+\]\.(name|cpus|memory_gib)|jail\.submounts\[\d+\]\.node_sets\[\d+\]")
"""Values that a cluster cannot do without, and names of node sets that need another name."""


def settle(work: Conversion) -> None:
    """Remove what the spec refuses, until only placeholders and problems of the whole stack remain."""
    _prune(work.stack)
    give_every_node_set_a_partition(work)
    for _ in range(_ROUNDS):
        problems = [problem for problem in _problems(work) if not _is_expected(work, problem)]
        removed = [_remove(work, problem) for problem in problems]
        _prune(work.stack)
        give_every_node_set_a_partition(work)
        if not any(removed):
            break
    work.to_correct = [
        Addition(problem.path, problem.text) for problem in _problems(work) if not _is_expected(work, problem)
    ]


def _problems(work: Conversion) -> tuple[Problem, ...]:
    try:
        parse_cluster(work.plain(), where="")
    except SpecError as error:
        return error.problems
    return ()


def _is_expected(work: Conversion, problem: Problem) -> bool:
    """Return True if the problem is that of a placeholder."""
    found = _at(work.stack, problem.path)
    return isinstance(found, Placed) and found.value == TO_ADD


def _remove(work: Conversion, problem: Problem) -> bool:
    """Remove the value that a problem is about from the stack; return True if there was one."""
    place, key = _owner(work.stack, problem.path)
    if place is None or key is None:
        return False
    reason = f"the spec refuses it: {problem.text}"
    for _, placed in _walk(place[key]):
        work.refuse(placed, reason)
    if _NEEDED.fullmatch(problem.path):
        place[key] = Placed(TO_ADD, to_add=f"another value than the input's: {reason}")
    elif isinstance(place, list):
        place[key] = None
    else:
        del place[key]
    return True


def _owner(stack: dict[str, Any], path: str) -> tuple[Any, Any]:
    """Return the container and key of a problem's value, or of the list item to remove with it."""
    for items in _ITEMS:
        if (found := re.match(rf"{re.escape(items)}\[(\d+)\]", path)) and not re.search("options|node_sets", path):
            return _at(stack, items), int(found[1])
    *_, (place, key) = [(None, None), *_way(stack, path)]
    return (place, key) if place is not None and isinstance(place[key], Placed) else (None, None)


def _at(stack: Any, path: str) -> Any:  # noqa: ANN401 any tree of values
    """Return the deepest place of the stack on the way to a path."""
    *_, found = [stack, *(place[key] for place, key in _way(stack, path))]
    return found


def _way(stack: Any, path: str) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 any tree of values
    """Yield the containers and keys on the way to a path. Keys of labels and annotations may contain dots."""
    place, rest = stack, path
    while isinstance(place, (dict, list)):
        is_list = isinstance(place, list)
        steps = [f"[{index}]" for index in range(len(place))] if is_list else [*place]
        step = max((step for step in steps if re.match(rf"{re.escape(step)}([.\[]|$)", rest)), key=len, default="")
        if not step:
            return
        key: Any = int(step[1:-1]) if is_list else step
        yield place, key
        place, rest = place[key], rest.removeprefix(step).removeprefix(".")


def _walk(tree: Any) -> Iterator[tuple[str, Placed]]:  # noqa: ANN401 any tree of values
    if isinstance(tree, Placed):
        yield "", tree
    elif isinstance(tree, (list, dict)):
        for item in tree if isinstance(tree, list) else tree.values():
            yield from _walk(item)


def _prune(tree: Any) -> bool:  # noqa: ANN401 any tree of values
    """Remove empty containers and removed items; return True if nothing is left."""
    if isinstance(tree, dict):
        for key in [key for key, item in tree.items() if _prune(item)]:
            del tree[key]
        return not tree
    if isinstance(tree, list):
        tree[:] = [item for item in tree if not _prune(item)]
        return not tree
    return tree is None
