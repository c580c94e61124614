"""Policies on access to the REST API and logins: no Ingress or Gateway opens them, and tokens are sent encrypted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from soperator_pulumi.policy.address_space import network
from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.exposure import SOURCE_RANGES, admitted
from soperator_pulumi.policy.internal_balancers import HUAWEI_AUTOCREATE, INTERNAL_BALANCER, Internal, is_internal
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import objects_and_patches, selects, stateful_sets
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look, mapped
from soperator_pulumi.policy.view import ResourceView

_Name = tuple[object, object]
"""Namespace and name of an object."""

_PARTS = {"RestApi": "the REST API", "LoginNodes": "the login pods"}

_INTERNAL_INGRESS: Internal = {
    **HUAWEI_AUTOCREATE,
    "alb.ingress.kubernetes.io/scheme": "internal",
    "appgw.ingress.kubernetes.io/use-private-ip": "true",
    "kubernetes.io/ingress.class": "gce-internal",
}
"""Annotations of an Ingress that keep it inside a cloud's network, with their values, from the controllers' pages."""

_RANGES_OF_INGRESS = frozenset(
    {
        "alb.ingress.kubernetes.io/inbound-cidrs",
        "haproxy-ingress.github.io/allowlist-source-range",
        "haproxy-ingress.github.io/whitelist-source-range",
        "haproxy.org/allow-list",
        "haproxy.org/whitelist",
        "nginx.ingress.kubernetes.io/allowlist-source-range",
        "nginx.ingress.kubernetes.io/whitelist-source-range",
    }
)
"""Annotations of an Ingress with the ranges that it admits."""

_INTERNAL_CLASSES = {"gke-l7-cross-regional-internal-managed-mc", "gke-l7-rilb", "gke-l7-rilb-mc"}
"""Classes of Gateways inside a cloud's network:
https://cloud.google.com/kubernetes-engine/docs/concepts/gateway-api#gatewayclass."""

_ANNOTATIONS, _OF_GATEWAY = ("metadata", "annotations"), ("spec", "infrastructure", "annotations")


class _Door(NamedTuple):
    """An Ingress or a Gateway, and the annotations that state whom it admits."""

    resource: ResourceView
    annotations: Path
    internal: Internal
    """Annotations that keep it inside a cloud's network, with their values."""
    ranges: frozenset[str]
    """Annotations with the ranges that it admits."""


def _open_routes(
    resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings
) -> Iterator[Finding]:
    objects = objects_and_patches(resources)
    services = _services(objects)
    gateways = {_name(resource): resource for resource in objects if resource.kind == "Gateway"}
    for route in objects:
        for path, backend in _backends(route):
            if services and UNKNOWN in backend:
                yield not_known(route, path)
            elif backend in services and None not in backend:
                yield from _open(route, path, services[backend], gateways)


def _services(objects: Sequence[ResourceView]) -> dict[_Name, str]:
    """Return the Services that lead to the pods of a cluster, under their own names and as aliases elsewhere."""
    found = {
        _name(service): words
        for part, words in _PARTS.items()
        for pods in stateful_sets(objects, part)
        for service in objects
        if service.kind == "Service" and service.namespace == pods.namespace and _is_before(service, pods)
    }
    for service in objects:
        host = str(look(service.props, "spec", "externalName")).split(".")
        if service.kind == "Service" and (target := (host[1], host[0]) if len(host) > 1 else None) in found:
            found[_name(service)] = found[target]
    return found


def _is_before(service: ResourceView, pods: ResourceView) -> bool:
    selector = look(service.props, "spec", "selector")
    labels = look(pods.props, "spec", "template", "metadata", "labels")
    return bool(selector) and selects({"matchLabels": selector}, labels)


def _name(resource: ResourceView) -> _Name:
    return _key(resource.namespace, look(resource.props, "metadata", "name"))


def _key(namespace: object, name: object) -> _Name:
    first, second = (value if value in (None, UNKNOWN) else str(value) for value in (namespace or "default", name))
    return first, second


