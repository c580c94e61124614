"""The resource that makes new jobs and logins enter the wanted tree of the jail. It follows all other resources.

`operations.jail` does the work. The diff compares with the live jail.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import BeforeValidator

from soperator_pulumi.errors import JailError, KubernetesError, TransportError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.batch_jobs import STUCK_SECONDS
from soperator_pulumi.operations.jail.live_jail import LiveJail
from soperator_pulumi.operations.jail.trees import Tree, active_of, emptied, find_tree
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report


def _whole(value: Any) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with whole numbers as integers: Pulumi sends floats, which Kubernetes rejects."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ActiveTreeInputs(ClusterRef):
    """The tree that is to be active, and how many others to keep. Numbers arrive as floats."""

    tree: str
    populated: str
    """The tree that this deployment fills."""
    source: str
    """Image or tarball that fills it."""
    keep_trees: int
    changes: str
    timeout_seconds: float = STUCK_SECONDS
    """Time for the pods that work on the trees to get a machine and an image. Older states have no value."""
    labels: dict[str, str]
    annotations: dict[str, str]
    template: Annotated[dict[str, Any], BeforeValidator(_whole)]


class ActiveTreeProvider(PinnedProvider):
    """Switch trees on create and update. Delete removes the Jobs that worked on trees, but no tree."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live jail, and report the coming switch: the active tree and the next one."""
        if has_unknown(news):
            return DiffResult(changes=True)
        inputs = ActiveTreeInputs.model_validate(news)
        if inputs.namespace != ClusterRef.model_validate(olds).namespace:
            return DiffResult(changes=True, replaces=["namespace"])
        try:
            trees = self._jail(news, inputs).trees()
        except (JailError, KubernetesError, TransportError) as error:
            report(f"jail: cannot read which tree is active: {error}")
            return DiffResult(changes=True)
        active = active_of(trees)
        if not trees:
            report(emptied(ActiveTreeInputs.model_validate(olds).tree))
        if active is not None and active.tree == inputs.tree:
            return DiffResult(changes=_kept(olds) != _kept(news))
        report(f"jail: {active or 'no tree'} -> {_next(inputs, trees)}")
        return DiffResult(changes=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Switch, unless the wanted tree is active already: the first tree becomes active when it is filled."""
        self._put(props)
        return CreateResult(f"{props['namespace']}/jail", {**props})

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Switch, then remove old trees."""
        self._put(news, before=olds)
        return UpdateResult({**news})

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """End the Jobs that still work on the trees. The trees are data and stay."""
        self.recorded_kube(props)
        jail = self._jail(props, ActiveTreeInputs.model_validate(props))
        jail.remove_work()

    def _put(self, props: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> None:
        inputs = ActiveTreeInputs.model_validate(props)
        jail = self._jail(props, inputs)
        jail.finish_others()
        trees = jail.trees()
        if not trees and before is not None:
            raise JailError(emptied(ActiveTreeInputs.model_validate(before).tree))
        to, active = find_tree(trees, inputs.tree), active_of(trees)
        if not to.active:
            if before is None:  # otherwise the diff has reported it
                report(f"jail: {active or 'no tree'} -> {to}")
            jail.switch(to, inputs.changes)
            if not find_tree(jail.trees(), inputs.tree).active:
                raise JailError(f"jail: after the switch to {to}, another run switched to another tree. Run again.")
            report(f"jail: new jobs enter {to}")
        jail.await_logins(inputs.tree)
        if not to.active or (before is not None and _kept(before) != _kept(props)):
            jail.collect(inputs.keep_trees)

    def _jail(self, props: Mapping[str, Any], inputs: ActiveTreeInputs) -> LiveJail:
        return LiveJail(
            self.kube(props),
            namespace=inputs.namespace,
            selector=inputs.selector,
            labels=inputs.labels,
            annotations=inputs.annotations,
            template=inputs.template,
            report=report,
            clock=MachineClock(),
            stuck_seconds=inputs.timeout_seconds,
        )


def _kept(props: Mapping[str, Any]) -> tuple[str, int]:
    """Return the inputs that decide which trees to keep: after a change of them, old trees are removed."""
    return props["tree"], int(props["keep_trees"])


def _next(inputs: ActiveTreeInputs, trees: tuple[Tree, ...]) -> Tree:
    """Return the wanted tree. Only a tree that this deployment fills may be missing.

    Raises:
        JailError: the tree does not exist; the message lists those that do.
    """
    if inputs.tree == inputs.populated:
        return Tree(tree=inputs.tree, source=inputs.source)
    return find_tree(trees, inputs.tree)


class ActiveTree(LiveResource, module="soperator", name="ActiveTree"):
    """The tree of the jail that new jobs and logins enter."""

    tree: pulumi.Output[str]
    """Name of the active tree."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        tree: str,
        populated: str,
        source: str,
        keep_trees: int,
        changes: str,
        timeout_seconds: int,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        template: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "tree": tree,
            "populated": populated,
            "source": source,
            "keep_trees": keep_trees,
            "changes": changes,
            "timeout_seconds": timeout_seconds,
            "labels": {**labels},
            "annotations": {**annotations},
            "template": {**template},
        }
        super().__init__(ActiveTreeProvider(), resource_name, cluster, inputs, opts)
