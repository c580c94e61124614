"""Node sets without pods: their drains, as a cluster has them, of the sizes that the configuration gives."""

import pulumi

from soperator_pulumi.lifecycle import ClusterConnection, KubernetesAccess, NodeDrain, RemovedNodeSets
from soperator_pulumi.spec.drain import DrainSpec

config = pulumi.Config()
sizes = {name: int(size) for name, size in config.require_object("sizes").items()}
policy = DrainSpec().model_dump(mode="json")
selector = {"app.kubernetes.io/instance": "hpc"}
cluster = ClusterConnection(KubernetesAccess(), config.require("namespace"), "owner", "", selector)

removed = RemovedNodeSets(
    "removed", cluster=cluster, policies=dict.fromkeys(sizes, policy), replicas=sizes, slurm_files={}
)
for name, size in sizes.items():
    NodeDrain(
        f"{name}-drain",
        cluster=cluster,
        node_set=name,
        replicas=size,
        identity="",
        policy=policy,
        opts=pulumi.ResourceOptions(depends_on=[removed]),
    )
