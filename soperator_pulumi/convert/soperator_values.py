"""Values of soperator's Helm charts: slurm-cluster, nodesets, and soperator-fluxcd, which holds both of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator_pulumi.convert import rules
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.monitoring_parts import ACTIVE_CHECK_RULES, MACHINES, put_active_checks
from soperator_pulumi.convert.pod_parts import pull_settings
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import ACCOUNTING
from soperator_pulumi.convert.soperator_cluster import convert_cluster
from soperator_pulumi.convert.soperator_node_sets import NODE_SET_RULES, SourceNodeSet
from soperator_pulumi.convert.soperator_releases import check_release, node_set_defaults
from soperator_pulumi.convert.soperator_rules import (
    CLUSTER_DEFAULTS,
    CLUSTER_RULES,
    CONTROLLERS,
    SCRIPTS,
)
from soperator_pulumi.convert.sources import Source, SourceKind
from soperator_pulumi.convert.yaml_tree import Section, Tree, defaults, overlaid

_CHART_DEFAULTS = {
    "clusterName": "slurm1",
    "slurmNodes": {
        "login": {"size": 2, "sshd": {"resources": {"cpu": "3000m", "memory": "9Gi"}}},
        "controller": {"slurmctld": {"resources": {"cpu": "1000m", "memory": "3Gi"}}},
    },
}
"""Defaults of the chart slurm-cluster (5.0.0) that differ from those here."""

_CHART_RULES = (
    *cannot("a tree here is filled from your own image: images.jail or jail.source", "cudaVersion"),
    *cannot(WHY, "images.**"),
    *cannot(SCRIPTS, "slurmScripts.**"),
    *cannot(MACHINES, "nodeExporter.**"),
    *CLUSTER_RULES,
)

_ITEM_RULES = (
    *cannot("resources here are CPU and memory", "slurmd.resources.ephemeralStorage"),
    *NODE_SET_RULES,
)

_NODE_SETS_RULES = (
    *empty("nodesets", "imagePullPolicy", "imagePullSecrets"),
    *cannot(WHY, "images.**"),
    *cannot("create the PriorityClasses outside the cluster, such as in your own program", "priorityClasses.**"),
    *cannot(MACHINES, "nodeExporter.**"),
    *needless("node sets are part of their cluster", "clusterName"),
    *needless("names of the release", "nameOverride", "fullnameOverride"),
)

_RELEASE_ITSELF = "settings of the Helm release that `up` does not need"

_FLUX_RULES: tuple[Rule, ...] = (
    *cannot(
        "the chart slurm-cluster-storage makes volumes of machines: create PersistentVolumes, and name them in "
        "jail.storage.static_volume or in jail.submounts",
        "slurmCluster.slurmClusterStorage.overrideValues.**",
        "slurmCluster.slurmClusterStorage.values.**",
    ),
    *needless(_RELEASE_ITSELF, "slurmCluster.**", "nodesets.**", "soperatorActiveChecks.**"),
    *cannot(ACCOUNTING, "mariadbOperator.**", switch="mariadbOperator.enabled"),
    *cannot(
        "the Security Profiles Operator is not used",
        "securityProfilesOperator.**",
        switch="securityProfilesOperator.enabled",
    ),
    *cannot(
        "a store of metrics is not part of a cluster here: platform.kube_prometheus_stack, with metrics.alerts and "
        "metrics.dashboards of the cluster",
        "observability.**",
        switch="observability.enabled",
    ),
    *cannot("backups are not part of a cluster here", "backup.**", switch="backup.enabled"),
    *cannot("notifications are not part of a cluster here", "notifier.**", switch="notifier.enabled"),
    *cannot("a file server is not part of a cluster here", "nfsServer.**", switch="nfsServer.enabled"),
    *cannot("storage drivers are not part of a cluster here", "csiDriverNfs.**", switch="csiDriverNfs.enabled"),
    *cannot("create StorageClasses outside the cluster", "storageClasses.**", switch="storageClasses.enabled"),
    *cannot("files of the jail come with its image", "customConfigmaps.**", switch="customConfigmaps.enabled"),
    *cannot("access by Tailscale is not part of a cluster here", "tailscale.**", switch="tailscale.enabled"),
    *needless(CONTROLLERS, "soperator.**", "certManager.**"),
    *needless(_RELEASE_ITSELF, "helmRepository.**", "ns.**"),
)


_CLUSTER_RELEASE = ("slurmCluster", "overrideValues")
_ACTIVE_CHECKS = "soperatorActiveChecks"
_WITH_A_CLUSTER = {SourceKind.SOPERATOR_CLUSTER_VALUES, SourceKind.SOPERATOR_FLUX_VALUES}
_RELEASED_NAME = "soperator"
"""Name of a cluster to which the values of soperator-fluxcd give none."""


def convert_soperator_values(work: Conversion, sources: Sequence[Source]) -> None:
    """Convert the cluster that values of soperator's charts describe.

    Args:
        work: The conversion.
        sources: Values of the three charts, at most one file per chart.
    """
    cluster, node_sets = _Part(), _Part()
    for source in sources:
        match source.kind:
            case SourceKind.SOPERATOR_CLUSTER_VALUES:
                cluster = _Part(source.root)
            case SourceKind.SOPERATOR_NODE_SETS_VALUES:
                node_sets = _Part(source.root)
            case _:
                cluster = _Part(source.root.at(*_CLUSTER_RELEASE), _CLUSTER_RELEASE)
                node_sets = _released_node_sets(work, source.root)
    named = {"clusterName": _RELEASED_NAME} if cluster.keys and not cluster.given else {}
    chart = defaults({**_CHART_DEFAULTS, **named}, cluster.keys, cluster.given.path)
    values = cluster.over(overlaid(defaults({**CLUSTER_DEFAULTS}, cluster.keys, cluster.given.path), chart))
    places = node_sets.given.at("nodesets").items()
    described = next((source for source in sources if source.kind in _WITH_A_CLUSTER), sources[0])
    version = described.chart_version or next(
        (text for release in ("slurmCluster", "nodesets") if (text := described.root.at(release, "version").text())), ""
    )
    check_release(work, cluster.given, version, described.file)
    keys = (*node_sets.keys, "nodesets")
    items = [_node_set(place, (*keys, index), version) for index, place in enumerate(places)]
    convert_cluster(work, values, values.at("clusterName"), items)
    _put_rest(work, values, node_sets.given)
    rules.apply(work, values, [*cluster.given.leaves(), *values.leaves()], len(cluster.keys), _CHART_RULES)
    for item, place in zip(items, places, strict=True):
        rules.apply(work, item.spec, [*place.leaves(), *item.spec.leaves()], len(node_sets.keys) + 2, _ITEM_RULES)
    rules.apply(work, node_sets.given, node_sets.given.leaves(), len(node_sets.keys), _NODE_SETS_RULES)
    for source in sources:
        if source.kind is SourceKind.SOPERATOR_FLUX_VALUES:
            checks = put_active_checks(work, source.root.at(_ACTIVE_CHECKS), (_ACTIVE_CHECKS,))
            given = source.root.at(_ACTIVE_CHECKS).leaves()
            rules.apply(work, checks, given, 1, ACTIVE_CHECK_RULES)
            charts = [part.keys for part in (cluster, node_sets) if part.keys and part.given]
            rules.apply(work, source.root, source.root.leaves(), 0, _FLUX_RULES, elsewhere=charts)


@dataclass(frozen=True)
class _Part:
    """Values of one chart."""

    given: Section = field(default_factory=lambda: Section(None))
    keys: tuple[str, ...] = ()
    """Keys from the file's document down to the values."""

    def over(self, chart: Tree | None) -> Section:
        """Return the values laid over defaults of the chart."""
        return Section(overlaid(chart, self.given.tree) if self.given else chart, self.given.path)