def _backends(route: ResourceView) -> Iterator[tuple[Path, _Name]]:
    """Yield the Services that an Ingress, or a route of a Gateway, leads to."""
    rules: list[tuple[Path, object]] = [
        (("spec", "rules", index), rule) for index, rule in enumerate(listed(look(route.props, "spec", "rules")))
    ]
    if route.kind == "Ingress":
        places: list[tuple[Path, object]] = [
            ((*path, "http", "paths", index, "backend"), look(item, "backend"))
            for path, rule in rules
            for index, item in enumerate(listed(look(rule, "http", "paths")))
        ]
        places += [(("spec", key), look(route.props, "spec", key)) for key in ("defaultBackend", "backend")]
        yield from (
            (path, _key(route.namespace, look(item, "service", "name") or look(item, "serviceName")))
            for path, item in places
        )
    elif route.kind.endswith("Route"):
        for path, rule in rules:
            for index, item in enumerate(listed(look(rule, "backendRefs"))):
                yield (
                    (*path, "backendRefs", index),
                    _key(look(item, "namespace") or route.namespace, look(item, "name")),
                )


def _open(route: ResourceView, path: Path, words: str, gateways: Mapping[_Name, ResourceView]) -> Iterator[Finding]:
    """Yield the problems of an Ingress or Gateway whose route leads to a cluster's pods."""
    if route.kind == "Ingress":
        yield from _door(_Door(route, _ANNOTATIONS, _INTERNAL_INGRESS, _RANGES_OF_INGRESS), route, path, words)
        return
    parents = look(route.props, "spec", "parentRefs")
    if parents is UNKNOWN:
        yield not_known(route, ("spec", "parentRefs"))
    for parent in listed(parents):
        gateway = gateways.get(_key(look(parent, "namespace") or route.namespace, look(parent, "name")))
        if look(parent, "kind") not in (None, "Gateway"):
            continue  # a route of a service mesh
        if gateway is None:
            yield Finding(
                route, path, f"leads to {words} from a Gateway outside the program, which may admit every address"
            )
        elif str(look(gateway.props, "spec", "gatewayClassName")) not in _INTERNAL_CLASSES:
            door = _Door(gateway, _OF_GATEWAY, INTERNAL_BALANCER, frozenset({SOURCE_RANGES}))
            yield from _door(door, route, path, words)


def _door(door: _Door, route: ResourceView, path: Path, words: str) -> Iterator[Finding]:
    annotations = look(door.resource.props, *door.annotations)
    if annotations is UNKNOWN:
        yield not_known(door.resource, door.annotations)
        return
    given = {key: value for key, value in mapped(annotations).items() if key in door.ranges}
    cidrs: list[tuple[Path, object]] = [
        ((*door.annotations, key), part.strip() if isinstance(part, str) else part)
        for key, value in given.items()
        for part in (value.split(",") if isinstance(value, str) else [value])
    ]
    if is_internal(mapped(annotations), door.internal):
        return
    if not any(cidr is UNKNOWN or network(cidr) for _, cidr in cidrs):
        yield Finding(route, path, f"leads every address to {words}")
    yield from admitted(door.resource, door.annotations, cidrs)


PUBLIC_ROUTES = StackPolicy(
    name="public-routes",
    description="No Ingress and no Gateway leads the whole internet to a cluster's REST API or login pods.",
    violated_by="an Ingress to the Service `rest` without ranges of addresses, or with `0.0.0.0/0`, that no annotation "
    "makes internal; an HTTPRoute, TLSRoute or TCPRoute to it, or to `login`, from a Gateway of that kind, or from one "
    "outside the program",
    cure="List the addresses of your users in the annotation of your controller, such as "
    "nginx.ingress.kubernetes.io/whitelist-source-range, or make the Ingress or Gateway internal; or use "
    "rest.allowed_sources with rest.service: LoadBalancer.",
    levels=levels("advisory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_open_routes,
)


def _unencrypted(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if resource.kind != "StatefulSet" or resource.part != "RestApi":
        return
    path = ("spec", "template", "spec", "volumes")
    volumes = look(resource.props, *path)
    if volumes is UNKNOWN or UNKNOWN in listed(volumes):
        yield not_known(resource, path)
    elif not any(look(volume, "name") == "tls" for volume in listed(volumes)):
        yield Finding(
            resource, path, "have no certificate: anyone who can read the network sees users' tokens and scripts"
        )


ENCRYPTED_REST = ResourcePolicy(
    name="encrypted-rest",
    description="Tokens and jobs reach the REST API encrypted.",
    violated_by="`rest` without `tls`",
    cure="Name a Secret with the API's certificate: rest.tls.secret.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    check=_unencrypted,
)
