"""The jail: the root filesystem that all jobs and sessions share, as trees in one claim, of which one is active."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.batch.v1 import Job

from soperator_pulumi.cluster.populate import POPULATE, SWITCH, populate_job, switch_template
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.cluster.storage import JAIL_CLAIM, Claim, create_claim
from soperator_pulumi.lifecycle import ActiveTree, TreePopulated
from soperator_pulumi.render.jail import active_tree, source_name, tree_id
from soperator_pulumi.spec.cluster import ClusterSpec


class Jail(pulumi.ComponentResource):
    """The claim with the trees, the Job that fills the tree of the spec's source, and later the active tree.

    Trees are data: a changed source fills another tree beside the first, and only `collect` takes old ones away.
    """

    claim: Claim
    """ReadWriteMany: the trees, and outside of them homes and what else is shared."""

    job: Job
    """Fills the tree. It has an end: what waits for it is `populated`."""

    populated: TreePopulated
    """Waits until the tree is whole, shows how far it is, and says why it is not."""

    active: ActiveTree
    """Makes the tree the one that new jobs and sessions enter. There after `activate`."""

    tree: pulumi.Output[str]
    """Id of the active tree. There after `activate`."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        spec: ClusterSpec,
        before_pods: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Create the claim, and what fills the tree.

        Args:
            name: Name of the component.
            scope: The cluster's surroundings.
            spec: The cluster.
            before_pods: What must be there before a pod of the jail's is. The claim does not wait for it, or a destroy
                that keeps the claim would keep that as well.
            opts: Options of the component.
        """
        super().__init__("soperator-pulumi:index:Jail", name, {}, opts)
        own = scope.within(self)
        self._name, self._spec = name, spec
        self.claim = create_claim(name, own, spec.jail.storage, JAIL_CLAIM, "ReadWriteMany", keep=spec.storage.keep)
        filling = own.following(*before_pods, *self.claim.created)
        job = f"{POPULATE}-{tree_id(spec)}"
        self.job = Job(
            # One resource a tree: a run that goes back to a source, after one that failed, finds its Job as it left it.
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
            opts=filling.options(depends_on=[self.job]),
        )
        self.register_outputs({})

    def activate(self, scope: Scope) -> None:
        """Create what switches trees, as the last one: it asks slurmctld and the login nodes which trees are in use."""
        spec, own = self._spec, scope.within(self)
        template = switch_template(own, spec, self.claim)
        self.active = ActiveTree(
            f"{self._name}-active",
            cluster=own.connection(),
            tree=active_tree(spec),
            populated=tree_id(spec),
            source=source_name(spec),
            keep_trees=spec.jail.keep_trees,
            changes=spec.jail.changes,
            labels=own.object_labels(SWITCH),
            annotations=own.annotations,
            template={"metadata": template.metadata, "spec": template.spec},
            opts=own.options(),
        )
        self.tree = self.active.tree
