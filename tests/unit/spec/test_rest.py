"""The REST API in a description: its problems."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import IMAGES, a_cluster, a_spec

WITH_REST = {**IMAGES, "rest": "registry.example/soperator/rest:1"}


def test_a_cluster_has_no_rest_api_unless_it_is_described() -> None:
    assert a_spec().rest is None


def test_the_rest_api_is_closed_and_inside_kubernetes_by_default() -> None:
    rest = a_spec(images=WITH_REST, rest={}).rest

    assert rest is not None
    assert (rest.service, rest.allowed_sources, rest.allowed_namespaces) == ("ClusterIP", (), ())


@pytest.mark.parametrize("service", ["LoadBalancer", "NodePort"])
def test_a_service_outside_of_kubernetes_is_taken_with_addresses_that_may_connect(service: str) -> None:
    rest = a_spec(images=WITH_REST, rest={"service": service, "allowed_sources": ["10.0.0.0/8"]}).rest

    assert rest is not None
    assert rest.service == service


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"images": IMAGES, "rest": {}},
            "images.rest: missing, and rest is on. Name the image that `make images` prints as `rest`.",
        ),
        (
            {"rest": {"service": "LoadBalancer"}},
            "rest.allowed_sources: empty, but rest.service is LoadBalancer: no one could connect.",
        ),
        (
            {"rest": {"service": "NodePort", "allowed_namespaces": ["portal"]}},
            "rest.allowed_sources: empty, but rest.service is NodePort: no one could connect.",
        ),
        ({"rest": {"allowed_sources": ["10.0.0.0/33"]}}, "rest.allowed_sources[0]: "),
        ({"rest": {"max_token_lifetime": "30s"}}, "rest.max_token_lifetime: "),
        ({"rest": {"limits": {"body_kib": 15}}}, "rest.limits.body_kib: "),
        ({"rest": {"limits": {"request_seconds": 0}}}, "rest.limits.request_seconds: "),
        ({"rest": {"tls": {}}}, "rest.tls.secret: "),
        (
            {"rest": {"pod_resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}},
            "rest.pod_resources",
        ),
    ],
)
def test_a_problem_names_its_field_and_its_cure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_cluster(a_cluster(**{"images": WITH_REST, **changes}))
    assert message in str(raised.value)
