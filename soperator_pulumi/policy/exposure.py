"""Policies on what is open: logins, egress, namespaces of users."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, ResourcePolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import COMPONENT_LABEL, UNKNOWN, Path, ResourceView, listed, look, mapped
from soperator_pulumi.render.egress import DNS_PORTS, LINK_LOCAL, PRIVATE

_POPULATE = "jail-populate"
"""Component of the Job that copies a tarball from any address. It runs nothing of what it copies."""


def _public(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not resource.is_kubernetes:
        return
    if resource.kind == "Service" and look(resource.props, "spec", "type") == "LoadBalancer":
        yield from _open_balancer(resource)
    elif resource.kind == "NetworkPolicy":
        for index, rule in enumerate(listed(look(resource.props, "spec", "ingress"))):
            yield from _open_ingress(resource, ("spec", "ingress", index), rule)


def _open_balancer(resource: ResourceView) -> Iterator[Finding]:
    path = ("spec", "loadBalancerSourceRanges")
    ranges = look(resource.props, *path)
    if ranges is UNKNOWN or UNKNOWN in listed(ranges):
        yield not_known(resource, path)
    elif not ranges:
        yield Finding(resource, path, "missing: the load balancer admits every address")
    for index, cidr in enumerate(listed(ranges)):
        if _is_everything(cidr):
            yield Finding(resource, (*path, index), "admits every address")


def _open_ingress(resource: ResourceView, path: Path, rule: object) -> Iterator[Finding]:
    peers = look(rule, "from")
    if UNKNOWN in (rule, peers):
        yield not_known(resource, path)
    elif not peers:
        yield Finding(resource, (*path, "from"), "missing: the rule admits every address")
    for index, peer in enumerate(listed(peers)):
        if _is_everything(look(peer, "ipBlock", "cidr")):
            yield Finding(resource, (*path, "from", index, "ipBlock", "cidr"), "admits every address")


def _is_everything(cidr: object) -> bool:
    return isinstance(cidr, str) and cidr.endswith("/0")


PUBLIC_LOGINS = ResourcePolicy(
    name="public-logins",
    description="Nothing admits the whole internet without a reason.",
    violated_by="`login.allowed_sources` with `0.0.0.0/0`; a load balancer without `loadBalancerSourceRanges`; a "
    "NetworkPolicy that admits every address",
    cure="List the addresses of your users: login.allowed_sources.",
    levels=levels("advisory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_public,
)


def _open_egress(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not (resource.is_kubernetes and resource.kind == "NetworkPolicy"):
        return
    selected = look(resource.props, "spec", "podSelector", "matchLabels", COMPONENT_LABEL)
    if resource.is_ours and selected == _POPULATE:
        return
    found: dict[str, Finding] = {}
    for index, rule in enumerate(listed(look(resource.props, "spec", "egress"))):
        for finding in _open_rule(resource, ("spec", "egress", index), rule):
            found.setdefault(finding.text, finding)  # the ranges of IPv4 and of IPv6 come from one word
    yield from found.values()


def _open_rule(resource: ResourceView, path: Path, rule: object) -> Iterator[Finding]:
    peers = look(rule, "to")
    if UNKNOWN in (rule, peers):
        yield not_known(resource, path)
    elif not peers and not _asks_names(listed(look(rule, "ports"))):
        yield Finding(resource, (*path, "to"), "missing: the rule opens every address")
    for number, peer in enumerate(listed(peers)):
        yield from _open_block(resource, (*path, "to", number, "ipBlock"), look(peer, "ipBlock"))


def _asks_names(ports: Sequence[object]) -> bool:
    return bool(ports) and all(look(port, "port") in DNS_PORTS and look(port, "endPort") is None for port in ports)


def _open_block(resource: ResourceView, path: Path, block: object) -> Iterator[Finding]:
    cidr, holes = look(block, "cidr"), listed(look(block, "except"))
    if UNKNOWN in (block, cidr, look(block, "except")) or UNKNOWN in holes:
        yield not_known(resource, path)
        return
    if (opened := _network(cidr)) is None:
        return  # a peer by its labels, or nothing that Kubernetes would take
    closed = {str(hole) for hole in holes}
    if opened.prefixlen == 0 and not closed.issuperset(_within(opened, (*PRIVATE, *LINK_LOCAL))):
        yield Finding(resource, path, "opens every address, private ones with the public ones")
    elif not closed.issuperset(_within(opened, LINK_LOCAL)):
        yield Finding(resource, path, "opens link-local addresses, where clouds have their metadata services")


def _network(cidr: object) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(cidr, strict=False) if isinstance(cidr, str) else None
    except ValueError:
        return None


def _within(opened: IPv4Network | IPv6Network, ranges: Sequence[str]) -> set[str]:
    """Return the ranges of which a part is open."""
    return {
        each for each in ranges if (range_ := ip_network(each)).version == opened.version and range_.overlaps(opened)
    }


OPEN_EGRESS = ResourcePolicy(
    name="open-egress",
    description="Pods do not reach every address without a reason.",
    violated_by="`network.egress` with `internet` and `private` together (the default), `0.0.0.0/0` or link-local "
    "addresses; a NetworkPolicy whose egress names no destinations",
    cure="Name the destinations: network.egress: [internet, cluster, 10.20.0.0/16].",
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
        elif _has_word("user_namespaces", str(text)):
            yield Finding(resource, ("files", name), "lets users make namespaces, and with them use more of the kernel")


def _has_word(word: str, text: str) -> bool:
    return any(word in line.split() for line in text.splitlines() if not line.startswith("#"))


USER_NAMESPACES = ResourcePolicy(
    name="user-namespaces",
    description="Jobs and sessions make no namespaces of their own without a reason.",
    violated_by="`jail.isolation.user_namespaces: true`",
    cure="Set jail.isolation.user_namespaces to false.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jail", "security"),
    check=_user_namespaces,
)
