"""Nodes that a deployment may do without, and checks that take bad ones out of service."""

import json
from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.nodes_in_service import HEALTH_CHECKS, NODES_IN_SERVICE
from tests.unit.policy.views import a_resource_of_ours, an_object, below, paths


def ready(replicas: Any = 8.0, unavailable: Any = "10%", **changes: Any) -> ResourceView:
    inputs = {"max_unready": 0, "wait_until_ready": True, "rolling_update": {"max_unavailable": unavailable}}
    return a_resource_of_ours("NodesReady", replicas=replicas, **{**inputs, **changes})


@pytest.mark.parametrize(
    ("resource", "found"),
    [
        (ready(), []),
        (ready(1.0), []),
        (ready(0.0, max_unready="100%"), []),
        (ready(1.0, "100%"), []),
        (ready(max_unready=4), []),
        (ready(max_unready="50%"), []),
        (ready(max_unready=5.0), ["max_unready"]),
        (ready(max_unready="100%"), ["max_unready"]),
        (ready(max_unready=500), ["max_unready"]),
        (ready(1.0, max_unready=1), ["max_unready"]),
        (ready(wait_until_ready=False), []),
        (ready(unavailable="50%"), []),
        (ready(unavailable=5), ["rolling_update.max_unavailable"]),
        (ready(unavailable="100%"), ["rolling_update.max_unavailable"]),
    ],
)
def test_a_deployment_keeps_most_nodes(resource: ResourceView, found: list[str]) -> None:
    assert paths(NODES_IN_SERVICE, resource) == found


def test_the_nodes_that_may_be_missing_are_a_setting() -> None:
    assert paths(NODES_IN_SERVICE, ready(max_unready=2), at_most="25%") == []
    assert paths(NODES_IN_SERVICE, ready(max_unready=3), at_most="25%") == ["max_unready"]
    assert paths(NODES_IN_SERVICE, ready(max_unready=8), at_most="100%") == []


@pytest.mark.parametrize("resource", [ready(UNKNOWN), ready(unavailable=UNKNOWN), ready(max_unready=UNKNOWN)])
def test_numbers_that_a_preview_does_not_know_are_named(resource: ResourceView) -> None:
    assert paths(NODES_IN_SERVICE, resource, unknown=True) == ["replicas"]


def health(**checks: str) -> ResourceView:
    text = json.dumps({"checks": {name: {"action": action} for name, action in checks.items()}})
    return a_resource_of_ours("ConfigFiles", name="health", namespace="hpc", files={"gpu.json": text})


def workers(device: str) -> ResourceView:
    pods = {"spec": {"containers": [{"name": "slurmd", "resources": {"limits": {"memory": "8Gi", device: "8"}}}]}}
    metadata = {"name": "gpu", "namespace": "hpc"}
    return below(
        "NodeSet", an_object("apps/v1:StatefulSet", {"metadata": metadata, "spec": {"template": pods}}, "hpc-gpu")
    )


@pytest.mark.parametrize(
    ("device", "checks", "safe"),
    [
        ("nvidia.com/gpu", {"gpu_xid": "drain"}, True),
        ("nvidia.com/mig-1g.10gb", {"gpu_remap_failed": "drain_and_replace"}, True),
        ("nvidia.com/gpu", {"gpu_xid": "log", "nvlink_links": "drain"}, True),
        ("nvidia.com/gpu", {"gpu_xid": "log", "volumes": "drain"}, False),
        ("nvidia.com/gpu", {"volumes": "drain"}, False),
        ("nvidia.com/mig-1g.10gb", {"volumes": "drain"}, False),
        ("amd.com/gpu", {"volumes": "drain"}, True),
        ("amd.com/gpu", {"volumes": "log"}, False),
        ("nvidia.com/gpu", {}, False),
    ],
)
def test_checks_of_gpus_drain_the_nodes_that_have_some(device: str, checks: dict[str, str], *, safe: bool) -> None:
    assert paths(HEALTH_CHECKS, workers(device), health(**checks)) == ([] if safe else ['files["gpu.json"]'])
