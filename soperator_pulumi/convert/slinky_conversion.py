"""Conversion of Slinky: values of its Helm chart slurm, and its custom resources, a Controller with its sets."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert import rules, slinky_parts
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.gpu_parts import NETWORKS
from soperator_pulumi.convert.pod_parts import Submounts, pull_settings
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import OBJECT_RULES, Rule, account_for_others, cannot, empty, needless, only_one
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
from soperator_pulumi.convert.source_kinds import SourceKind
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

_CHART_RULES: tuple[Rule, ...] = (
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
    if SAMPLE in items and root.at("nodesets", SAMPLE).tree is None:
        work.remarks.append(
            f"The chart itself has the node set {SAMPLE}, which the input does not turn off: "
            f"nodesets.{SAMPLE}.enabled is true."
        )
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
    rules.apply(work, root, [*source.root.leaves(), *root.leaves()], 0, _CHART_RULES)


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
    own_set = root.at("nodesets", SAMPLE)
    removed = [place for place in (root.at("nodesets"), own_set) if place.tree is not None and not place]
    if release.has_samples and removed:
        places.pop(SAMPLE, None)
        work.needless(removed[0], "null")
        work.remarks.append(
            f"{removed[0].path} is null: with it, Helm removes the node set {SAMPLE} that the chart has itself."
        )
    elif release.has_samples:
        places.setdefault(SAMPLE, own_set)
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


_CONTROLLER, _LOGIN_SET, _NODE_SET = "Controller", "LoginSet", "NodeSet"
_ACCOUNTING, _REST_API = "Accounting", "RestApi"

_NODE_SET_DEFAULTS = {"replicas": 1, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}}}
"""Defaults of the custom resource (1.3.0) that differ from those here."""

_OTHER_KINDS = {_ACCOUNTING: ACCOUNTING, _REST_API: REST, "Token": TOKENS}

_RESOURCE_POD_RULES = pod_rules("template.spec", "template.metadata")

_CONTROLLER_RULES: tuple[Rule, ...] = (
    *needless("accounting belongs to its cluster here", "accountingRef.**"),
    *cannot(KEYS, "slurmKeyRef.**"),
    *cannot(TOKENS, "jwtKeyRef.**", "jwtHs256KeyRef.**", "jwksKeyRef.**"),
    *cannot(FILE, "configFileRefs.**"),
    *cannot(SCRIPTS, "prolog*.**", "epilog*.**"),
    *CONTROLLER_RULES,
    *_RESOURCE_POD_RULES,
)


_SERVICE_RULES = (
    *needless("a service is part of its cluster", "spec.controllerRef.**"),
    *cannot(KEYS, "spec.slurmKeyRef.**"),
    *cannot(TOKENS, "spec.jwtKeyRef.**", "spec.jwtHs256KeyRef.**", "spec.jwksKeyRef.**"),
    *cannot(WHY, "spec.*.image"),
)


def convert_slinky_resources(work: Conversion, sources: Sequence[Source]) -> None:
    """Convert the cluster that Slinky's custom resources describe.

    Args:
        work: The conversion.
        sources: The resources, which may include other Kubernetes objects.

    Raises:
        ConversionError: There are two clusters.
    """
    own = [source for source in sources if source.kind is SourceKind.SLINKY_RESOURCE]
    controller = only_one(own, _CONTROLLER)
    root = controller.root if controller is not None else Section(None)
    spec = root.at("spec")
    submounts = Submounts(work)
    slinky_parts.put_name(work, spec.at("clusterName"))
    if controller is not None and "name" not in work.stack:
        slinky_parts.put_name(work, root.at("metadata", "name"))
    work.require(work.stack, "name", "the input has no Controller to take it from")
    slinky_parts.put_controller(work, spec, spec.at("template", "spec"))
    _put_service_resources(work, own, controller)
    partitions = slinky_parts.put_extra_conf(work, spec)
    _put_files(work, spec.at("configFileRefs"), sources)
    logins = [source.root for source in own if source.resource == _LOGIN_SET]
    accounts = ServiceAccounts(work, service_accounts(source.root for source in sources))
    _put_login_resources(work, logins, submounts, accounts)
    node_sets = [source.root for source in own if source.resource == _NODE_SET]
    items: dict[str, dict[str, Any]] = {}
    specs = [_over_defaults(node_set) for node_set in node_sets]
    for node_tree, node_spec in zip(node_sets, specs, strict=True):
        name, origin = _slurm_name(node_tree)
        node_set = SlinkyNodeSet(
            name, origin, node_spec, node_spec.at("template", "spec"), node_spec.at("template", "metadata")
        )
        items[name] = slinky_parts.put_node_set(work, node_set, submounts)
        put_user_pods(work, items[name], node_set.pod, node_set.metadata, accounts, but=NETWORKS)
        partition = slinky_parts.own_partition(work, name, node_spec.at("partition"))
        partitions += [] if partition is None else [partition]
    accounts.put()
    slinky_parts.finish(work, partitions, items, submounts)
    _put_pulls(work, [spec, *(login.at("spec") for login in (*logins, *node_sets))])
    rules.apply(work, spec, spec.leaves(), 1, _CONTROLLER_RULES)
    for login in logins:
        rules.apply(work, login.at("spec"), login.at("spec").leaves(), 1, (*LOGIN_RULES, *_RESOURCE_POD_RULES))
    for tree, node_spec in zip(node_sets, specs, strict=True):
        rules.apply(
            work,
            node_spec,
            [*tree.at("spec").leaves(), *node_spec.leaves()],
            1,
            (*NODE_SET_RULES, *_RESOURCE_POD_RULES),
        )
    services = [source.root for source in own if source.resource in {_ACCOUNTING, _REST_API}]
    for tree in (root, *logins, *node_sets, *services):
        rules.apply(work, tree, tree.leaves(), 0, OBJECT_RULES)
    for tree in services:
        rules.apply(work, tree, tree.leaves(), 0, _SERVICE_RULES)
    account_for_others(work, sources, _OTHER_KINDS)


def _put_service_resources(work: Conversion, own: Sequence[Source], controller: Source | None) -> None:
    """Write accounting and the REST API. Without a Controller, neither is known."""
    accounting, rest = only_one(own, _ACCOUNTING), only_one(own, _REST_API)
    if accounting is not None:
        spec = accounting.root.at("spec")
        put_slinky_accounting(work, spec, spec.at("template", "spec"))
    elif controller is not None:
        put_no_accounting(work, Section(None))
    if rest is not None:
        put_slinky_rest(work, rest.root.at("spec"), rest.root.at("spec", "template", "spec"))


def _put_login_resources(
    work: Conversion, logins: Sequence[Section], submounts: Submounts, accounts: ServiceAccounts
) -> None:
    if not logins:
        slinky_parts.put_no_login(work)
        return
    for index, login in enumerate(logins):
        template, name = login.at("spec", "template"), login.at("metadata", "name").text()
        role = slinky_parts.login_pool(work, name) if index else work.mapping("login")
        slinky_parts.put_login(work, role, login.at("spec"), template.at("spec"), submounts)
        put_user_pods(work, role, template.at("spec"), template.at("metadata"), accounts)


def _put_files(work: Conversion, references: Section, sources: Sequence[Source]) -> None:
    """Write the files of the ConfigMaps in the input that the Controller names."""
    names = {reference.at("name").text(): reference for reference in references.items()}
    for source in sources:
        reference = names.get(source.root.at("metadata", "name").text())
        if source.resource == "ConfigMap" and reference is not None:
            slinky_parts.put_files(work, source.root.at("data"))
            work.needless(reference, "its files are in the input")


def _slurm_name(node_set: Section) -> tuple[str, tuple[Leaf, ...]]:
    """Return the name of a node set in Slurm: the start of its pods' host names, or else the resource's name."""
    hostname = node_set.at("spec", "template", "spec", "hostname")
    if hostname.text().strip("-"):
        return hostname.text().strip("-"), tuple(hostname.leaves())
    name = node_set.at("metadata", "name")
    return name.text(), tuple(name.leaves())


def _put_pulls(work: Conversion, specs: Sequence[Section]) -> None:
    containers = [spec.at(name) for spec in specs for name in ("slurmctld", "slurmd", "login")]
    pull_settings(
        work,
        [container.at("imagePullPolicy") for container in containers],
        [spec.at("template", "spec", "imagePullSecrets") for spec in specs],
    )


def _over_defaults(resource: Section) -> Section:
    spec = resource.at("spec")
    return Section(overlaid(defaults(_NODE_SET_DEFAULTS, ("spec",), spec.path), spec.tree), spec.path)
