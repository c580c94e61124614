"""One Slurm cluster, all of it in the stack's file: a commit changes it, and `stack.yaml` deploys each commit."""

import pulumi

from soperator_pulumi import SlurmCluster

config = pulumi.Config("soperator")
cluster = SlurmCluster("hpc", config.require_object("cluster"))

pulumi.export("namespace", cluster.namespace_name)
pulumi.export("login", cluster.login.endpoint)
