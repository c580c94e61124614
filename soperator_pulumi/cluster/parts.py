"""What the components of a cluster are made from."""

from dataclasses import dataclass

from soperator_pulumi.cluster.secrets import Keys
from soperator_pulumi.cluster.storage import Claims
from soperator_pulumi.lifecycle import Connection
from soperator_pulumi.spec import ClusterSpec


@dataclass(frozen=True)
class Parts:
    """What all components of one cluster share besides their surroundings."""

    spec: ClusterSpec
    keys: Keys
    claims: Claims
    connection: Connection
