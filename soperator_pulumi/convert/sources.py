"""Kinds of files that can be converted, and detection of a file's kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from soperator_pulumi.convert.yaml_tree import Section, Tree, read, relabelled
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
    "prologSlurmctldScripts", "restapi", "slurmKey", "sssd", "vendor",
}  # fmt: skip
_COMMON = {
    "annotations", "asciiArt", "clusterName", "cudaVersion", "extraObjects", "fullnameOverride", "imagePullPolicy",
    "imagePullSecrets", "images", "nameOverride", "namespaceOverride", "nodeExporter", "nodesets", "priorityClasses",
    "secrets", "topology",
}  # fmt: skip
"""Keys that do not tell the charts apart."""


@dataclass(frozen=True)
class Source:
    """A document of the input."""

    kind: SourceKind
    tree: Mapping[str, Tree]
    path: str = ""
    """Prefix of the paths of its values."""

    @property
    def root(self) -> Section:
        """Root of the document."""
        return Section(self.tree, self.path)

    @property
    def resource(self) -> str:
        """Kind of a resource: `SlurmCluster`, `Secret`."""
        return self.root.at("kind").text()


def read_sources(files: list[Path]) -> list[Source]:
    """Return the documents of the files, with their kinds.

    Raises:
        ConversionError: A file cannot be read, is not YAML, or is of no known kind.
    """
    found: list[Source] = []
    for file in files:
        prefix = f"{file.name}: " if len(files) > 1 else ""
        documents = read(_text(file), file.name, prefix)
        if not documents:
            raise ConversionError(f"{file.name}: empty. {_allowed()}")
        for tree in documents:
            found += _sources(tree, prefix, file.name)
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConversionError(f"{file.name}: not UTF-8 text. {_allowed()}") from None
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Give a file that can be read.") from None


def _sources(tree: Tree, prefix: str, name: str, depth: int = 0) -> list[Source]:
    if not isinstance(tree, Mapping):
        raise ConversionError(f"{name}: is not a mapping of keys to values. {_allowed()}")
    root = Section(tree)
    if not (root.at("apiVersion") and root.at("kind")):
        return [Source(_values_kind(root, name), tree, prefix)]
    if root.at("kind").text().endswith("List") and root.at("items").items():
        items = [item.tree for item in root.at("items").items() if item.tree is not None]
        return [source for tree in items for source in _sources(tree, prefix, name, depth + 2)]
    path = f"{prefix}{root.at('kind').text()}/{root.at('metadata', 'name').text()}: "
    labelled = relabelled(tree, path, depth)
    assert isinstance(labelled, Mapping)  # noqa: S101 - as the tree is
    return [Source(_resource_kind(root, name), labelled, path)]


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


def _values_kind(root: Section, name: str) -> SourceKind:
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
    if keys & own and 2 * len(keys & (own | _COMMON)) >= len(keys):
        return kind
    shown = ", ".join(sorted(keys)[:8])
    raise ConversionError(f"{name}: unrecognized file; found keys: {shown}. {_allowed()}")


def _allowed() -> str:
    *kinds, last = [kind.value for kind in SourceKind if kind is not SourceKind.OTHER_RESOURCE]
    return f"Give {', '.join(kinds)} or {last}."
