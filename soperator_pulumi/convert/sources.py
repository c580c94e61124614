"""Kinds of files that can be converted, and detection of a file's kind."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from soperator_pulumi.convert.wrappers import (
    Objects,
    WrappedValues,
    config_map_values,
    is_wrapper,
    listed_releases,
    unwrapped,
    values_of_targets,
)
from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, leaves_of, read, relabelled
from soperator_pulumi.errors import ConversionError


class SourceKind(StrEnum):
    """Kind of a document in the input."""

    SOPERATOR_CLUSTER_VALUES = "values of soperator's Helm chart slurm-cluster"
    SOPERATOR_NODE_SETS_VALUES = "values of soperator's Helm chart nodesets"
    SOPERATOR_FLUX_VALUES = "values of soperator's Helm chart soperator-fluxcd"
    SOPERATOR_RESOURCE = "custom resources of soperator"
    SLINKY_VALUES = "values of Slinky's Helm chart slurm"
    SLINKY_RESOURCE = "custom resources of Slinky"
    OTHER_RESOURCE = "another object of Kubernetes"


SOPERATOR_GROUP = "slurm.nebius.ai"
SLINKY_GROUP = "slinky.slurm.net"
SLINKY_VERSION = "v1beta1"

_OLD_SLINKY = ("v1alpha1",)

_SOPERATOR_CLUSTER = {
    "customCgroupConfig", "customSlurmConfig", "healthCheckConfig", "k8sNodeFilters", "maintenance",
    "mpiConfig", "partitionConfiguration", "plugStackConfig", "populateJail", "sConfigController", "slurmConfig",
    "slurmNodes", "slurmScripts", "useDefaultAppArmorProfile", "volumeSources",
}  # fmt: skip
_SLINKY = {
    "accounting", "configFiles", "controller", "epilogScripts", "epilogSlurmctldScripts", "jwksKeys", "jwtKey",
    "loginsetDefaults", "loginsets", "nodesetDefaults", "partitions", "priorityClass", "prologScripts",
    "prologSlurmctldScripts", "restapi", "slurmKey", "slurmKeyRef", "sssd", "jwtHs256KeyRef", "slurm-exporter",
    "vendor",
    *("authcred", "compute", "debug", "jwt"),  # until 0.3
}  # fmt: skip
_COMMON = {
    "annotations", "asciiArt", "clusterName", "cudaVersion", "extraObjects", "fullnameOverride", "imagePullPolicy",
    "imagePullSecrets", "images", "nameOverride", "namespaceOverride", "nodeExporter", "nodesets", "priorityClasses",
    "priorityClassName", "secrets", "topology",
}  # fmt: skip
"""Keys that do not tell the charts apart."""


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

    @property
    def root(self) -> Section:
        """Root of the document."""
        return Section(self.tree, self.path)

    @property
    def resource(self) -> str:
        """Kind of a resource: `SlurmCluster`, `Secret`."""
        return self.root.at("kind").text()


_CHARTS = {kind.value.rpartition(" ")[2]: kind for kind in SourceKind if "chart" in kind.value}
"""Kinds of values by the names of their charts."""

_OF_HELMFILE = {
    *("bases", "commonLabels", "environments", "helmBinary", "helmDefaults", "helmfiles", "hooks", "kubeVersion"),
    *("missingFileHandler", "repositories", "templates"),
}
"""Keys of a helmfile, which often has them in other documents than its releases."""

_HELM_HEADERS = ("USER-SUPPLIED VALUES", "COMPUTED VALUES")
"""Headers of `helm get values`."""

_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\$\{[^}]*\}|__\w+__")
"""Values that another tool replaces: templates of Go, and variables of Terraform, Flux and the shell."""

_TEMPLATE = re.compile(r"\{\{|%\{")
_HCL = re.compile(
    r'^\s*(resource|module|data|variable|output|provider)\s+"[^"]*".*\{|^\s*(locals|terraform)\s*\{', re.MULTILINE
)

_HELM_GET = "`helm get values RELEASE --namespace NAMESPACE --output yaml` prints those of a running release"


@dataclass(frozen=True)
class _Document:
    tree: Mapping[str, Tree]
    prefix: str
    name: str
    """Name of the file."""

    @property
    def root(self) -> Section:
        return Section(self.tree, self.prefix)

    @property
    def is_object(self) -> bool:
        return bool(self.root.at("apiVersion") and self.root.at("kind"))


def read_sources(files: list[Path]) -> list[Source]:
    """Return the documents of the files, with their kinds.

    Raises:
        ConversionError: A file cannot be read, is not YAML, or is of no known kind.
    """
    documents: list[_Document] = []
    for file in files:
        prefix = f"{file.name}: " if len(files) > 1 else ""
        trees = _trees(_text(file), file.name, prefix)
        if not trees:
            raise ConversionError(f"{file.name}: empty. {_allowed()}")
        for tree in trees:
            documents += _documents(tree, prefix, file.name)
    listing = any(document.root.at("releases") for document in documents)
    settings = [document for document in documents if listing and {*document.tree} <= _OF_HELMFILE]
    documents = [document for document in documents if document not in settings]
    objects: dict[tuple[str, str], list[Section]] = {}
    for root in (document.root for document in documents if document.is_object):
        objects.setdefault((root.at("kind").text(), root.at("metadata", "name").text()), []).append(root)
    found = [source for document in documents for source in _sources(document, objects)]
    if all(source.kind is SourceKind.OTHER_RESOURCE for source in found):
        found = [source for document in documents for source in _sources(document, objects, with_maps=True)]
    return [*found, *_rest([leaf for document in settings for leaf in document.root.leaves()], "a setting of helmfile")]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConversionError(f"{file.name}: not UTF-8 text. {_allowed()}") from None
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Give a file that can be read.") from None


def _trees(text: str, name: str, prefix: str) -> list[Tree]:
    if _HCL.search(text):
        raise ConversionError(
            f"{name}: Terraform's HCL. Give the values that it gives to the chart, in YAML: {_HELM_GET}."
        )
    try:
        return read(text, name, prefix)
    except ConversionError as error:
        template = next((index for index, line in enumerate(text.splitlines(), 1) if _TEMPLATE.search(line)), None)
        if template is None:
            raise
        raise ConversionError(
            f"{name}, line {template}: a template that is not rendered ({error}). Give its result: {_HELM_GET}."
        ) from None


def _documents(tree: Tree, prefix: str, name: str, depth: int = 0) -> list[_Document]:
    """Return the documents in a tree: the items of a list, or the tree itself."""
    if not isinstance(tree, Mapping):
        raise ConversionError(f"{name}: is not a mapping of keys to values. {_allowed()}")
    document = _Document(tree, prefix, name)
    if not document.is_object:
        return [document]
    root = document.root
    if root.at("kind").text().endswith("List") and root.at("items").items():
        items = [item.tree for item in root.at("items").items() if item.tree is not None]
        return [document for tree in items for document in _documents(tree, prefix, name, depth + 2)]
    path = f"{prefix}{root.at('kind').text()}/{root.at('metadata', 'name').text()}: "
    labelled = relabelled(tree, path, depth)
    assert isinstance(labelled, Mapping)  # noqa: S101 - as the tree is
    return [_Document(labelled, path, name)]


def _sources(document: _Document, objects: Objects, *, with_maps: bool = False) -> list[Source]:
    root = document.root
    if listed := _listed_sources(root, document.name):
        return listed
    if not document.is_object:
        return _values_sources(document)
    path = document.prefix.removesuffix(": ")
    wrapped: list[WrappedValues] = []
    if is_wrapper(root):
        wrapped = unwrapped(root, path, document.name, objects)
    elif with_maps and root.at("kind").text() == "ConfigMap":
        values = config_map_values(root, path, document.name)
        wrapped = [] if values is None else [values]
    found = [source for values in wrapped for source in _wrapped_sources(values, document.name)]
    if found:
        return found
    return [Source(_resource_kind(root, document.name), document.tree, document.prefix)]


def _listed_sources(root: Section, name: str) -> list[Source]:
    """Return the values of clusters in a list of releases, and the rest of it; empty if there are none."""
    releases = listed_releases(root, name)
    off = [(entry, values) for entry, values in releases if not _is_installed(entry)]
    read = [(entry, _wrapped_sources(values, name)) for entry, values in releases if _is_installed(entry)]
    found = [(entry, sources) for entry, sources in read if sources]
    if not found:
        if paths := [f"{entry.path}.installed" for entry, values in off if _wrapped_kind(values)]:
            raise ConversionError(
                f"{name}: {', '.join(paths)} is false, so no cluster is installed. Give the file of one that is."
            )
        return []
    apart = [leaf for entry, _ in off for leaf in entry.leaves()]
    of_targets = values_of_targets(root)
    own = {*apart, *of_targets, *(leaf for entry, _ in found for leaf in entry.leaves())}
    return [
        *(source for _, sources in found for source in sources),
        *_rest(apart, "belongs to a release that is not installed"),
        *_rest(of_targets, f"Fleet lays it over the values for one target: give that target's. {_HELM_GET}", lost=True),
        *_rest([leaf for leaf in root.leaves() if leaf not in own], "installs something else, not the cluster"),
    ]


def _is_installed(entry: Section) -> bool:
    return entry.at("installed").plain() is not False


def _wrapped_sources(values: WrappedValues, name: str) -> list[Source]:
    """Return the values in an object, and the rest of it; empty if they are not a cluster's."""
    kind = _wrapped_kind(values)
    if kind is None:
        return []
    if not isinstance(values.tree, Mapping):
        where = values.path.partition(",")[0].removesuffix(": ")
        raise ConversionError(
            f"{name}: {where} has no values of the chart {values.chart}. Give the values: {_HELM_GET}."
        )
    _refuse_placeholders(values.tree, name)
    return [
        *_by_chart(Source(kind, values.tree, values.path, values.version, name)),
        *_rest(values.others, "describes the release of the chart, not the cluster"),
        *_rest(values.overruled, "other values of the same release overrule it"),
        *_rest(values.texts, "its values are converted one by one"),
        *_rest(values.elsewhere, f"names values that are not read: write them into the values. {_HELM_GET}", lost=True),
    ]


