"""The cluster of the research team, and what the team adds to it."""

import pulumi
import pulumi_kubernetes as kubernetes

from soperator_pulumi import SlurmCluster


def create_research() -> SlurmCluster:
    """Create the cluster that the stack describes, with a quota on its namespace."""
    nodes = pulumi.Config("testing").require_int("nodes")
    cluster = SlurmCluster(
        "research",
        pulumi.Config("soperator").require_object("cluster"),
        node_sets=[
            {
                "name": "cpu",
                "replicas": nodes,
                "cpus": 16,
                "memory_gib": 64,
                "drain": {"timeout": "12h", "on_timeout": "abort"},
            }
        ],
    )
    kubernetes.core.v1.ResourceQuota(
        "research",
        metadata={"name": "research", "namespace": cluster.namespace_name},
        spec={"hard": {"requests.cpu": str(nodes * 16 + 8)}},
    )
    pulumi.export("login", cluster.login.endpoint)
    return cluster
