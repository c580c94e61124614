"""Values of Slinky's Helm chart slurm."""

from typing import Any

from soperator_pulumi.convert import rules, slinky_parts
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.pod_parts import Submounts, pull_settings
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import (
    ACCOUNTING,
    REST,
    put_no_accounting,
    put_slinky_accounting,
    put_slinky_rest,
)
from soperator_pulumi.convert.slinky_parts import SlinkyNodeSet
from soperator_pulumi.convert.slinky_rules import (
    CONTROLLER_RULES,
    DIRECTORIES,
    FILE,
    FILES,
    KEYS,
    LOGIN_RULES,
    NODE_SET_RULES,
    SCRIPTS,
    TOKENS,
    VENDORS,
    pod_rules,
)
from soperator_pulumi.convert.slurm_text import Partition
from soperator_pulumi.convert.sources import Source
from soperator_pulumi.convert.yaml_tree import Section, defaults, overlaid

_CHART_DEFAULTS = {
    "accounting": {
        "storageConfig": {"host": "mariadb", "passwordKeyRef": {"name": "mariadb-password", "key": "password"}}
    },
    "restapi": {"replicas": 1},
}
_PARTITIONS = {"all": {"nodesets": ["ALL"], "configMap": {"Default": "YES", "MaxTime": "UNLIMITED"}}}
"""Partitions that the chart has, without the switch."""
_CONTROLLER_DEFAULTS = {"persistence": {"resources": {"requests": {"storage": "4Gi"}}}}
_LOGIN_DEFAULTS = {"enabled": True, "replicas": 1, "service": {"spec": {"type": "LoadBalancer"}}}
_NODE_SET_DEFAULTS = {
    "enabled": True,
    "replicas": 1,
    "slurmd": {"image": {"repository": "ghcr.io/slinkyproject/slurmd", "tag": "26.05-ubuntu26.04"}},
    "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}},
}
"""Defaults of the chart slurm (1.3.0) that differ from those here."""

_POD_RULES = pod_rules("podSpec", "metadata")

_RULES: tuple[Rule, ...] = (
    *empty("clusterName", "imagePullPolicy", "imagePullSecrets", "loginsets", "nodesets", "partitions"),
    *needless("names of the release", "nameOverride", "fullnameOverride", "asciiArt"),
    *needless("a cluster here has its own namespace: `namespace`", "namespaceOverride"),
    *cannot("create the PriorityClass outside the cluster", "priorityClass.**", switch="priorityClass.enabled"),
    *cannot(KEYS, "slurmKey.**"),
    *needless(TOKENS, "jwtKey.**", "jwksKeys.**"),
    *cannot(FILE, "configFiles.**"),
    *cannot(SCRIPTS, "prolog*.**", "epilog*.**"),
    *cannot(ACCOUNTING, "accounting.**", switch="accounting.enabled"),
    *cannot(REST, "restapi.**"),
    *cannot(DIRECTORIES, "sssd.**"),
    *cannot(VENDORS, "vendor.**"),
    *cannot("create your own objects in your own program", "extraObjects.**"),
)


def convert_slinky_values(work: Conversion, source: Source) -> None:
    """Write the cluster that values describe."""
    root = Section(overlaid(defaults(_CHART_DEFAULTS), source.tree))
    submounts = Submounts(work)
    slinky_parts.put_name(work, root.at("clusterName"))
    work.require(work.stack, "name", "name of the cluster; the input leaves it to the Helm release")
    controller = _over(root.at("controller"), _CONTROLLER_DEFAULTS, "controller")
    slinky_parts.put_controller(work, controller, controller.at("podSpec"))
    _put_services(work, root)
    partitions = slinky_parts.put_extra_conf(work, controller)
    _put_login(work, root, submounts)
    items = _put_node_sets(work, root, submounts, partitions)
    for name, given in sorted(root.at("partitions").parts(), key=lambda part: part[0]):  # as Helm orders them
        chart = defaults(_PARTITIONS.get(name, {}), ("partitions", name), given.path)
        place = Section(overlaid(chart, given.tree), given.path)
        if place.at("enabled").is_on():
            partitions.append(slinky_parts.shared_partition(work, name, place))
        else:
            work.needless(place, "the partition is not enabled")
    slinky_parts.finish(work, partitions, items)
    _put_for_all(work, root)
    rules.apply(work, controller, root.at("controller").leaves(), 1, (*CONTROLLER_RULES, *_POD_RULES))
    for key, value in root.at("configFiles").entries():
        work.cannot(value, FILES.get(key, FILE))
    rules.apply(work, root, [*source.root.leaves(), *root.leaves()], 0, _RULES)


