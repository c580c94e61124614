"""The rendered files of some clusters, as they were read and found right. UPDATE_GOLDEN=1 writes them again."""

import os
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.render.jail import login_arguments, tree_id
from soperator_pulumi.render.slurm_conf import node_conf
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.render.sshd_config import sshd_config
from soperator_pulumi.render.users import user_files
from soperator_pulumi.spec.cluster import ClusterSpec
from tests.strategies import ED25519_KEY, a_spec

GOLDEN = Path(__file__).parents[2] / "golden"

CLUSTERS: dict[str, dict[str, Any]] = {
    "small": {"slurm": {"constrain": "none"}},
    "large": {
        "node_sets": [
            {"name": "cpu", "replicas": 100, "cpus": 128, "memory_gib": 512, "partitions": ["main", "long"]},
            {
                "name": "fat",
                "replicas": 4,
                "cpus": 192,
                "memory_gib": 6144,
                "partitions": ["main", "fat"],
                "features": ["ib", "nvme"],
            },
        ],
        "partitions": [
            {"name": "long", "options": {"MaxTime": "14-00", "PriorityTier": 1}},
            {"name": "main", "default": True, "options": {"MaxTime": "1-00", "DefMemPerNode": 4096}},
        ],
        "groups": [{"name": "ml", "gid": 3000}, {"name": "bio", "gid": 3001}],
        "users": [
            {"name": "bob", "uid": 2002, "gid": 3000, "ssh_keys": [ED25519_KEY]},
            {"name": "alice", "uid": 2001, "groups": ["ml", "bio"], "ssh_keys": [ED25519_KEY], "shell": "/bin/zsh"},
        ],
        "jail": {
            "source": {"image": "registry.example/os:24.04"},
            "submounts": [
                {"path": "/data", "existing_claim": "data"},
                {"path": "/reference", "existing_claim": "genomes", "read_only": True},
                {"path": "/opt/software", "existing_claim": "software", "read_only": True},
                {"path": "/scratch", "scratch_gib": 500, "roles": ["worker"]},
                {"path": "/dev/shm", "memory_gib": 64, "roles": ["worker"]},
                {"path": "/var/spool/slurmd", "scratch_gib": 50, "roles": ["worker"]},
            ],
            "isolation": {"pid": True, "ipc": True},
        },
        "slurm": {
            "max_nodes": 256,
            "extra": {"SchedulerParameters": "bf_continue", "KillWait": 120, "MailProg": "/usr/bin/my mail"},
        },
    },
    "gpus": {
        "node_sets": [
            {
                "name": "h100",
                "cpus": 192,
                "sockets": 2,
                "cores_per_socket": 48,
                "threads_per_core": 2,
                "memory_gib": 1920,
                "gpus": {"count": 8, "type": "h100"},
                "rdma": {"resource": "rdma/hca_shared_devices_a"},
                "partitions": ["main", "h100"],
                "environment": {"NCCL_DEBUG": "WARN"},
            },
            {"name": "mig", "cpus": 24, "memory_gib": 240, "gpus": {"mig": {"1g.10gb": 7}}, "partitions": ["small"]},
            {
                "name": "l4",
                "cpus": 32,
                "memory_gib": 128,
                "gpus": {"count": 4, "type": "l4", "shards_per_gpu": 8},
                "partitions": ["main", "small"],
            },
            {"name": "cpu", "cpus": 64, "memory_gib": 256},
        ],
        "partitions": [{"name": "h100", "options": {"DefMemPerNode": 100_000, "DefCpuPerGPU": 20}}],
    },
    "pods_smaller_than_nodes": {
        "slurm": {"constrain": "none", "extra": {"SlurmdParameters": "l3cache_as_socket"}},
        "node_sets": [
            {
                "name": "cpu",
                "cpus": 4,
                "memory_gib": 8,
                "pod_resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
            }
        ],
    },
}


def files(cluster: ClusterSpec) -> dict[str, str]:
    nodes = "".join(f"{node_set.name}: {node_conf(cluster, node_set)}\n" for node_set in cluster.node_sets)
    sessions = f"tree {tree_id(cluster)}\n{' '.join(login_arguments(cluster))}\n"
    rendered_part, _, _ = slurm_files(cluster)["job_submit.lua"].partition("\n\n")
    return {
        **slurm_files(cluster),
        "job_submit.lua": f"{rendered_part}\n",
        **user_files(cluster),
        "sshd_config": sshd_config(cluster),
        "nodes": nodes,
        "sessions": sessions,
    }


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_files_of_a_cluster_are_the_golden_ones(name: str) -> None:
    text = "".join(f"=== {file}\n{content}" for file, content in files(a_spec(**CLUSTERS[name])).items())
    golden = GOLDEN / f"{name}.conf"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()
