"""A Slurm cluster inside a larger program, which makes the namespace, the volumes and the provider itself.

The cluster is created after all that it is given, and deleted before: after its last job has ended.
"""

import pulumi
import pulumi_kubernetes as kubernetes

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")
kubeconfig = config.require_secret("kubeconfig")
name = f"research-{pulumi.get_stack()}"
protect = config.get_bool("protect", default=True)

provider = kubernetes.Provider("research", kubeconfig=kubeconfig)
namespace = kubernetes.core.v1.Namespace(
    "research",
    metadata={
        "name": name,
        # Jobs are moved into the jail by SYS_ADMIN, which the other levels forbid. No container is privileged.
        "labels": {"team": "research", "pod-security.kubernetes.io/enforce": "privileged"},
        "annotations": {"soperator-pulumi/privileged-because": "SYS_ADMIN moves jobs into the jail"},
    },
    opts=pulumi.ResourceOptions(provider=provider, protect=protect),  # its volumes would leave with it
)


def claim(volume: str, size_gib: int) -> kubernetes.core.v1.PersistentVolumeClaim:
    """Return a shared volume of the team, of the class that the stack names."""
    return kubernetes.core.v1.PersistentVolumeClaim(
        volume,
        metadata={
            "name": volume,
            "namespace": namespace.metadata.name,
            "annotations": {"pulumi.com/skipAwait": "true"},  # many classes bind a claim to its first pod
        },
        spec={
            "access_modes": ["ReadWriteMany"],
            "storage_class_name": config.get("storage-class"),
            "resources": {"requests": {"storage": f"{size_gib}Gi"}},
        },
        opts=pulumi.ResourceOptions(provider=provider, protect=protect),
    )


root_and_homes = claim("root-and-homes", config.get_int("homes-gib", 100))
datasets = claim("datasets", config.get_int("datasets-gib", 500))

cluster = SlurmCluster(
    "hpc",
    config.require_object("cluster"),
    # The cluster acts on Slurm itself, so it needs the kubeconfig of its provider as well.
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[namespace]),
    kubeconfig=kubeconfig,
    namespace=name,
    create_namespace=False,
    node_sets=[
        {
            "name": "cpu",
            "cpus": 2,
            "memory_gib": 2,
            "pod_resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
        }
    ],
    jail={
        "source": {"image": config.get("root-image", "docker.io/library/debian:13")},
        "storage": {"existing_claim": root_and_homes.metadata.name},
        "submounts": [{"path": "/data", "existing_claim": datasets.metadata.name}],
    },
)

# An object of the program's own: with an output of the cluster, it is created after that.
kubernetes.core.v1.ConfigMap(
    "how-to-log-in",
    metadata={"name": "how-to-log-in", "namespace": cluster.namespace_name},
    data={"endpoint": cluster.login.endpoint, "host-key": cluster.login.host_public_key},
    opts=pulumi.ResourceOptions(provider=provider),
)

pulumi.export("namespace", cluster.namespace_name)
pulumi.export("login", cluster.login.endpoint)
