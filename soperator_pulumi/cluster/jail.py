"""The jail: the root filesystem that all jobs and sessions share. A claim holds its trees, one of which is active."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.batch.v1 import Job

from soperator_pulumi.cluster.jail_pods import POPULATE, SWITCH, populate_job, switch_template
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.cluster.storage import JAIL_CLAIM, Claim, create_claim
from soperator_pulumi.lifecycle import ActiveTree, TreePopulated
from soperator_pulumi.render.jail import active_tree, source_name, tree_id
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.storage_findings import StorageProperty


class Jail(pulumi.ComponentResource):
    """The claim with the trees, and the Job that fills the tree of the spec's source.

    Trees are data: a changed source fills another tree, and the first one stays. `SlurmCluster.active_tree`
    switches to it once slurmctld and the login nodes answer, and removes old trees.
    """

    claim: Claim
    """The claim with the trees, the homes and other shared files (ReadWriteMany)."""

    job: Job
    """The Job that fills the tree. Pulumi does not wait for its end; `populated` does."""

    populated: TreePopulated
    """Waits until the tree is complete, with progress, and reports the reason of a failure."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        spec: ClusterSpec,
        before_pods: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Create the claim, and the Job that fills the tree.

        Args:
            name: Name of the component.
            scope: Scope of the cluster's children.
            spec: The cluster.
            before_pods: Resources that precede the Job. The claim does not wait for them, or a destroy that keeps the
                claim would keep them as well.
            opts: Options of the component.
        """
        super().__init__("soperator-pulumi:index:Jail", name, {}, opts)
        own = scope.within(self)
        self.claim = create_claim(name, own, spec.jail.storage, JAIL_CLAIM, "ReadWriteMany", keep=spec.storage.keep)
        filling = own.behind(*before_pods, *self.claim.created)
        job = f"{POPULATE}-{tree_id(spec)}"
        self.job = Job(
            # One resource a tree: a run that goes back to an earlier source finds its Job as it left it.
            f"{name}-populate-{tree_id(spec)}",
            metadata=filling.metadata(job, POPULATE, annotations=NOT_AWAITED),
            spec=populate_job(filling, spec, self.claim),
            opts=filling.options(),
        )
        self.populated = TreePopulated(
            f"{name}-populated",
            cluster=own.connection(),
            job=job,
            tree=tree_id(spec),
            source=source_name(spec),
            claim=self.claim.name,
            timeout_seconds=spec.ready_timeout_seconds,
            keep=spec.storage.keep or spec.jail.storage.existing_claim is not None,
            accepted=spec.jail.storage.accept.get(StorageProperty.EMPTIED, ""),
            opts=filling.options(depends_on=[self.job]),
        )
        self.register_outputs({})


def create_active_tree(name: str, scope: Scope, spec: ClusterSpec, claim: Claim) -> ActiveTree:
    """Create the switch to the spec's tree. It asks slurmctld and the login nodes which trees are in use."""
    template = switch_template(scope, spec, claim)
    return ActiveTree(
        f"{name}-active-tree",
        cluster=scope.connection(),
        tree=active_tree(spec),
        populated=tree_id(spec),
        source=source_name(spec),
        keep_trees=spec.jail.keep_trees,
        changes=spec.jail.changes,
        timeout_seconds=spec.ready_timeout_seconds,
        labels=scope.object_labels(SWITCH),
        annotations=scope.annotations,
        template={"metadata": template.metadata, "spec": template.spec},
        opts=scope.options(),
    )