def _wrapped_kind(values: WrappedValues) -> SourceKind | None:
    """Return the kind of the values in an object, by their keys or their chart; None for another chart."""
    return _kind_by_keys(Section(values.tree)) or _CHARTS.get(values.chart.removeprefix("helm-"))


def _values_sources(document: _Document) -> list[Source]:
    """Return a document of values. They may be nested below a key, as a subchart's values are."""
    root, name = document.root, document.name
    headers = [leaf for key in _HELM_HEADERS for leaf in root.at(key).leaves() if leaf.value is None]
    tree = {key: item for key, item in document.tree.items() if key not in _HELM_HEADERS or item not in headers}
    kind = _kind_by_keys(Section(tree))
    below = [key for key, item in tree.items() if isinstance(item, Mapping) and _kind_by_keys(Section(item))]
    if kind is None and len(below) == 1:
        inner = relabelled(tree[below[0]], f"{document.prefix}{below[0]}: ", 1)
        assert isinstance(inner, Mapping)  # noqa: S101 - as the tree is
        others = [leaf for key, item in tree.items() if key != below[0] for leaf in leaves_of(item)]
        rest = _rest([*headers, *others], f"values of another chart than that below {below[0]}")
        return [*_values_sources(_Document(inner, f"{document.prefix}{below[0]}: ", name)), *rest]
    if kind is None:
        shown = ", ".join(sorted(tree)[:8])
        raise ConversionError(f"{name}: unrecognized file; found keys: {shown}. {_allowed()}")
    _refuse_placeholders(tree, name)
    return [*_by_chart(Source(kind, tree, document.prefix, "", name)), *_rest(headers, "a header of helm")]


