"""Helpers for tests of programs that use this package: deploy against mocks, then inspect all registrations.

Example::

    from soperator_pulumi import SlurmCluster
    from soperator_pulumi.testing import deploy

    names = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
    images = {name: f"registry.example.com/{name}:1" for name in names}
    nodes = [{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}]

    deployment = deploy(lambda: SlurmCluster("hpc", {"images": images, "node_sets": nodes}))
    workers = deployment.one("hpc-cpu", "StatefulSet")
    assert workers.inputs["spec"]["replicas"] == 4
    assert deployment.request("hpc-slurmctld-state").protect
"""

from soperator_pulumi.simulation.deployment import (
    PROJECT,
    STACK,
    Deployment,
    Outputs,
    Recorded,
    Secret,
    deploy,
    random_bytes,
)
from soperator_pulumi.simulation.manifests import Manifest, Manifests, manifests_of

__all__ = [
    "PROJECT",
    "STACK",
    "Deployment",
    "Manifest",
    "Manifests",
    "Outputs",
    "Recorded",
    "Secret",
    "deploy",
    "manifests_of",
    "random_bytes",
]
