"""A Slurm cluster on the platform of the stack of the same name in `../platform`."""

import pulumi

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")
stack = pulumi.get_stack()
platform = pulumi.StackReference(f"{pulumi.get_organization()}/hpc-platform/{stack}")

cluster = SlurmCluster(
    "hpc",
    config.require_object("cluster"),
    namespace=f"hpc-{stack}",
    jail={"source": {"image": config.get("root-image", "docker.io/library/debian:13")}},
    platform={"storage_class": platform.require_output("storage_class")},
    node_sets=[
        {
            "name": "cpu",
            "cpus": 2,
            "memory_gib": 2,
            "pod_resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}},
        },
        # Names of resources and of the runtime class are plain text in the configuration: they decide how pods look.
        *config.get_object("gpu-nodes", []),
    ],
)

pulumi.export("namespace", cluster.namespace_name)
pulumi.export("login", cluster.login.endpoint)
