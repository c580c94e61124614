"""Kinds of files that can be converted, and detection of a file's kind."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from soperator_pulumi.convert.documents import Document, documents_in
from soperator_pulumi.convert.inputs import Inputs, file_labels
from soperator_pulumi.convert.placeholders import HELM_GET, refuse_placeholders
from soperator_pulumi.convert.source_kinds import CHARTS, SourceKind, allowed_kinds, kind_by_keys
from soperator_pulumi.convert.wrappers import (
    PATCHES,
    WrappedValues,
    config_map_values,
    is_wrapper,
    listed_releases,
    unwrapped,
    values_of_targets,
)
from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, is_list, leaves_of, relabelled, without_first_key
from soperator_pulumi.errors import ConversionError

SOPERATOR_GROUP = "slurm.nebius.ai"
SLINKY_GROUP = "slinky.slurm.net"
SLINKY_VERSION = "v1beta1"

_OLD_SLINKY = ("v1alpha1",)


@dataclass(frozen=True)
class Source:
    """A document of the input."""

    kind: SourceKind
    tree: Mapping[str, Tree]
    path: str = ""
    """Prefix of the paths of its values."""
    chart_version: str = ""
    """Version of the chart, if the input names it."""
    file: str = ""
    """Name of its file."""
    reason: str = ""
    """Reason why an object, or the rest of one, is not converted; empty for the usual one."""
    is_lost: bool = False
    """The cluster lacks what is not converted."""
    is_file: bool = False
    """The values are a file of the input, which helm lays over the files before it."""
    is_release: bool = False
    """The values are those of an object that installs the chart, with all that it names."""

    @property
    def root(self) -> Section:
        """Root of the document."""
        return Section(self.tree, self.path)

    @property
    def resource(self) -> str:
        """Kind of a resource: `SlurmCluster`, `Secret`."""
        return self.root.at("kind").text()


_OF_HELMFILE = {
    *("bases", "commonLabels", "environments", "helmBinary", "helmDefaults", "helmfiles", "hooks", "kubeVersion"),
    *("missingFileHandler", "repositories", "templates"),
}
"""Keys of a helmfile, which often has them in other documents than its releases."""

_HELM_HEADERS = ("USER-SUPPLIED VALUES", "COMPUTED VALUES")
"""Headers of `helm get values`."""

_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902", "replacements")
"""Keys of kustomize that change what a chart renders."""
_ONE_BY_ONE = "its values are converted one by one"


def read_sources(files: list[Path]) -> list[Source]:
    """Return the documents of the files, with their kinds.

    Raises:
        ConversionError: A file cannot be read, is not YAML, or is of no known kind.
    """
    documents: list[Document] = []
    files = [*dict.fromkeys(files)]
    for file, label in zip(files, file_labels(files), strict=True):
        documents += documents_in(file, label, f"{label}: " if len(files) > 1 else "")
    listing = any(document.root.at("releases") for document in documents)
    settings = [document for document in documents if listing and {*document.tree} <= _OF_HELMFILE]
    documents = [document for document in documents if document not in settings]
    inputs = _inputs(documents)
    found = _all_sources(documents, inputs)
    if {source.kind for source in found} <= {SourceKind.OTHER_RESOURCE, SourceKind.SOPERATOR_FLUX_VALUES}:
        found = _all_sources(documents, inputs, with_maps=True)
    return [*found, *_rest([leaf for document in settings for leaf in document.root.leaves()], "a setting of helmfile")]


def _inputs(documents: Sequence[Document]) -> Inputs:
    """Return what objects can name: the other objects, and the first documents of files with values."""
    objects: dict[tuple[str, str], list[Section]] = {}
    for root in (document.root for document in documents if document.is_object):
        objects.setdefault((root.at("kind").text(), root.at("metadata", "name").text()), []).append(root)
    values: dict[str, Section] = {}
    for document in documents:
        if not document.is_object:
            values.setdefault(document.file, document.root)
    return Inputs(objects, values)


_Releases = Sequence[tuple[Section, WrappedValues]]
"""Values in a document, with the places that hold them."""


def _all_sources(documents: Sequence[Document], inputs: Inputs, *, with_maps: bool = False) -> list[Source]:
    releases = [_releases(document, inputs) for document in documents]
    if with_maps:
        named = {leaf for found in releases for _, values in found for leaf in values.texts}
        releases = [
            found or _in_config_map(document, named) for document, found in zip(documents, releases, strict=True)
        ]
    whole = [(_wrapped_kind(values), values) for found in releases for entry, values in found if _is_installed(entry)]
    of_clusters = {file for kind, values in whole if kind for file in values.files}
    of_others = {file for found in releases for _, values in found for file in values.files} - of_clusters
    with_files = {kind for kind, values in whole if kind and values.files}
    for file in [file for file in inputs.files if file in of_clusters]:
        refuse_placeholders(inputs.files[file].tree, inputs.files[file].path.removesuffix(": "))

    def unread(document: Document) -> str:
        """Return why values are not read; an empty text if they are."""
        if document.file in of_others:
            return "values of a release of something else, not the cluster"
        if document.file in of_clusters:
            return "helm reads the first document of a file of values alone"
        return "no release in the input reads this file" if kind_by_keys(document.root) in with_files else ""

    kinds = {kind_by_keys(document.root) for document in documents if not document.is_object} | {
        kind for kind, _ in whole
    }
    kind = next(iter(kinds - {None}), None) if len(kinds - {None}) == 1 else None
    found: list[Source] = []
    for document, own in zip(documents, releases, strict=True):
        reason = "" if document.is_object or own else unread(document)
        if reason:
            taken = {*inputs.files[document.file].leaves()} if document.file in of_clusters else set()
            found += _rest([leaf for leaf in document.root.leaves() if leaf not in taken], reason)
        else:
            found += _sources(document, own, kind)
    return found


def _releases(document: Document, inputs: Inputs) -> _Releases:
    root = document.root
    listed = listed_releases(root, document.name, inputs)
    if any(_wrapped_kind(values) for _, values in listed):
        return listed
    path = document.prefix.removesuffix(": ")
    if document.is_object and is_wrapper(root):
        return [(root, values) for values in unwrapped(root, path, document.name, inputs)]
    return []


def _in_config_map(document: Document, named: Collection[Leaf]) -> _Releases:
    """Return the values in a ConfigMap whose text no release names."""
    root = document.root
    if not document.is_object or root.at("kind").text() != "ConfigMap":
        return []
    values = config_map_values(root, document.prefix.removesuffix(": "), document.name)
    return [] if values is None or {*values.texts} & {*named} else [(root, values)]


def _sources(document: Document, releases: _Releases, of_others: SourceKind | None) -> list[Source]:
    root = document.root
    texts = _rest(document.texts, _ONE_BY_ONE)
    if any(entry.tree is not root.tree for entry, _ in releases):
        return [*texts, *_listed_sources(document, releases)]
    if not document.is_object:
        return _values_sources(document, of_others)
    found = [source for _, values in releases for source in _wrapped_sources(values, document.name)]
    if found:
        return [*texts, *_rest_of_targets(root), *found]
    return [*texts, Source(_resource_kind(root, document.name), document.tree, document.prefix)]


def _listed_sources(document: Document, releases: _Releases) -> list[Source]:
    """Return the values of clusters in a list of releases, and the rest of it."""
    root, name = document.root, document.name
    off = [(entry, values) for entry, values in releases if not _is_installed(entry)]
    read = [(entry, _wrapped_sources(values, name)) for entry, values in releases if _is_installed(entry)]
    found = [(entry, sources) for entry, sources in read if sources]
    if not found:
        paths = [f"{entry.path}.installed" for entry, values in off if _wrapped_kind(values)]
        raise ConversionError(
            f"{name}: {', '.join(paths)} is false, so no cluster is installed. Give the file of one that is."
        )
    apart = [leaf for entry, _ in off for leaf in entry.leaves()]
    own = {*apart, *values_of_targets(root), *(leaf for entry, _ in found for leaf in entry.leaves())}
    return [
        *(source for _, sources in found for source in sources),
        *_rest(apart, "belongs to a release that is not installed"),
        *_rest_of_targets(root),
        *_rest([leaf for key in _PATCHES for leaf in root.at(key).leaves()], PATCHES, lost=True),
        *_rest([leaf for leaf in root.leaves() if leaf not in own], "installs something else, not the cluster"),
    ]


def _rest_of_targets(root: Section) -> list[Source]:
    reason = f"Fleet lays it over the values for one target: give that target's. {HELM_GET}"
    return _rest(values_of_targets(root), reason, lost=True)


def _is_installed(entry: Section) -> bool:
    return entry.at("installed").plain() is not False


def _wrapped_sources(values: WrappedValues, name: str) -> list[Source]:
    """Return the values in an object, and the rest of it; empty if they are not a cluster's."""
    kind = _wrapped_kind(values)
    if kind is None:
        return []
    tree, others = values.tree, list(values.others)
    if not isinstance(tree, Mapping):
        where = values.path.partition(",")[0].removesuffix(": ")
        needed = "".join(f" {why}." for why in dict.fromkeys(values.elsewhere.values()))
        raise ConversionError(
            f"{name}: {where} has no values of the chart {values.chart}.{needed} Give the values: {HELM_GET}."
        )
    below = _key_below(tree)
    more: list[Leaf] = []
    if below:
        more = [leaf for key, item in tree.items() if key != below for leaf in leaves_of(item)]
        tree = without_first_key(tree[below], below)
        assert isinstance(tree, Mapping)  # noqa: S101 - as what is below the key is
    refuse_placeholders(tree, name)
    version = "" if below else values.version
    return [
        *_by_chart(Source(kind, tree, values.path, version, name, is_release=bool(values.chart))),
        *_rest(more, f"values of another chart than that below {below}"),
        *_rest(others, "describes the release of the chart, not the cluster"),
        *_rest(values.overruled, "other values of the same release overrule it"),
        *_rest(values.texts, _ONE_BY_ONE),
        *(
            source
            for reason in dict.fromkeys(values.elsewhere.values())
            for source in _rest([leaf for leaf, why in values.elsewhere.items() if why == reason], reason, lost=True)
        ),
    ]