def _by_chart(source: Source) -> list[Source]:
    """Return the values of soperator's two charts in one file, or in a chart with both, as two sources."""
    node_sets = source.tree.get("nodesets")
    if source.kind is not SourceKind.SOPERATOR_CLUSTER_VALUES or not isinstance(node_sets, list):
        return [source]
    cluster = {key: item for key, item in source.tree.items() if key != "nodesets"}
    of_node_sets = replace(source, kind=SourceKind.SOPERATOR_NODE_SETS_VALUES, tree={"nodesets": node_sets})
    return [replace(source, tree=cluster), of_node_sets]


def _rest(leaves: Sequence[Leaf], reason: str, *, lost: bool = False) -> list[Source]:
    if not leaves:
        return []
    tree = {str(index): leaf for index, leaf in enumerate(leaves)}
    return [Source(SourceKind.OTHER_RESOURCE, tree, reason=reason, is_lost=lost)]


def _refuse_placeholders(tree: Tree, name: str) -> None:
    found = [leaf for leaf in leaves_of(tree) if isinstance(leaf.value, str) and _PLACEHOLDER.fullmatch(leaf.value)]
    if found:
        raise ConversionError(
            f"{name}, line {found[0].line}: {found[0].path} is a placeholder, {found[0].value} ({len(found)} in all). "
            f"Give the values that replace them: {_HELM_GET}."
        )


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


def _kind_by_keys(root: Section) -> SourceKind | None:
    keys = {key for key, _ in root.entries()}
    for release in ("slurmCluster", "nodesets"):
        if root.at(release, "overrideValues").entries() or root.at(release, "releaseName"):
            return SourceKind.SOPERATOR_FLUX_VALUES
    node_sets = root.at("nodesets").tree
    kinds = {
        SourceKind.SOPERATOR_CLUSTER_VALUES: _SOPERATOR_CLUSTER,
        SourceKind.SOPERATOR_NODE_SETS_VALUES: {"nodesets"} if isinstance(node_sets, list) else set(),
        SourceKind.SLINKY_VALUES: {*_SLINKY, "nodesets"} if isinstance(node_sets, Mapping) else _SLINKY,
    }
    kind, own = max(kinds.items(), key=lambda candidate: len(keys & candidate[1]))
    return kind if keys & own and 2 * len(keys & (own | _COMMON)) >= len(keys) else None


def _allowed() -> str:
    *kinds, last = [kind.value for kind in SourceKind if kind is not SourceKind.OTHER_RESOURCE]
    return f"Give {', '.join(kinds)} or {last}."
