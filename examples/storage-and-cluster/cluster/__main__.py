"""A Slurm cluster on the volumes of the stack of the same name in `../storage`."""

import pulumi

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")
stack = pulumi.get_stack()
storage = pulumi.StackReference(f"{pulumi.get_organization()}/hpc-storage/{stack}")

cluster = SlurmCluster(
    "hpc",
    config.require_object("cluster"),
    # A namespace is plain text, as objects are found by it in a preview: both projects make it of the stack's name.
    namespace=f"hpc-{stack}",
    create_namespace=False,
    jail={
        "source": {"image": config.get("root-image", "docker.io/library/debian:13")},
        "storage": {"existing_claim": storage.require_output("jail")},
    },
    storage={"state": {"existing_claim": storage.require_output("state")}},
    accounting={"database": {"own": {"storage": {"existing_claim": storage.require_output("database")}}}},
    node_sets=[
        {
            "name": "cpu",
            "cpus": 2,
            "memory_gib": 2,
            "pod_resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
        }
    ],
)

pulumi.export("namespace", storage.require_output("namespace"))
pulumi.export("login", cluster.login.endpoint)
