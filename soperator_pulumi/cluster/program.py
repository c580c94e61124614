"""The clusters of one program: their names tell them apart where a person speaks of one of them."""

from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import get_root_resource

from soperator_pulumi.cluster.errors import ClusterArgumentsError

_named: WeakKeyDictionary[pulumi.Resource, dict[str, str]] = WeakKeyDictionary()
"""The component of each name of a cluster, by the stack whose program runs."""


def take_name(cluster: str, component: str) -> None:
    """Take a cluster's name for a component, in the program that runs.

    Two clusters of one name would both be meant by SOPERATOR_CONTROLLER_LOST and SOPERATOR_DRAIN.

    Raises:
        ClusterArgumentsError: another component has it.
    """
    stack = get_root_resource()
    if stack is None:
        return
    names = _named.setdefault(stack, {})
    if cluster in names:
        raise ClusterArgumentsError(
            f'SlurmCluster {component!r}: name: got "{cluster}", which is also the name of SlurmCluster '
            f"{names[cluster]!r}. Clusters of one program need distinct names, as what is set for one run names the "
            "cluster that it is for. "
            "Their namespaces may be called as you like (namespace)."
        )
    names[cluster] = component
