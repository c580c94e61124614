"""Values of Slinky's Helm chart slurm."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert import rules, slinky_parts
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.gpu_parts import NETWORKS
from soperator_pulumi.convert.pod_parts import Submounts, pull_settings
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import (
    ACCOUNTING,
    REST,
    put_no_accounting,
    put_slinky_accounting,
    put_slinky_rest,
)
from soperator_pulumi.convert.slinky_parts import SlinkyNodeSet
from soperator_pulumi.convert.slinky_releases import SAMPLE, SlinkyRelease, release_of
from soperator_pulumi.convert.slinky_rules import (
    CONTROLLER_RULES,
    DIRECTORIES,
    FILE,
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
from soperator_pulumi.convert.user_pod_parts import ServiceAccounts, put_user_pods, service_accounts
from soperator_pulumi.convert.yaml_tree import Leaf, Section, defaults, overlaid

_CHART_DEFAULTS = {
    "accounting": {
        "storageConfig": {"host": "mariadb", "passwordKeyRef": {"name": "mariadb-password", "key": "password"}}
    },
    "restapi": {"replicas": 1},
}
_CONTROLLER_DEFAULTS = {"persistence": {"resources": {"requests": {"storage": "4Gi"}}}}
"""Defaults of all releases of the chart slurm that differ from those here."""

_UNKNOWN_RELEASE = (
    "Read as values of the chart slurm 1.2 or later, as no key tells the release. Until 1.1, the chart has a partition "
    "all and a node set slinky itself, and other sets exist only with `enabled: true`. --release names an earlier one."
)

_POD_RULES = pod_rules("podSpec", "metadata")

_RULES: tuple[Rule, ...] = (
    *empty(
        *("priorityClassName", "clusterName", "imagePullPolicy", "imagePullSecrets"),
        *("loginsets", "nodesets", "partitions", "partitions.*"),
    ),
    *needless("names of the release", "nameOverride", "fullnameOverride", "asciiArt"),
    *needless("a cluster here has its own namespace: `namespace`", "namespaceOverride"),
    *cannot("create the PriorityClass outside the cluster", "priorityClass.**", switch="priorityClass.enabled"),
    *cannot(KEYS, "slurmKey.**"),
    *needless(TOKENS, "jwtKey.**", "jwksKeys.**", "jwtHs256KeyRef.**"),
    *cannot(KEYS, "slurmKeyRef.**"),
    *needless("the exporter of Slinky 0.4, for which `metrics` stands here", "slurm-exporter.**"),
    *cannot(FILE, "configFiles.**"),
    *cannot(SCRIPTS, "prolog*.**", "epilog*.**"),
    *cannot(WHY, "accounting.slurmdbd.image", "accounting.slurmdbd.image.**"),
    *cannot(WHY, "restapi.slurmrestd.image", "restapi.slurmrestd.image.**"),
    *needless("the other keys describe the database", "accounting.storageConfig.enabled"),
    *cannot(ACCOUNTING, "accounting.**", switch="accounting.enabled"),
    *cannot(REST, "restapi.**"),
    *cannot(DIRECTORIES, "sssd.**"),
    *cannot(VENDORS, "vendor.**"),
    *cannot("create your own objects in your own program", "extraObjects.**"),
)


def convert_slinky_values(work: Conversion, source: Source, objects: Sequence[Section], release: str) -> None:
    """Convert the cluster that values of Slinky's chart describe.

    Args:
        work: The conversion.
        source: The values.
        objects: Objects of Kubernetes in the input.
        release: Release of the chart that the user names; empty for that of the input.

    Raises:
        ConversionError: The release is not known, or its values have another form.
    """
    read_as, why = release_of(source.root, source.chart_version, source.file, release)
    work.remarks.append(f"Read as values of the chart slurm {read_as.name}: {why}." if why else _UNKNOWN_RELEASE)
    chart = {**_CHART_DEFAULTS, "partitions": read_as.partitions}
    root = Section(overlaid(defaults(chart, (), source.path), source.tree), source.path)
    submounts = Submounts(work)
    accounts = ServiceAccounts(work, service_accounts([*objects, *root.at("extraObjects").items()]))
    slinky_parts.put_name(work, root.at("clusterName"))
    work.require(work.stack, "name", "name of the cluster; the input leaves it to the Helm release")
    controller = _over(root.at("controller"), _CONTROLLER_DEFAULTS, "controller")
    slinky_parts.put_controller(work, controller, controller.at("podSpec"))
    _put_services(work, root)
    partitions = slinky_parts.put_extra_conf(work, controller)
    _put_login(work, root, read_as, submounts, accounts)
    items = _put_node_sets(work, root, read_as, partitions, submounts=submounts, accounts=accounts)
    accounts.put()
    for name, place in sorted(root.at("partitions").parts(), key=lambda part: part[0]):  # as Helm orders them
        if place.at("enabled").is_on():
            partitions.append(slinky_parts.shared_partition(work, name, place))
        else:
            work.needless(place, "the partition is not enabled")
    slinky_parts.finish(work, partitions, items, submounts)
    _put_for_all(work, root)
    rules.apply(work, controller, root.at("controller").leaves(), 1, (*CONTROLLER_RULES, *_POD_RULES))
    slinky_parts.put_files(work, root.at("configFiles"))
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


def _put_login(
    work: Conversion, root: Section, release: SlinkyRelease, submounts: Submounts, accounts: ServiceAccounts
) -> None:
    """Write the enabled sets of login nodes: the first as `login`, the others as its pools."""
    own = (*LOGIN_RULES, *_POD_RULES)
    chart, role = Section(None), None
    for name, place in root.at("loginsets").parts():
        chart = _over(root.at("loginsetDefaults"), release.of_login_set(name), "loginsetDefaults")
        spec = _laid_over(chart, place)
        if not spec.at("enabled").is_on():
            work.needless(place, "the login set is not enabled")
        else:
            role = work.mapping("login") if role is None else slinky_parts.login_pool(work, name)
            work.needless(_own_leaf(place), "this set has only defaults")
            slinky_parts.put_login(work, role, spec, spec.at("podSpec"), submounts)
            put_user_pods(work, role, spec.at("podSpec"), spec.at("metadata"), accounts)
        rules.apply(work, spec, place.leaves(), 2, own)
    if role is not None:
        rules.apply(work, chart, root.at("loginsetDefaults").leaves(), 1, own)
    else:
        slinky_parts.put_no_login(work)
        work.needless(root.at("loginsetDefaults"), "no login set is enabled")


def _put_node_sets(
    work: Conversion,
    root: Section,
    release: SlinkyRelease,
    partitions: list[Partition],
    *,
    submounts: Submounts,
    accounts: ServiceAccounts,
) -> dict[str, dict[str, Any]]:
    """Write the enabled node sets, and add the partitions that Slinky creates for them."""
    own = (*NODE_SET_RULES, *_POD_RULES)
    items: dict[str, dict[str, Any]] = {}
    places = dict(root.at("nodesets").parts())
    if release.has_samples:
        places.setdefault(SAMPLE, root.at("nodesets", SAMPLE))
    chart = Section(None)
    for name, place in places.items():
        chart = _over(root.at("nodesetDefaults"), release.of_node_set(name), "nodesetDefaults")
        spec = _laid_over(chart, place)
        if not spec.at("enabled").is_on():
            work.needless(place, "the node set is not enabled")
            continue
        node_set = SlinkyNodeSet(name, _own_leaf(place), spec, spec.at("podSpec"), spec.at("metadata"))
        items[name] = slinky_parts.put_node_set(work, node_set, submounts)
        put_user_pods(work, items[name], node_set.pod, node_set.metadata, accounts, but=NETWORKS)
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
    named = root.at("priorityClassName")  # until 1.0
    on = root.at("priorityClass", "enabled").is_on()
    name = root.at("priorityClass", "name") if on else named
    if name.text():
        pools = work.stack.get("login", {}).get("pools", {}).values()
        for role in (work.mapping("controller"), work.mapping("login"), *pools, *work.listed("node_sets")):
            if "priority_class" not in role:
                work.put(role, "priority_class", name.text(), name)


def _own_leaf(place: Section) -> tuple[Leaf, ...]:
    """Return the value of a set that is empty or null, and so has only defaults; none for any other set."""
    return (place.tree,) if isinstance(place.tree, Leaf) else ()


def _laid_over(chart: Section, place: Section) -> Section:
    """Return a set laid over its defaults. A null set has only the defaults."""
    return Section(overlaid(chart.tree, place.tree) if place else chart.tree, place.path)


def _over(place: Section, chart: object, key: str) -> Section:
    return Section(overlaid(defaults(chart, (key,), place.path), place.tree), place.path)
