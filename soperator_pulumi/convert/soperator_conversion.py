"""Conversion of soperator: values of its Helm charts, and its custom resources, of the releases with node sets."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.convert import rules
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.pod_parts import pull_settings
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import OBJECT_RULES, Rule, account_for_others, cannot, empty, needless, only_one
from soperator_pulumi.convert.service_parts import ACCOUNTING, ACTIVE_CHECK_RULES, MACHINES, put_active_checks
from soperator_pulumi.convert.soperator_cluster import convert_cluster
from soperator_pulumi.convert.soperator_node_sets import NODE_SET_RULES, SourceNodeSet
from soperator_pulumi.convert.soperator_rules import (
    CLUSTER_DEFAULTS,
    CLUSTER_RULES,
    CONTROLLERS,
    SCRIPTS,
)
from soperator_pulumi.convert.source_kinds import SourceKind
from soperator_pulumi.convert.sources import Source
from soperator_pulumi.convert.yaml_tree import Section, Tree, defaults, overlaid
from soperator_pulumi.errors import ConversionError

_KNOWN = "5.0.0"
"""Release whose keys and defaults are known."""

_NODE_SET_DEFAULTS = {"replicas": 1, "maxUnavailable": 500, "docker": {"enabled": True}}
_NODE_SET_DEFAULTS_BEFORE = {"replicas": 1, "maxUnavailable": "20%"}
"""Defaults of a NodeSet until 4.1."""

_FORMER_KEYS = ("ncclSettings", "telemetry")
"""Keys that only the chart of 1.x has."""


def node_set_defaults(version: str) -> Mapping[str, Any]:
    """Return the defaults of a NodeSet that differ from those here. Without a version, they are those of 5.0.0."""
    major = _major(version)
    return _NODE_SET_DEFAULTS_BEFORE if major is not None and major < int(_KNOWN[0]) else _NODE_SET_DEFAULTS


def check_release(work: Conversion, cluster: Section, version: str, name: str) -> None:
    """Add a remark about an earlier release with the same form.

    Args:
        work: The conversion.
        cluster: Place with `slurmNodes`.
        version: Release that wrote the input, or an empty text.
        name: Name of the file in errors.

    Raises:
        ConversionError: The workers are described in the cluster, as in 1.x, and not in node sets.
    """
    size = cluster.at("slurmNodes", "worker", "size").plain()
    former = [key for key in _FORMER_KEYS if cluster.at(key)]
    major = _major(version)
    if major == 1 or former or (isinstance(size, int) and size > 0):
        release = "1.x or 2.x (slurmNodes.worker)" if size else f"1.x ({', '.join(former)})"
        raise ConversionError(
            f"{name}: soperator {f'1.x ({version})' if major == 1 else release} has its workers in slurmNodes.worker. "
            "Since 3.0 they are node sets: upgrade soperator first, or write them as `nodesets` of the chart nodesets, "
            "set slurmNodes.worker.size to 0, and remove crVersion and other keys of 1.x."
        )
    if major is not None and major < int(_KNOWN[0]):
        work.remarks.append(f"Written by soperator {version}, and read with the keys of {_KNOWN}.")


def _major(version: str) -> int | None:
    found = re.match(r"v?(\d+)\.", version)
    return int(found[1]) if found else None


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


_CLUSTER = "SlurmCluster"
_NODE_SET = "NodeSet"

_RESOURCE_RULES: tuple[Rule, ...] = (
    *needless("release of soperator that wrote the resource", "crVersion"),
    *CLUSTER_RULES,
)

_NODE_SET_RESOURCE_RULES: tuple[Rule, ...] = (
    *cannot("resources here are CPU and memory", "slurmd.resources.ephemeral-storage"),
    *NODE_SET_RULES,
)

_OTHER_KINDS = {
    "ActiveCheck": "active health checks are not supported yet",
    "JailedConfig": "files of the jail come with its image; slurm.conf is rendered",
    "NodeConfigurator": "configuration of machines is not part of a cluster here",
    "NodeSetPowerState": "nodes that Slurm starts and stops are not supported yet",
}


def convert_soperator_resources(work: Conversion, sources: Sequence[Source]) -> None:
    """Convert the cluster that soperator's custom resources describe.

    Args:
        work: The conversion.
        sources: The resources, which may include other Kubernetes objects.

    Raises:
        ConversionError: There are two clusters.
    """
    own = [source for source in sources if source.kind is SourceKind.SOPERATOR_RESOURCE]
    cluster = only_one(own, _CLUSTER)
    node_sets = [source.root for source in own if source.resource == _NODE_SET]
    given = cluster.root if cluster is not None else Section(None)
    version = given.at("spec", "crVersion").text()
    if cluster is not None:
        check_release(work, given.at("spec"), version, cluster.path.rstrip(": "))
    spec = _over(given, CLUSTER_DEFAULTS)
    items = [
        SourceNodeSet(node_set.at("metadata", "name"), _over(node_set, node_set_defaults(version)))
        for node_set in node_sets
    ]
    convert_cluster(work, spec, given.at("metadata", "name"), items)
    _put_pull_settings(work, spec, [item.spec for item in items])
    if cluster is None:
        work.require(work.stack, "name", "the input has no SlurmCluster to take it from")
    rules.apply(work, spec, [*given.at("spec").leaves(), *spec.leaves()], 1, _RESOURCE_RULES)
    for item, node_set in zip(items, node_sets, strict=True):
        rules.apply(work, item.spec, [*node_set.at("spec").leaves(), *item.spec.leaves()], 1, _NODE_SET_RESOURCE_RULES)
    for tree in (given, *node_sets):
        rules.apply(work, tree, tree.leaves(), 0, OBJECT_RULES)
    account_for_others(work, sources, _OTHER_KINDS)


def _over(resource: Section, custom_resource: object) -> Section:
    spec = resource.at("spec")
    return Section(overlaid(defaults(custom_resource, ("spec",), spec.path), spec.tree), spec.path)


def _put_pull_settings(work: Conversion, cluster: Section, node_sets: Sequence[Section]) -> None:
    nodes = cluster.at("slurmNodes")
    containers = [nodes.at(*keys) for keys in (("controller", "slurmctld"), ("login", "sshd"), ("controller", "munge"))]
    containers += [nodes.at("login", "munge"), cluster.at("populateJail")]
    images = [node_set.at(name, "image") for node_set in node_sets for name in ("slurmd", "munge")]
    pull_settings(
        work,
        [*(container.at("imagePullPolicy") for container in containers), *(image.at("pullPolicy") for image in images)],
        [container.at("imagePullSecrets") for container in [*containers, *node_sets]],
    )
