"""Custom resources of Slinky: a Controller with its NodeSets and LoginSets."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert import rules, slinky_parts
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.gpu_parts import NETWORKS
from soperator_pulumi.convert.pod_parts import Submounts, pull_settings
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import OBJECT_RULES, Rule, account_for_others, cannot, needless, only_one
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
    FILE,
    KEYS,
    LOGIN_RULES,
    NODE_SET_RULES,
    SCRIPTS,
    TOKENS,
    pod_rules,
)
from soperator_pulumi.convert.sources import Source, SourceKind
from soperator_pulumi.convert.user_pod_parts import ServiceAccounts, put_user_pods, service_accounts
from soperator_pulumi.convert.yaml_tree import Leaf, Section, defaults, overlaid

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
