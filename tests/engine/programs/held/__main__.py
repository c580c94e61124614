"""A cluster without pods: what knows whose it is, and what is deleted first."""

import os
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pulumi_random as random

from soperator_pulumi import SlurmCluster, parse_cluster
from soperator_pulumi.cluster.drain_gates import create_drain_gate
from soperator_pulumi.cluster.network import create_network_policies
from soperator_pulumi.cluster.scope import DELETE_BEFORE_REPLACE, NOT_AWAITED, Scope, dependencies_of
from soperator_pulumi.lifecycle import DrainGate, KubernetesAccess

config = pulumi.Config()


class Cluster(SlurmCluster):
    """The first and the last resources of a cluster."""

    def __init__(self, name: str, description: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        spec, access = parse_cluster(description), KubernetesAccess()
        if config.get_bool("with_kubeconfig"):
            access = KubernetesAccess(Path(os.environ["KUBECONFIG"]).read_text())
        elif config.get("with_context"):
            access = KubernetesAccess(context=config.get("with_context"))
        pulumi.ComponentResource.__init__(self, "soperator-pulumi:index:SlurmCluster", name, {}, opts)
        scope = self._create_scope(name, spec, access, dependencies_of(opts))
        self.prerequisites = self._create_prerequisites(name, scope, spec, None)
        scope = self._create_namespace(name, scope.following(self.prerequisites), spec)
        everything: list[pulumi.Resource] = [
            *create_network_policies(name, scope, spec, self.prerequisites.api_servers).values()
        ]
        if config.get_bool("with_workers"):
            everything += workers(name, scope)
        create_drain_gate(name, scope, spec, everything)
        self.register_outputs({})


def workers(name: str, scope: Scope) -> list[pulumi.Resource]:
    """A StatefulSet whose pod waits for a machine that there is not, and its drain gate."""
    selector = scope.selector("worker", "cpu")
    # As a manifest: against the classes of Kubernetes a type checker would try for hours to fit it.
    spec: Any = {
        "service_name": "nodes",
        "selector": {"match_labels": selector},
        "template": {
            "metadata": {"labels": selector},
            "spec": {"nodeSelector": {"no-such": "machine"}, "containers": [{"name": "slurmd", "image": "none"}]},
        },
    }
    stateful_set = kubernetes.apps.v1.StatefulSet(
        f"{name}-cpu",
        metadata=scope.metadata("cpu", "worker", "cpu", NOT_AWAITED),
        spec=spec,
        opts=scope.options(DELETE_BEFORE_REPLACE),
    )
    gate = DrainGate(
        f"{name}-cpu-drain-gate",
        cluster=scope.connection("worker", "cpu"),
        node_set="cpu",
        policies={"cpu": {}},
        guards=stateful_set.id,
        opts=scope.options(depends_on=[stateful_set]),
    )
    return [stateful_set, gate]


def replacing(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Change, in whatever StatefulSet there is, a field because of which it is replaced, or its name."""
    if args.type_ != "kubernetes:apps/v1:StatefulSet":
        return None
    props: Any = args.props
    if service := config.get("other_service"):
        props = {**props, "spec": {**props["spec"], "service_name": service}}
    if name := config.get("other_name"):
        props["metadata"].name = name
    return pulumi.ResourceTransformationResult(props, args.opts)


class Platform(pulumi.ComponentResource):
    """A component that may hold a cluster."""

    def __init__(self) -> None:
        super().__init__("tests:index:Platform", "platform")
        self.register_outputs({})


images = dict.fromkeys(
    ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail"), "none"
)
described = {
    "images": images,
    "node_sets": [{"name": "cpu", "replicas": 0, "cpus": 1, "memory_gib": 1}],
    "storage": {"keep": False},
    "accounting": "none",
    **config.require_object("cluster"),
}
aliases = [pulumi.Alias(**item) for item in config.get_object("aliases") or []]
if config.get_bool("was_at_the_root"):
    aliases = [pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
parent = Platform() if config.get_bool("in_platform") else None
options = pulumi.ResourceOptions(
    parent=parent,
    aliases=aliases,
    depends_on=[random.RandomUuid("node-pool")],
    transformations=[replacing],
)
Cluster(config.require("component"), described, options)
