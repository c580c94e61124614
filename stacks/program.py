"""Program of every stack: one SlurmCluster from the stack's configuration."""

import gc

import pulumi

from soperator_pulumi import SlurmCluster


def run() -> None:
    """Create the cluster of `soperator:cluster`, and export how to reach it.

    `soperator:local`, in the stack of a cluster on this machine, adds the images built here and the key of
    `make ssh` (`stacks/this_machine.py`). `soperator:kubeconfig` and `soperator:context` choose the Kubernetes;
    the default is the ambient one, as for every Kubernetes tool.
    """
    gc.freeze()  # modules stay: a last collection of them all, before the end, would take a third of a second
    config = pulumi.Config("soperator")
    cluster = config.require_object("cluster")
    if (settings := config.get_object("local")) is not None:
        from stacks import this_machine  # noqa: PLC0415 - no other stack waits for the tools

        cluster = this_machine.complete(cluster, settings)
        pulumi.export("login_user", settings["user"])

    slurm = SlurmCluster(
        cluster.get("name", "slurm") if isinstance(cluster, dict) else "slurm",
        cluster,
        kubeconfig=config.get_secret("kubeconfig"),
        context=config.get("context"),
    )
    pulumi.export("namespace", slurm.namespace_name)
    pulumi.export("jail_tree", slurm.jail_tree)
    pulumi.export("login_host_key", slurm.login.host_public_key)
    pulumi.export("login_host_key_fingerprint", slurm.login.host_key_fingerprint)
    pulumi.export("login_endpoint", slurm.login.endpoint)
