"""A cluster without pods: what knows whose it is, and what is deleted first."""

from typing import Any

import pulumi

from soperator_pulumi import SlurmCluster, parse_cluster
from soperator_pulumi.cluster.leaving import create_drain_gate
from soperator_pulumi.cluster.namespace import create_namespace
from soperator_pulumi.cluster.network import create_network_policies
from soperator_pulumi.lifecycle import Connection

config = pulumi.Config()


class Cluster(SlurmCluster):
    """The first and the last resources of a cluster."""

    def __init__(self, name: str, description: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        spec, connection = parse_cluster(description), Connection()
        pulumi.ComponentResource.__init__(self, "soperator-pulumi:index:SlurmCluster", name, {}, opts)
        scope = self._surroundings(name, spec, connection)
        self.prerequisites = self._check_prerequisites(name, scope, spec, connection)
        scope = create_namespace(name, scope.following(self.prerequisites), spec)
        policies = create_network_policies(name, scope, spec)
        create_drain_gate(name, scope, spec, connection, policies)
        self.register_outputs({})


class Platform(pulumi.ComponentResource):
    """What a cluster may be a part of."""

    def __init__(self) -> None:
        super().__init__("tests:index:Platform", "platform")
        self.register_outputs({})


images = dict.fromkeys(("controller", "worker", "login", "munge", "jail_tools", "jail"), "none")
described = {
    "images": images,
    "node_sets": [{"name": "cpu", "replicas": 0, "cpus": 1, "memory_gib": 1}],
    "storage": {"keep": False},
    **config.require_object("cluster"),
}
aliases = [pulumi.Alias(**each) for each in config.get_object("aliases") or []]
if config.get_bool("was_at_the_root"):
    aliases = [pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
parent = Platform() if config.get_bool("in_platform") else None
Cluster(config.require("component"), described, pulumi.ResourceOptions(parent=parent, aliases=aliases))