def _released_node_sets(work: Conversion, root: Section) -> _Part:
    """Return the values of the node sets' release; empty if it is off."""
    release = root.at("nodesets")
    if release.at("enabled").plain() is False:
        work.needless(release, "nodesets.enabled is off")
        return _Part()
    keys = ("nodesets", "overrideValues" if release.at("overrideValues") else "values")
    return _Part(root.at(*keys), keys)


def _node_set(place: Section, keys: tuple[str | int, ...], version: str) -> SourceNodeSet:
    spec = overlaid(defaults(node_set_defaults(version), keys, place.path), place.tree)
    return SourceNodeSet(place.at("name"), Section(spec, place.path))


def _put_rest(work: Conversion, values: Section, node_sets: Section) -> None:
    """Write the parts of the cluster that only values have, not custom resources."""
    for key, value in values.at("annotations").entries():
        work.put(work.mapping("annotations"), key, value.text(), value, "annotation of all objects")
    containers = [
        values.at("slurmNodes", "controller", "slurmctld"),
        values.at("slurmNodes", "login", "sshd"),
        values.at("slurmNodes", "controller", "munge"),
        values.at("slurmNodes", "login", "munge"),
        values.at("populateJail"),
        *(node_set.at(name, "image") for node_set in node_sets.at("nodesets").items() for name in ("slurmd", "munge")),
    ]
    pull_settings(
        work,
        [
            values.at("imagePullPolicy"),
            node_sets.at("imagePullPolicy"),
            *_each(containers, "imagePullPolicy", "pullPolicy"),
        ],
        [values.at("imagePullSecrets"), node_sets.at("imagePullSecrets"), *_each(containers, "imagePullSecrets")],
    )


def _each(places: Sequence[Section], *keys: str) -> list[Section]:
    return [place.at(key) for place in places for key in keys if place.at(key)]
