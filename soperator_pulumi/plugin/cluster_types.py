"""Inputs and outputs of `SlurmCluster` in other languages, as typed dictionaries."""

from typing import TypedDict

import pulumi

from soperator_pulumi.lifecycle.connection import AccessArgs
from soperator_pulumi.plugin.property_types import ComponentType, dictionary_type
from soperator_pulumi.spec.args import ClusterArgs, ProvidedArgs
from soperator_pulumi.spec.cluster import ClusterSpec


class RemoteClusterArgs(ClusterArgs, AccessArgs, total=False):
    """Arguments of `SlurmCluster`, from modules that load no resources, so that the schema is quick to produce."""

    platform: ProvidedArgs
    """Outputs of the platform below the cluster, used as defaults by the node sets and the jail's volume. Name the
    component in `dependsOn`, too."""


class RemoteClusterOutputs(TypedDict):
    """Outputs of `SlurmCluster`."""

    namespace_name: pulumi.Output[str]
    """Name of the namespace, known once it exists: give it to your own objects in the namespace."""
    jail_tree: pulumi.Output[str]
    """Id of the tree that new jobs and sessions enter. `jail.active` takes it to switch back."""
    login_endpoint: pulumi.Output[str]
    """`host:port` of ssh: the load balancer's address, `:port` of every machine (NodePort), or the Service's address
    inside Kubernetes."""
    login_pool_endpoints: pulumi.Output[dict[str, str]]
    """`host:port` of ssh of every login pool, by its name in `login.pools`."""
    login_host_public_key: pulumi.Output[str]
    """`ssh-ed25519 AAAA...`: the key of all login nodes, for known_hosts."""
    login_host_key_fingerprint: pulumi.Output[str]
    """`SHA256:...`, as ssh shows it at the first login."""
    jail_claim_name: pulumi.Output[str]
    """Name of the claim with the trees and the home directories."""
    state_claim_name: pulumi.Output[str]
    """Name of the claim with slurmctld's state."""


INPUTS = dictionary_type(RemoteClusterArgs)
OUTPUTS = dictionary_type(RemoteClusterOutputs)
REQUIRED = frozenset(name for name, field in ClusterSpec.model_fields.items() if field.is_required()) - {"name"}
"""Inputs that a program must give. A cluster's name defaults to that of its component."""

CLUSTER = ComponentType(
    "SlurmCluster",
    "A Slurm cluster on Kubernetes, in a namespace of its own: slurmctld, login nodes, node sets, and the root "
    "filesystem of all jobs and logins. A change of `replicas` drains surplus nodes and waits for their jobs before "
    "Kubernetes deletes a pod.",
    INPUTS,
    OUTPUTS,
    REQUIRED,
)