def _wrapped_kind(values: WrappedValues) -> SourceKind | None:
    """Return the kind of the values in an object, by their keys or their chart; None for another chart."""
    root = Section(values.tree)
    below = _key_below(values.tree)
    return kind_by_keys(root.at(below) if below else root) or CHARTS.get(values.chart.removeprefix("helm-"))


def _key_below(tree: Tree | None) -> str:
    """Return the only key below which values of a cluster are, as a subchart's values are; empty if there is none."""
    entries = Section(tree).entries()
    if kind_by_keys(Section(tree)):
        return ""
    below = [key for key, place in entries if kind_by_keys(place)]
    return below[0] if len(below) == 1 else ""


def _values_sources(document: Document, of_others: SourceKind | None = None) -> list[Source]:
    """Return a document of values. They may be nested below a key, as a subchart's values are.

    Args:
        document: The document.
        of_others: Kind of the input's other values.
    """
    root, name = document.root, document.name
    headers = [leaf for key in _HELM_HEADERS for leaf in root.at(key).leaves() if leaf.value is None]
    tree = {key: item for key, item in document.tree.items() if key not in _HELM_HEADERS or item not in headers}
    kind = kind_by_keys(Section(tree), of_others)
    if below := _key_below(tree):
        inner = relabelled(tree[below], f"{document.prefix}{below}: ", 1)
        assert isinstance(inner, Mapping)  # noqa: S101 - as the tree is
        others = [leaf for key, item in tree.items() if key != below for leaf in leaves_of(item)]
        rest = _rest([*headers, *others], f"values of another chart than that below {below}")
        return [*_values_sources(Document(inner, f"{document.prefix}{below}: ", name, document.file)), *rest]
    if kind is None:
        shown = ", ".join(sorted(tree)[:8])
        raise ConversionError(f"{name}: unrecognized file; found keys: {shown}. {allowed_kinds()}")
    refuse_placeholders(tree, name)
    source = Source(kind, tree, document.prefix, "", name, is_file=bool(document.file))
    return [*_by_chart(source), *_rest(headers, "a header of helm")]


