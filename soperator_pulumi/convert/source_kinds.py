"""Kinds of documents in an input, and the keys and charts that tell them."""

from collections.abc import Mapping
from enum import StrEnum

from soperator_pulumi.convert.yaml_tree import Section, is_list


class SourceKind(StrEnum):
    """Kind of a document in the input."""

    SOPERATOR_CLUSTER_VALUES = "values of soperator's Helm chart slurm-cluster"
    SOPERATOR_NODE_SETS_VALUES = "values of soperator's Helm chart nodesets"
    SOPERATOR_FLUX_VALUES = "values of soperator's Helm chart soperator-fluxcd"
    SOPERATOR_RESOURCE = "custom resources of soperator"
    SLINKY_VALUES = "values of Slinky's Helm chart slurm"
    SLINKY_RESOURCE = "custom resources of Slinky"
    OTHER_RESOURCE = "another object of Kubernetes"


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


CHARTS = {kind.value.rpartition(" ")[2]: kind for kind in SourceKind if "chart" in kind.value}
"""Kinds of values by the names of their charts."""


def kind_by_keys(root: Section, of_others: SourceKind | None = None) -> SourceKind | None:
    """Return the kind of values, by the keys that most of them have; None for those of another chart.

    Args:
        root: The values.
        of_others: Kind of the input's other values, which is that of values with keys alone that several charts have.
    """
    keys = {key for key, _ in root.entries()}
    for release in ("slurmCluster", "nodesets"):
        if root.at(release, "overrideValues").entries() or root.at(release, "releaseName"):
            return SourceKind.SOPERATOR_FLUX_VALUES
    node_sets = root.at("nodesets").tree
    kinds = {
        SourceKind.SOPERATOR_CLUSTER_VALUES: _SOPERATOR_CLUSTER,
        SourceKind.SOPERATOR_NODE_SETS_VALUES: {"nodesets"} if is_list(node_sets) else set(),
        SourceKind.SLINKY_VALUES: {*_SLINKY, "nodesets"} if isinstance(node_sets, Mapping) else _SLINKY,
    }
    kind, own = max(kinds.items(), key=lambda candidate: len(keys & candidate[1]))
    if keys and keys <= _COMMON - {"nodesets"}:
        return of_others
    return kind if keys & own and 2 * len(keys & (own | _COMMON)) >= len(keys) else None


def allowed_kinds() -> str:
    """Return a sentence that names what can be converted."""
    *kinds, last = [kind.value for kind in SourceKind if kind is not SourceKind.OTHER_RESOURCE]
    return f"Give {', '.join(kinds)} or {last}."
