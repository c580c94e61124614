"""Policies on exposure: logins, egress, user namespaces."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from soperator_pulumi.policy.address_space import (
    Network,
    is_everything,
    is_public,
    lies_in,
    network,
    reaches,
    without,
)
from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.internal_balancers import INTERNAL_CLASSES, is_internal
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import examples, is_unknown, patched, selects
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look, mapped
from soperator_pulumi.policy.view import CLUSTER_PART, COMPONENT_LABEL, ResourceView
from soperator_pulumi.render.egress import DNS_PORTS, LINK_LOCAL, METADATA

_PODS, _EGRESS, _INGRESS = ("spec", "podSelector"), ("spec", "egress"), ("spec", "ingress")

_EVERYTHING = "opens at least half of the internet together with at least half of a private range"
_TOGETHER = "together with the other NetworkPolicies of these pods"

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
"""Annotation that holds the ranges: https://kubernetes.io/docs/reference/labels-annotations-taints/."""

_ANY_NAMESPACE = {"kubernetes.io/metadata.name": "a namespace that only an empty selector covers"}
"""Labels of a namespace that only a selector of all namespaces selects."""

_COPYING = ("jail-populate", "container-images")
"""Components of the Jobs that copy a tarball or container images from any address. They run nothing from them."""

_ACCOUNTING = "accounting"
"""Component of slurmdbd. The addresses of an external database follow from a name, which no NetworkPolicy knows."""


