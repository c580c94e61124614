"""A cluster for training and for notebooks: whole GPUs with a fast network, MIG instances, and nodes without GPUs.

The machines have NVIDIA's GPU Operator or its device plugin, with the strategy `mixed` for MIG, and a device plugin for
RDMA. Put your registry and your ssh key into `Pulumi.dev.yaml`, then run:

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    pulumi up --stack dev

Then `srun --partition=train --gpus=8 nvidia-smi`.

Long checks measure each node once a day, hooks keep jobs off GPUs in use, and an exporter serves the cluster's metrics.
The measurement of GPUs needs a program in the jail: docs/long-checks.md, "Install the programs".
"""

import pulumi

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")

NCCL = {"NCCL_IB_HCA": "mlx5", "NCCL_SOCKET_IFNAME": "eth0"}
"""Settings of NCCL that fit the machines. A user's own values win."""

cluster = SlurmCluster(
    "hpc",
    config.require_object("cluster"),
    node_sets=[
        {"name": "cpu", "replicas": 2, "cpus": 32, "memory_gib": 120},
        {
            "name": "h100",
            "replicas": 2,
            # All CPUs of the machine, so that tasks run next to their GPUs. The kubelet and daemons have 8 of them.
            "cpus": 192,
            "sockets": 2,
            "cores_per_socket": 48,
            "threads_per_core": 2,
            "memory_gib": 1900,
            "pod_resources": {
                "requests": {"cpu": 184, "memory": "1910Gi"},
                "limits": {"cpu": 184, "memory": "1910Gi"},
            },
            "partitions": ["train"],
            "gpus": {"count": 8, "type": "h100"},
            "rdma": {"resource": "rdma/hca_shared_devices_a"},
            "environment": NCCL,
            "node_selector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            # Training runs for days: a new image waits for it.
            "drain": {"timeout": "12h", "on_timeout": "wait", "max_wait": "8d"},
        },
        {
            "name": "mig",
            "cpus": 24,
            "memory_gib": 240,
            "partitions": ["notebooks"],
            "gpus": {"mig": {"1g.10gb": 7}},
            "node_selector": {"nvidia.com/mig.config": "all-1g.10gb"},
        },
    ],
    partitions=[
        {"name": "main", "default": True},
        {"name": "train", "options": {"MaxTime": "7-00:00:00"}},
        {"name": "notebooks", "options": {"MaxTime": "08:00:00"}},
    ],
    health={"long_checks": {"memory_bandwidth": {}, "nccl_bandwidth": {}}},
    hooks={},
    metrics={},
)

pulumi.export("namespace", cluster.namespace_name)
pulumi.export("login", cluster.login.endpoint)
