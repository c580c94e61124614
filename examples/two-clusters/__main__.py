"""Two Slurm clusters in one Kubernetes: what they share stands in the stack's file, what differs stands here.

Each cluster has a namespace, keys, volumes and logins of its own, and none reaches the other. The stack's name is
part of theirs, so that several stacks can share a Kubernetes cluster.
"""

import pulumi

from soperator_pulumi import SlurmCluster
from soperator_pulumi.spec.args import DrainArgs, NodeSetArgs

config = pulumi.Config("soperator")
shared = config.require_object("cluster")
stack = pulumi.get_stack()


def node_set(replicas: int, drain: DrainArgs) -> NodeSetArgs:
    """Return small nodes, whose pods request less of a laptop than Slurm schedules."""
    return {
        "name": "cpu",
        "replicas": replicas,
        "cpus": 2,
        "memory_gib": 1,
        "pod_resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "drain": drain,
    }


research = SlurmCluster(
    f"research-{stack}",
    shared,
    # Jobs of days: a scale-down waits for them, or is undone.
    node_sets=[node_set(config.get_int("research-nodes", 2), {"timeout": "12h", "on_timeout": "abort"})],
)
teaching = SlurmCluster(
    f"teaching-{stack}",
    shared,
    node_sets=[node_set(1, {"timeout": "5m", "on_timeout": "requeue"})],
    partitions=[{"name": "main", "default": True, "options": {"MaxTime": "01:00:00"}}],
)

pulumi.export("research", research.login.endpoint)
pulumi.export("teaching", teaching.login.endpoint)
