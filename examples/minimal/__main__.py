"""One Slurm cluster of two nodes, in a namespace of its own.

Put your registry and your ssh key into `Pulumi.dev.yaml`, then run:

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    pulumi up --stack dev

`KUBECONFIG` chooses the Kubernetes, as for every Kubernetes tool.
"""

import pulumi

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")

cluster = SlurmCluster(
    "hpc",
    config.require_object("cluster"),
    node_sets=[
        {
            "name": "cpu",
            "replicas": 2,
            "cpus": 2,
            "memory_gib": 2,
            # Room on a laptop: the pods request less than Slurm schedules. Real nodes do without these lines.
            "pod_resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
        }
    ],
)

pulumi.export("namespace", cluster.namespace_name)
pulumi.export("login", cluster.login.endpoint)
