"""Way to ssh, and the key by which it is known."""

import base64
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from soperator_pulumi import SlurmCluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.testing import Deployment, Secret, deploy
from tests.rendered.cluster.clusters import SEED, a_deployment, a_spec, provided


def exported(spec: Mapping[str, Any], service: Mapping[str, Any] | None = None) -> Deployment:
    """Deploy a cluster with exported outputs; `service` is what Kubernetes adds to the login Service."""

    def program() -> None:
        cluster = SlurmCluster("hpc", spec)
        pulumi.export("endpoint", cluster.login.endpoint)
        pulumi.export("public_key", cluster.login.host_public_key)
        pulumi.export("fingerprint", cluster.login.host_key_fingerprint)
        pulumi.export("namespace", cluster.namespace_name)

    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if name == "hpc-login-service":
            added = dict(service or {})
            return {"spec": {**inputs["spec"], **added.pop("spec", {})}, **added}
        return provided(type_, name, inputs)

    return deploy(program, outputs=outputs)


@pytest.mark.parametrize(
    ("login", "service", "endpoint"),
    [
        ({}, {"spec": {"clusterIP": "10.96.0.7"}}, "10.96.0.7:22"),
        (
            {"service": "NodePort", "allowed_sources": ["10.0.0.0/8"]},
            {"spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 22, "nodePort": 30022}]}},
            ":30022",
        ),
        (
            {"service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]},
            {"spec": {"clusterIP": "10.96.0.7"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}},
            "192.0.2.1:22",
        ),
        (
            {"service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]},
            {"status": {"loadBalancer": {"ingress": [{"hostname": "ssh.example.com"}]}}},
            "ssh.example.com:22",
        ),
    ],
)
def test_the_endpoint_is_where_ssh_is_reached(
    login: Mapping[str, Any], service: Mapping[str, Any], endpoint: str
) -> None:
    assert exported(a_spec(login=login), service).exports["endpoint"] == endpoint


def test_the_host_key_is_made_from_a_random_text_and_its_public_half_is_for_everyone() -> None:
    deployment = exported(a_spec())
    data = deployment.one("hpc-ssh-host-key-secret").inputs["data"]
    assert isinstance(data, Secret)
    key = load_ssh_private_key(base64.b64decode(data.value["ssh_host_ed25519_key"]), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    assert key.private_bytes_raw() == SEED
    assert deployment.exports["public_key"].startswith("ssh-ed25519 AAAA")
    assert deployment.exports["fingerprint"].startswith("SHA256:")


def test_an_own_host_key_is_mounted_and_its_public_half_comes_from_the_cluster() -> None:
    deployment = exported(a_spec(secrets={"ssh_host_key": {"secret": "ours", "key": "id"}}))
    assert deployment.exports["public_key"] == "ssh-ed25519 OWN"
    assert deployment.exports["fingerprint"] == "SHA256:own"
    volumes = deployment.one("hpc-login", "StatefulSet").inputs["spec"]["template"]["spec"]["volumes"]
    secret = next(volume["secret"] for volume in volumes if volume["name"] == "ssh-host-key")
    assert (secret["secretName"], secret["items"]) == ("ours", [{"key": "id", "path": "ssh_host_ed25519_key"}])
    assert [resource.name for resource in deployment.resources(":RandomPassword")] == ["hpc-munge-key"]


def test_an_own_munge_key_is_mounted_and_none_is_made() -> None:
    deployment = exported(a_spec(secrets={"munge_key": {"secret": "ours"}}))
    assert [resource.name for resource in deployment.resources(":RandomPassword")] == ["hpc-ssh-host-key"]
    assert [resource.name for resource in deployment.resources(":Secret")] == ["hpc-ssh-host-key-secret"]


def test_a_service_without_pods_is_not_waited_for() -> None:
    balanced = {"service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]}

    def annotations(**login: Any) -> Any:
        service = a_deployment(login={**balanced, **login}).one("hpc-login-service")
        return service.inputs["metadata"].get("annotations", {})

    assert annotations(replicas=0) == {"pulumi.com/skipAwait": "true"}
    assert annotations(replicas=1) == {}


def test_an_opened_service_keeps_the_clients_address_for_the_network_policy() -> None:
    service = a_deployment(login={"service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]}).one(
        "hpc-login-service"
    )
    assert service.inputs["spec"]["externalTrafficPolicy"] == "Local"
    assert service.inputs["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]


def test_annotations_of_the_login_service_tell_the_platform_about_its_load_balancer() -> None:
    service = a_deployment(login={"service_annotations": {"example.com/internal": "true"}}).one("hpc-login-service")
    assert service.inputs["metadata"]["annotations"]["example.com/internal"] == "true"


def test_a_login_pod_that_stops_has_the_time_of_its_grace_for_sessions() -> None:
    pod = (
        a_deployment(login={"termination_grace": "1h"})
        .one("hpc-login", "StatefulSet")
        .inputs["spec"]["template"]["spec"]
    )
    (sshd,) = pod["containers"]
    assert pod["terminationGracePeriodSeconds"] == 3600
    assert sshd["lifecycle"]["preStop"]["exec"]["command"][-2:] == ["/usr/lib/soperator/farewell.py", "3600"]


def test_a_hanging_sshd_does_not_have_the_time_of_sessions() -> None:
    pod = (
        a_deployment(login={"termination_grace": "1h"})
        .one("hpc-login", "StatefulSet")
        .inputs["spec"]["template"]["spec"]
    )
    assert pod["containers"][0]["livenessProbe"]["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize(("replicas", "budgets"), [(1, []), (2, [1])])
def test_evictions_leave_login_pods_to_log_in_to(replicas: int, budgets: list[int]) -> None:
    deployment = a_deployment(login={"replicas": replicas})
    found = [
        budget.inputs["spec"]["maxUnavailable"]
        for budget in deployment.resources(":PodDisruptionBudget")
        if budget.name == "hpc-login-disruption"
    ]
    assert found == budgets


def test_a_grace_that_is_shorter_than_the_end_of_sshd_is_refused() -> None:
    with pytest.raises(SpecError, match=r'login.termination_grace: got "5s", needs a length of time from 30s to 7d'):
        a_deployment(login={"termination_grace": "5s"})


def test_the_login_service_has_the_class_and_the_port_that_are_given() -> None:
    login = {
        "service": "LoadBalancer",
        "allowed_sources": ["10.0.0.0/8"],
        "load_balancer_class": "service.k8s.aws/nlb",
        "node_port": 30022,
    }
    spec = a_deployment(login=login).one("hpc-login-service").inputs["spec"]
    assert (spec["loadBalancerClass"], spec["ports"][0]["nodePort"]) == ("service.k8s.aws/nlb", 30022)


@pytest.mark.parametrize(
    ("login", "place"),
    [
        ({"node_port": 30022}, "login.node_port: given with login.service ClusterIP, which has none."),
        (
            {"service": "NodePort", "allowed_sources": ["10.0.0.0/8"], "load_balancer_class": "a/b"},
            "login.load_balancer_class: given with login.service NodePort, which has no load balancer.",
        ),
    ],
)
def test_a_class_and_a_port_need_a_service_that_has_them(login: dict[str, Any], place: str) -> None:
    with pytest.raises(SpecError, match=place):
        a_deployment(login=login)
