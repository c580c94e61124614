"""Tests of the program: the resources that Pulumi would be given, without an engine and without a cluster."""

import json
from typing import Any

import pytest

from research import create_research
from soperator_pulumi.errors import SpecError
from soperator_pulumi.testing import Deployment, deploy

NAMES = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
CLUSTER = {"images": {name: f"registry.example.com/{name}:1" for name in NAMES}}


def deployed(nodes: int = 4, **changes: Any) -> Deployment:
    """Return what the program registers for a stack with these values."""
    return deploy(
        create_research,
        config={"testing:nodes": str(nodes), "soperator:cluster": json.dumps({**CLUSTER, **changes})},
    )


def test_the_stack_decides_how_many_nodes_there_are() -> None:
    workers = deployed(nodes=7).one("research-cpu", "StatefulSet")

    assert workers.inputs["spec"]["replicas"] == 7


def test_the_volumes_with_homes_and_jobs_are_protected() -> None:
    claims = deployed().resources("PersistentVolumeClaim")

    assert len(claims) == 3
    assert all(claim.request.protect and claim.request.retainOnDelete for claim in claims)


def test_the_quota_is_in_the_namespace_of_the_cluster_and_leaves_room_for_all_nodes() -> None:
    quota = deployed(nodes=2).one("research", "ResourceQuota")

    assert quota.inputs["metadata"]["namespace"] == "research"
    assert quota.inputs["spec"]["hard"]["requests.cpu"] == "40"


def test_logins_stay_inside_the_network_of_the_company() -> None:
    login = {"service": "LoadBalancer", "allowed_sources": ["10.0.0.0/8"]}
    service = deployed(login=login).one("research-login-service")

    assert service.inputs["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]


def test_a_mistake_in_a_stack_s_file_is_reported_with_its_place() -> None:
    with pytest.raises(SpecError, match=r"users\[0\]\.uid"):
        deployed(users=[{"name": "alice", "uid": "many"}])