def _public(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not resource.is_kubernetes:
        return
    if resource.kind == "Service":
        yield from _open_service(resource)
    elif resource.kind == "NetworkPolicy":
        yield from _open_ingress(resource)


def _open_service(resource: ResourceView) -> Iterator[Finding]:
    kind = look(resource.props, "spec", "type")
    if kind is UNKNOWN:
        yield not_known(resource, ("spec", "type"))
    elif kind == "LoadBalancer" or resource.is_patch:  # a patch leaves the type as it is
        yield from _open_balancer(resource)
    if listed(look(resource.props, "spec", "externalIPs")):
        yield Finding(resource, ("spec", "externalIPs"), "admits every address: ranges do not limit external addresses")


def _open_balancer(resource: ResourceView) -> Iterator[Finding]:
    is_private = str(look(resource.props, "spec", "loadBalancerClass")) in INTERNAL_CLASSES
    if is_private or is_internal(mapped(look(resource.props, "metadata", "annotations"))):
        return
    path = ("spec", "loadBalancerSourceRanges")
    ranges = look(resource.props, *path)
    cidrs: list[tuple[Path, object]] = [((*path, index), cidr) for index, cidr in enumerate(listed(ranges))]
    for key, text in mapped(look(resource.props, "metadata", "annotations")).items():
        if key == SOURCE_RANGES and not cidrs:  # the specification has priority
            where = ("metadata", "annotations", key)
            cidrs += [(where, cidr.strip()) for cidr in text.split(",")] if isinstance(text, str) else [(where, text)]
    # A patch without a type and without ranges changes neither.
    is_wanted = ranges is not None or look(resource.props, "spec", "type") == "LoadBalancer"
    if ranges is UNKNOWN:
        yield not_known(resource, path)
    elif is_wanted and not any(cidr is UNKNOWN or network(cidr) for _, cidr in cidrs):
        yield Finding(resource, path, "missing: the load balancer admits every address")
    yield from admitted(resource, path, cidrs)


def _open_ingress(resource: ResourceView) -> Iterator[Finding]:
    rules = look(resource.props, *_INGRESS)
    if rules is UNKNOWN:
        yield not_known(resource, _INGRESS)
    cidrs: list[tuple[Path, object]] = []
    for index, rule in enumerate(listed(rules)):
        peers, where = look(rule, "from"), (*_INGRESS, index, "from")
        if peers is UNKNOWN:
            yield not_known(resource, (*_INGRESS, index))
        elif not peers:
            yield Finding(resource, where, "missing: the rule admits every address")
        for number, peer in enumerate(listed(peers)):
            cidrs.append(((*where, number, "ipBlock", "cidr"), look(peer, "ipBlock", "cidr")))
            if _is_every_pod(peer):
                yield Finding(resource, (*where, number, "namespaceSelector"), "admits the pods of all namespaces")
    yield from admitted(resource, _INGRESS, cidrs)


def _is_every_pod(peer: object) -> bool:
    """Return True for a peer that is any pod of any namespace, however its selectors are written."""
    pods = look(peer, "podSelector")
    return _is_any(look(peer, "namespaceSelector"), _ANY_NAMESPACE) and (pods is None or _is_any(pods, {}))


def _is_any(selector: object, labels: Mapping[str, str]) -> bool:
    known = isinstance(selector, Mapping) and UNKNOWN not in listed(selector.get("matchExpressions"))
    return known and not look(selector, "matchLabels") and selects(selector, labels)


def admitted(resource: ResourceView, path: Path, cidrs: Sequence[tuple[Path, object]]) -> Iterator[Finding]:
    """Yield findings about single ranges, then about all of them together: two halves may add up to everything."""
    yield from (not_known(resource, where) for where, cidr in cidrs if cidr is UNKNOWN)
    networks = [(where, found) for where, cidr in cidrs if (found := network(cidr))]
    wide = [where for where, found in networks if is_public([found])]
    for where in dict.fromkeys(wide):
        yield Finding(resource, where, "admits at least half of the internet")
    if not wide and is_public([found for _, found in networks]):
        yield Finding(resource, path, "all ranges together admit at least half of the internet")


PUBLIC_LOGINS = ResourcePolicy(
    name="public-logins",
    description="Nothing admits the whole internet, or all pods of Kubernetes, without a reason.",
    violated_by="`login.allowed_sources` or `rest.allowed_sources` with `0.0.0.0/0`; a load balancer without "
    "`loadBalancerSourceRanges` that no annotation makes internal; a Service with `externalIPs`; a NetworkPolicy that "
    "admits every address, including by several ranges together, or the pods of all namespaces",
    cure="List the addresses of your users: login.allowed_sources, rest.allowed_sources; in your own objects, "
    "loadBalancerSourceRanges or a NetworkPolicy's ranges and namespaces.",
    levels=levels("advisory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_public,
)


def _open_jointly(
    resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings
) -> Iterator[Finding]:
    wanted = _Opened(_INGRESS, _sources_of, is_public, f"admits at least half of the internet, {_TOGETHER}")
    applied = patched(resources)
    policies = [item for item in applied if item.is_kubernetes and item.kind == "NetworkPolicy"]
    yield from _open_together(policies, applied, wanted)


def _sources_of(resource: ResourceView) -> list[Network]:
    """Return the ranges that all rules of a NetworkPolicy admit together."""
    peers = (peer for rule in listed(look(resource.props, *_INGRESS)) for peer in listed(look(rule, "from")))
    return [found for peer in peers if (found := network(look(peer, "ipBlock", "cidr")))]


JOINT_INGRESS = StackPolicy(
    name="joint-ingress",
    description="The NetworkPolicies of the same pods together do not admit the whole internet.",
    violated_by="a NetworkPolicy that admits `0.0.0.0/2` and another one of the same pods that admits `64.0.0.0/2`",
    cure="List the addresses of your users in the ranges of these NetworkPolicies.",
    levels=levels("advisory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_open_jointly,
)


def _open_egress(
    resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings
) -> Iterator[Finding]:
    for resource in _network_policies(resources):
        yield from _open_alone(resource)
    applied = patched(resources)
    wanted = _Opened(_EGRESS, _networks_of, is_everything, f"{_EVERYTHING}, {_TOGETHER}")
    yield from _open_together(_network_policies(applied), applied, wanted)


@dataclass(frozen=True)
class _Opened:
    """Networks that NetworkPolicies may open one by one, but not together."""

    path: Path
    networks: Callable[[ResourceView], Sequence[Network]]
    is_too_much: Callable[[Sequence[Network]], bool]
    text: str


def _open_together(
    policies: Sequence[ResourceView], resources: Sequence[ResourceView], opened: _Opened
) -> Iterator[Finding]:
    """Judge the NetworkPolicies that open too much only together with the others that select the same pods.

    Pods are those of the stack, and one with no other labels than those that a NetworkPolicy requires.
    """
    found = [(policy, opened.networks(policy)) for policy in policies]
    closed = [(policy, networks) for policy, networks in found if networks and not opened.is_too_much(networks)]
    selectors = [look(policy.props, *_PODS) for policy, _ in closed]
    known = [index for index, selector in enumerate(selectors) if not is_unknown(selector)]

    def of_pod(labels: object, namespace: object, candidates: Iterable[int]) -> frozenset[int]:
        there = (index for index in candidates if closed[index][0].namespace == namespace)
        return frozenset(index for index in there if selects(selectors[index], labels))

    @cache
    def is_open(together: frozenset[int]) -> bool:
        return opened.is_too_much([part for index in sorted(together) for part in closed[index][1]])

    pods = [pod for resource in resources for pod in pods_of(resource) if pod.labels is not UNKNOWN] if closed else []
    groups = {of_pod(pod.labels, pod.resource.namespace, known) for pod in pods}
    wide = frozenset(index for group in groups if is_open(group) for index in group)
    for index, (policy, _) in enumerate(closed):
        alone = (of_pod(labels, policy.namespace, known) for labels in examples(selectors[index]))
        if index in wide or any(is_open(group) for group in alone):
            yield Finding(policy, opened.path, opened.text)
        elif index not in known and is_open(of_pod(UNKNOWN, policy.namespace, range(len(closed)))):
            yield not_known(policy, _PODS)


def _network_policies(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the NetworkPolicies, without those of the Jobs that may copy from any address."""
    return [
        resource
        for resource in resources
        if resource.is_kubernetes
        and resource.kind == "NetworkPolicy"
        and not any(_is_of_part(resource, component) for component in _COPYING)
    ]


def _is_of_part(resource: ResourceView, component: str) -> bool:
    """Return True for a cluster's own NetworkPolicy of a component's pods."""
    selected = look(resource.props, *_PODS, "matchLabels", COMPONENT_LABEL)
    return bool(selected == component) and resource.is_made_by(CLUSTER_PART, suffix=f"-network-{component}")


def _open_alone(resource: ResourceView) -> Iterator[Finding]:
    rules = look(resource.props, *_EGRESS)
    if rules is UNKNOWN:
        yield not_known(resource, _EGRESS)
    found: dict[str, Finding] = {}
    for index, rule in enumerate(listed(rules)):
        for finding in _open_rule(resource, (*_EGRESS, index), rule):
            found.setdefault(finding.text, finding)  # one word gives ranges of both IPv4 and IPv6
    if is_everything(_networks_of(resource)):
        found.setdefault(_EVERYTHING, Finding(resource, _EGRESS, _EVERYTHING))
    yield from found.values()


def _networks_of(resource: ResourceView) -> list[Network]:
    """Return the networks that all rules of a NetworkPolicy open together."""
    rules = (rule for rule in listed(look(resource.props, *_EGRESS)) if not _asks_names(listed(look(rule, "ports"))))
    peers = (peer for rule in rules for peer in listed(look(rule, "to")))
    return [part for peer in peers for part in _opened(look(peer, "ipBlock"))]


def _opened(block: object) -> list[Network]:
    """Return the networks that a block opens: its range without its exceptions; none for a peer given by labels."""
    whole = network(look(block, "cidr"))
    return [] if whole is None else without(whole, filter(None, map(network, listed(look(block, "except")))))


def _open_rule(resource: ResourceView, path: Path, rule: object) -> Iterator[Finding]:
    peers = look(rule, "to")
    if _asks_names(listed(look(rule, "ports"))):
        return
    if UNKNOWN in (rule, peers):
        yield not_known(resource, path)
    elif not peers and not _asks_database(resource, rule):
        yield Finding(resource, (*path, "to"), "missing: the rule opens all addresses")
    for number, peer in enumerate(listed(peers)):
        yield from _open_block(resource, (*path, "to", number, "ipBlock"), look(peer, "ipBlock"))


def _asks_names(ports: Sequence[object]) -> bool:
    """Return True if all ports belong to name servers, whose address may be any, such as a node's own cache."""
    return bool(ports) and all(
        look(port, "port") in DNS_PORTS and look(port, "endPort") in (None, look(port, "port")) for port in ports
    )


def _asks_database(resource: ResourceView, rule: object) -> bool:
    """Return True for slurmdbd's rule for a single port, as no user's program runs in its pod."""
    ports = listed(look(rule, "ports"))
    is_one = len(ports) == 1 and look(ports[0], "port") == (look(ports[0], "endPort") or look(ports[0], "port"))
    return is_one and look(ports[0], "port") is not None and _is_of_part(resource, _ACCOUNTING)


def _open_block(resource: ResourceView, path: Path, block: object) -> Iterator[Finding]:
    cidr, holes = look(block, "cidr"), listed(look(block, "except"))
    if UNKNOWN in (block, cidr, look(block, "except")) or UNKNOWN in holes:
        yield not_known(resource, path)
        return
    opened = _opened(block)
    if is_everything(opened):
        yield Finding(resource, path, _EVERYTHING)
    elif reaches(opened, LINK_LOCAL):
        yield Finding(resource, path, "opens link-local addresses, where clouds have their metadata services")
    elif lies_in(opened, METADATA):
        yield Finding(resource, path, "opens the address of a cloud's metadata service")


OPEN_EGRESS = StackPolicy(
    name="open-egress",
    description="Pods do not reach every address without a reason.",
    violated_by="`network.egress` with `internet` and `private` together (the default), `0.0.0.0/0` or parts of it, or "
    "link-local addresses, or a metadata service alone; half of the internet with half of a private range, in any "
    "CIDRs and NetworkPolicies; a NetworkPolicy whose egress names no destinations",
    cure="Name the destinations: in a cluster network.egress: [internet, cluster, 10.20.0.0/16], in another "
    "NetworkPolicy ranges or selectors under egress[].to.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("network", "security"),
    check=_open_egress,
)


def _user_namespaces(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not resource.acts_as("ConfigFiles"):
        return
    files = resource.input("files")
    if files is UNKNOWN:
        yield not_known(resource, ("files",))
        return
    for name, text in mapped(files).items():
        if name != "plugstack.conf":
            continue
        if text is UNKNOWN:
            yield not_known(resource, ("files", name))
        elif any("user_namespaces" in line.split() for line in str(text).splitlines() if not line.startswith("#")):
            yield Finding(
                resource, ("files", name), "lets users create namespaces, which exposes more of the kernel to them"
            )


USER_NAMESPACES = ResourcePolicy(
    name="user-namespaces",
    description="Jobs and sessions create no namespaces of their own without a reason.",
    violated_by="`jail.isolation.user_namespaces: true`",
    cure="Set jail.isolation.user_namespaces to false.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jail", "security"),
    check=_user_namespaces,
)
