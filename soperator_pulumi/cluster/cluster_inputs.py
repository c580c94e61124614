"""What the components of a cluster are made from."""

from dataclasses import dataclass

from soperator_pulumi.cluster.secrets import Keys
from soperator_pulumi.cluster.storage import Claim
from soperator_pulumi.spec.cluster import ClusterSpec


@dataclass(frozen=True)
class Parts:
    """What all components of one cluster share besides their surroundings."""

    spec: ClusterSpec
    keys: Keys
    jail: Claim
    """ReadWriteMany, with the jail's trees, the homes and what else is shared."""
    state: Claim
    """ReadWriteOnce, with slurmctld's state."""
