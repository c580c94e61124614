"""Custom resources of soperator: a SlurmCluster with its NodeSets, as `kubectl get -o yaml` and Helm write them."""

from collections.abc import Sequence

from soperator_pulumi.convert import rules
from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.kubernetes_objects import OBJECT_RULES, account_for_others, only_one
from soperator_pulumi.convert.pod_parts import pull_settings
from soperator_pulumi.convert.rules import Rule, cannot, needless
from soperator_pulumi.convert.soperator_cluster import convert_cluster
from soperator_pulumi.convert.soperator_node_sets import NODE_SET_RULES, SourceNodeSet
from soperator_pulumi.convert.soperator_releases import check_release, node_set_defaults
from soperator_pulumi.convert.soperator_rules import CLUSTER_DEFAULTS, CLUSTER_RULES
from soperator_pulumi.convert.sources import Source, SourceKind
from soperator_pulumi.convert.yaml_tree import Section, defaults, overlaid

_CLUSTER = "SlurmCluster"
_NODE_SET = "NodeSet"

_CLUSTER_RULES: tuple[Rule, ...] = (
    *needless("release of soperator that wrote the resource", "crVersion"),
    *CLUSTER_RULES,
)

_NODE_SET_RULES: tuple[Rule, ...] = (
    *cannot("resources here are CPU and memory", "slurmd.resources.ephemeral-storage"),
    *NODE_SET_RULES,
)

_OTHER_KINDS = {
    "ActiveCheck": "active health checks are not supported yet",
    "JailedConfig": "files of the jail come with its image; slurm.conf is rendered",
    "NodeConfigurator": "configuration of machines is not part of a cluster here",
    "NodeSetPowerState": "nodes that Slurm starts and stops are not supported yet",
}


def convert_soperator_resources(work: Conversion, sources: Sequence[Source]) -> None:
    """Convert the cluster that soperator's custom resources describe.

    Args:
        work: The conversion.
        sources: The resources, which may include other Kubernetes objects.

    Raises:
        ConversionError: There are two clusters.
    """
    own = [source for source in sources if source.kind is SourceKind.SOPERATOR_RESOURCE]
    cluster = only_one(own, _CLUSTER)
    node_sets = [source.root for source in own if source.resource == _NODE_SET]
    given = cluster.root if cluster is not None else Section(None)
    version = given.at("spec", "crVersion").text()
    if cluster is not None:
        check_release(work, given.at("spec"), version, cluster.path.rstrip(": "))
    spec = _over(given, CLUSTER_DEFAULTS)
    items = [
        SourceNodeSet(node_set.at("metadata", "name"), _over(node_set, node_set_defaults(version)))
        for node_set in node_sets
    ]
    convert_cluster(work, spec, given.at("metadata", "name"), items)
    _put_pull_settings(work, spec, [item.spec for item in items])
    if cluster is None:
        work.require(work.stack, "name", "the input has no SlurmCluster to take it from")
    rules.apply(work, spec, [*given.at("spec").leaves(), *spec.leaves()], 1, _CLUSTER_RULES)
    for item, node_set in zip(items, node_sets, strict=True):
        rules.apply(work, item.spec, [*node_set.at("spec").leaves(), *item.spec.leaves()], 1, _NODE_SET_RULES)
    for tree in (given, *node_sets):
        rules.apply(work, tree, tree.leaves(), 0, OBJECT_RULES)
    account_for_others(work, sources, _OTHER_KINDS)


def _over(resource: Section, custom_resource: object) -> Section:
    spec = resource.at("spec")
    return Section(overlaid(defaults(custom_resource, ("spec",), spec.path), spec.tree), spec.path)


def _put_pull_settings(work: Conversion, cluster: Section, node_sets: Sequence[Section]) -> None:
    nodes = cluster.at("slurmNodes")
    containers = [nodes.at(*keys) for keys in (("controller", "slurmctld"), ("login", "sshd"), ("controller", "munge"))]
    containers += [nodes.at("login", "munge"), cluster.at("populateJail")]
    images = [node_set.at(name, "image") for node_set in node_sets for name in ("slurmd", "munge")]
    pull_settings(
        work,
        [*(container.at("imagePullPolicy") for container in containers), *(image.at("pullPolicy") for image in images)],
        [container.at("imagePullSecrets") for container in [*containers, *node_sets]],
    )
