"""Namespace and volumes of a Slurm cluster, for the stack of the same name in `../cluster`."""

import pulumi
import pulumi_kubernetes as kubernetes

config = pulumi.Config("hpc-storage")
keep = config.get_bool("keep", default=True)
name = f"hpc-{pulumi.get_stack()}"

namespace = kubernetes.core.v1.Namespace(
    "hpc",
    metadata={
        "name": name,
        # Jobs are moved into the jail by SYS_ADMIN, which the other levels forbid. No container is privileged.
        "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        "annotations": {"soperator-pulumi/privileged-because": "SYS_ADMIN moves jobs into the jail"},
    },
    opts=pulumi.ResourceOptions(protect=keep, retain_on_delete=keep),
)


def claim(volume: str, size_gib: int, access_mode: str) -> pulumi.Output[str]:
    """Make a volume that is kept, and return the name of its claim."""
    made = kubernetes.core.v1.PersistentVolumeClaim(
        volume,
        metadata={
            "name": volume,
            "namespace": namespace.metadata.name,
            "annotations": {"pulumi.com/skipAwait": "true"},  # many classes bind a claim to its first pod
        },
        spec={
            "access_modes": [access_mode],
            "storage_class_name": config.get("storage-class"),
            "resources": {"requests": {"storage": f"{size_gib}Gi"}},
        },
        opts=pulumi.ResourceOptions(protect=keep, retain_on_delete=keep),
    )
    return made.metadata.apply(lambda metadata: str(metadata.name))


pulumi.export("namespace", namespace.metadata.name)
pulumi.export("jail", claim("jail", config.get_int("jail-gib", 100), "ReadWriteMany"))
pulumi.export("state", claim("slurmctld-state", config.get_int("state-gib", 10), "ReadWriteOnce"))
pulumi.export("database", claim("database", config.get_int("database-gib", 20), "ReadWriteOnce"))