def _by_chart(source: Source) -> list[Source]:
    """Return the values of soperator's two charts in one file, or in a chart with both, as two sources."""
    node_sets = source.tree.get("nodesets")
    if source.kind is not SourceKind.SOPERATOR_CLUSTER_VALUES or node_sets is None or not is_list(node_sets):
        return [source]
    cluster = {key: item for key, item in source.tree.items() if key != "nodesets"}
    of_node_sets = replace(source, kind=SourceKind.SOPERATOR_NODE_SETS_VALUES, tree={"nodesets": node_sets})
    return [replace(source, tree=cluster), of_node_sets]


def _rest(leaves: Sequence[Leaf], reason: str, *, lost: bool = False) -> list[Source]:
    if not leaves:
        return []
    tree = {str(index): leaf for index, leaf in enumerate(leaves)}
    return [Source(SourceKind.OTHER_RESOURCE, tree, reason=reason, is_lost=lost)]


def _resource_kind(root: Section, name: str) -> SourceKind:
    group, _, version = root.at("apiVersion").text().partition("/")
    if group == SOPERATOR_GROUP:
        return SourceKind.SOPERATOR_RESOURCE
    if group == SLINKY_GROUP:
        if version in _OLD_SLINKY:
            raise ConversionError(
                f"{name}: {root.at('kind').text()} of {group}/{version} belongs to Slinky 0.x. Slinky 1.x with "
                f"{group}/{SLINKY_VERSION} is converted: upgrade first, or give the Helm values."
            )
        return SourceKind.SLINKY_RESOURCE
    return SourceKind.OTHER_RESOURCE
