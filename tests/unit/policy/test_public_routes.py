"""A policy on routes finds those that lead every address to a cluster's pods, by whatever names."""

from collections.abc import Mapping
from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.public_routes import PUBLIC_ROUTES
from tests.unit.policy.views import a_pod, an_object, as_stateful_set, below, paths

LABELS = {"app.kubernetes.io/component": "rest"}
NGINX = "nginx.ingress.kubernetes.io/whitelist-source-range"
BALANCER = "service.beta.kubernetes.io/load-balancer-source-ranges"
INTERNAL = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
BACKEND = ["spec.rules[0].http.paths[0].backend"]
REFERENCE = ["spec.rules[0].backendRefs[0]"]


def a_service(name: str, namespace: str = "shop", **spec: Any) -> ResourceView:
    return an_object("core/v1:Service", {"metadata": {"name": name, "namespace": namespace}, "spec": spec}, name)


REST = (below("RestApi", as_stateful_set(a_pod(labels=LABELS))), a_service("rest", selector=LABELS))
"""The pods of the REST API, and their Service."""


def an_ingress(
    service: object = "rest", annotations: object = None, namespace: str = "shop", spec: Any = None
) -> ResourceView:
    backend = {"service": {"name": service, "port": {"number": 6820}}}
    metadata = {"name": "it", "namespace": namespace, "annotations": annotations}
    rules = {"rules": [{"http": {"paths": [{"path": "/", "backend": backend}]}}]}
    return an_object("networking.k8s.io/v1:Ingress", {"metadata": metadata, "spec": spec or rules})


def a_route(kind: str = "HTTPRoute", *, parent: Mapping[str, str] | None = None, **backend: Any) -> ResourceView:
    spec = {
        "parentRefs": [parent or {"name": "door"}],
        "rules": [{"backendRefs": [{"name": "rest", "port": 6820, **backend}]}],
    }
    return an_object(
        f"gateway.networking.k8s.io/v1:{kind}", {"metadata": {"name": "it", "namespace": "shop"}, "spec": spec}
    )


def a_gateway(annotations: object = None, kind: str = "any", namespace: str = "shop") -> ResourceView:
    spec = {"gatewayClassName": kind, "infrastructure": {"annotations": annotations}}
    metadata = {"name": "door", "namespace": namespace}
    return an_object("gateway.networking.k8s.io/v1:Gateway", {"metadata": metadata, "spec": spec}, "door")


def found(*resources: ResourceView, unknown: bool = False) -> list[str]:
    return paths(PUBLIC_ROUTES, *REST, *resources, unknown=unknown)


@pytest.mark.parametrize(
    ("annotations", "path"),
    [
        (None, BACKEND),
        ({NGINX: ""}, BACKEND),
        ({NGINX: "10.0.0.0/8, 0.0.0.0/0"}, [f'metadata.annotations["{NGINX}"]']),
        ({NGINX: "0.0.0.0/2, 64.0.0.0/2,128.0.0.0/2"}, ["metadata.annotations"]),
        ({NGINX: "198.51.100.0/24,2001:db8::/32"}, []),
        ({"alb.ingress.kubernetes.io/scheme": "internet-facing"}, BACKEND),
        ({"alb.ingress.kubernetes.io/scheme": "internal"}, []),
        ({"kubernetes.io/elb.autocreate": '{"type":"inner"}'}, []),
        ({"kubernetes.io/elb.autocreate": '{"type":"public"}'}, BACKEND),
        ({"kubernetes.io/elb.autocreate": '{"type":"public"}', NGINX: "198.51.100.0/24"}, []),
        (INTERNAL, BACKEND),
        (UNKNOWN, []),
    ],
)
def test_an_ingress_admits_named_addresses(annotations: object, path: list[str]) -> None:
    assert found(an_ingress(annotations=annotations)) == path
    assert found(an_ingress(annotations=annotations), unknown=True) == (
        ["metadata.annotations"] if annotations is UNKNOWN else []
    )


@pytest.mark.parametrize(
    ("gateway", "path"),
    [
        ([], REFERENCE),
        ([a_gateway()], REFERENCE),
        ([a_gateway(namespace="elsewhere")], REFERENCE),
        ([a_gateway({BALANCER: "0.0.0.0/0"})], [f'spec.infrastructure.annotations["{BALANCER}"]']),
        ([a_gateway({BALANCER: "198.51.100.0/24"})], []),
        ([a_gateway(INTERNAL)], []),
        ([a_gateway(kind="gke-l7-rilb")], []),
    ],
)
@pytest.mark.parametrize("kind", ["HTTPRoute", "TLSRoute", "TCPRoute"])
def test_a_route_comes_from_a_gateway_that_admits_named_addresses(
    kind: str, gateway: list[ResourceView], path: list[str]
) -> None:
    assert found(a_route(kind), *gateway) == path


def test_a_route_of_a_mesh_has_no_door() -> None:
    assert found(a_route(parent={"kind": "Service", "name": "rest"})) == []


def test_the_service_is_found_by_the_pods_that_it_leads_to() -> None:
    other = a_service("api", selector=LABELS)
    alias = a_service("api", "doors", type="ExternalName", externalName="rest.shop.svc.cluster.local")
    assert found(an_ingress("api"), other) == BACKEND
    assert found(an_ingress("api", namespace="doors"), alias) == BACKEND
    assert found(a_route(namespace="shop"), a_gateway()) == REFERENCE


def test_services_of_other_pods_pass() -> None:
    assert found(an_ingress("web"), a_service("web", selector={"app": "web"})) == []
    assert found(an_ingress(namespace="elsewhere"), a_service("rest", "elsewhere", selector=LABELS)) == []
    assert paths(PUBLIC_ROUTES, an_ingress(), a_service("rest", selector=LABELS)) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"defaultBackend": {"service": {"name": "rest"}}}, ["spec.defaultBackend"]),
        ({"backend": {"serviceName": "rest"}}, ["spec.backend"]),
        ({"rules": [{"http": {"paths": [{"backend": {"serviceName": "rest"}}]}}]}, BACKEND),
    ],
)
def test_every_place_of_a_backend_counts(spec: object, path: list[str]) -> None:
    assert found(an_ingress(spec=spec)) == path


def test_a_patch_that_opens_an_ingress_is_found() -> None:
    props = {"metadata": {"name": "it", "namespace": "shop", "annotations": {NGINX: "0.0.0.0/0"}}}
    patch = an_object("networking.k8s.io/v1:IngressPatch", props)
    assert found(an_ingress(annotations={NGINX: "198.51.100.0/24"}), patch) == [f'metadata.annotations["{NGINX}"]']


def test_a_backend_that_a_preview_does_not_know_is_judged_later() -> None:
    assert found(an_ingress(UNKNOWN), unknown=True) == BACKEND


def test_a_backend_without_a_name_is_no_service_without_one() -> None:
    unnamed = an_object("core/v1:Service", {"metadata": {"namespace": "shop"}, "spec": {"selector": LABELS}})
    assert found(an_ingress(None), unnamed) == []
    assert found(an_ingress({"name": ["rest"]}), a_route(name=["rest"], namespace={}), a_gateway()) == []
