"""Platforms to deploy under mocks."""

import functools
import json
from typing import Any

from soperator_pulumi.platform import Platform
from soperator_pulumi.testing import Deployment, Recorded, deploy

NETWORKS: dict[str, Any] = {
    "shared_rdma": [{"name": "hca", "devices": {"interfaces": ["ib0"]}}],
    "host_devices": [{"name": "vf", "devices": {"device_ids": ["1021"]}}],
    "ip_pools": [{"name": "fabric", "subnet": "10.1.0.0/16"}],
    "networks": [
        {"name": "rail-0", "kind": "host_device", "pool": "vf", "ip_pool": "fabric"},
        {"name": "storage", "kind": "macvlan", "interface": "eth1"},
        {"name": "fabric-ip", "kind": "ipoib", "interface": "ib0"},
    ],
}

WHOLE: dict[str, Any] = {
    "cert_manager": {},
    "cilium": {"mode": "own"},
    "kube_prometheus_stack": {},
    "mariadb_operator": {},
    "gpu_operator": {},
    "network_operator": NETWORKS,
}
"""A platform with every part."""


def a_platform(**parts: Any) -> Deployment:
    """Deploy a platform. A deployment cannot be changed, so one of each is enough."""
    return _deployed(json.dumps(parts, sort_keys=True))


@functools.cache
def _deployed(parts: str) -> Deployment:
    return deploy(lambda: Platform("platform", json.loads(parts)))


def release_of(deployment: Deployment, part: str) -> Recorded:
    """The release of a part of a platform."""
    return deployment.one(f"platform-{part}", "Release")


def values_of(part: str, /, **parts: Any) -> dict[str, Any]:
    """The values of the release of a part of a platform."""
    values: dict[str, Any] = release_of(a_platform(**parts), part).inputs["values"]
    return values