def _put_services(work: Conversion, root: Section) -> None:
    """Write accounting, which is off by default, and the REST API, which is always on in the chart."""
    accounting = root.at("accounting")
    if accounting.at("enabled").is_on():
        work.needless(accounting.at("enabled"), "accounting is on by default")
        put_slinky_accounting(work, accounting, accounting.at("podSpec"))
    else:
        put_no_accounting(work, accounting.at("enabled"))
    put_slinky_rest(work, root.at("restapi"), root.at("restapi", "podSpec"))


def _put_login(work: Conversion, root: Section, submounts: Submounts) -> None:
    """Write the first enabled set of login nodes: a cluster here has only one."""
    chart = _over(root.at("loginsetDefaults"), _LOGIN_DEFAULTS, "loginsetDefaults")
    own = (*LOGIN_RULES, *_POD_RULES)
    chosen = ""
    for _, place in root.at("loginsets").parts():
        spec = Section(overlaid(chart.tree, place.tree), place.path)
        if not spec.at("enabled").is_on():
            work.needless(place, "the login set is not enabled")
        elif chosen:
            work.cannot(place, f"a cluster here has one set of login nodes, that of {chosen}")
        else:
            chosen = place.path
            slinky_parts.put_login(work, spec, spec.at("podSpec"), submounts)
        rules.apply(work, spec, place.leaves(), 2, own)
    if chosen:
        rules.apply(work, chart, root.at("loginsetDefaults").leaves(), 1, own)
    else:
        slinky_parts.put_no_login(work)
        work.needless(root.at("loginsetDefaults"), "no login set is enabled")


def _put_node_sets(
    work: Conversion, root: Section, submounts: Submounts, partitions: list[Partition]
) -> dict[str, dict[str, Any]]:
    """Write the enabled node sets, and add the partitions that Slinky creates for them."""
    chart = _over(root.at("nodesetDefaults"), _NODE_SET_DEFAULTS, "nodesetDefaults")
    own = (*NODE_SET_RULES, *_POD_RULES)
    items: dict[str, dict[str, Any]] = {}
    for name, place in root.at("nodesets").parts():
        spec = Section(overlaid(chart.tree, place.tree), place.path)
        if not spec.at("enabled").is_on():
            work.needless(place, "the node set is not enabled")
            continue
        node_set = SlinkyNodeSet(name, (), spec, spec.at("podSpec"), spec.at("metadata"))
        items[name] = slinky_parts.put_node_set(work, node_set, submounts)
        partition = slinky_parts.own_partition(work, name, spec.at("partition"))
        partitions += [] if partition is None else [partition]
        rules.apply(work, spec, place.leaves(), 2, own)
    if items:
        rules.apply(work, chart, root.at("nodesetDefaults").leaves(), 1, own)
    else:
        work.needless(root.at("nodesetDefaults"), "no node set is enabled")
    return items


def _put_for_all(work: Conversion, root: Section) -> None:
    """Write settings of all pods: image pulls, and a priority."""
    pull_settings(work, [root.at("imagePullPolicy")], [root.at("imagePullSecrets")])
    priority, name = root.at("priorityClass"), root.at("priorityClass", "name")
    if priority.at("enabled").is_on() and name.text():
        for role in (work.mapping("controller"), work.mapping("login"), *work.listed("node_sets")):
            if "priority_class" not in role:
                work.put(role, "priority_class", name.text(), name)


def _over(place: Section, chart: object, key: str) -> Section:
    return Section(overlaid(defaults(chart, (key,), place.path), place.tree), place.path)
