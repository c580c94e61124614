"""The resource after the Job that fills a tree of the jail: up to date when the tree is complete and verified."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import JailError
from soperator_pulumi.kube.verbs import config_map_path
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.batch_jobs import STUCK_SECONDS, JobFollower
from soperator_pulumi.operations.jail.trees import how_much, result_of
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report
from soperator_pulumi.render.layout import JAIL_FILLED

CONTAINER = "populate"
"""Container of the Job that fills the tree."""


class TreePopulatedInputs(ClusterRef):
    """The tree that the Job fills."""

    job: str
    tree: str
    source: str
    """Image or tarball from which the tree is filled, as the user named it."""
    claim: str
    """Claim that holds the tree."""
    timeout_seconds: float = STUCK_SECONDS
    """Time for the Job's pod to get a machine and an image, in seconds. Older states have no value."""
    keep: bool | None = None
    """False if the claim goes with the cluster. Older states have no value, so that the next run tells of the tree."""
    accepted: str = ""
    """Reason for which a claim that has lost its contents is filled again."""


class TreePopulatedProvider(LiveProvider):
    """Wait on create and update, and tell later fillings that there was one. Delete removes no tree: trees are data."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the filled tree with the wanted one. A tree that was complete once is not read again."""
        return DiffResult(changes=has_unknown(news) or _filled(olds) != _filled(news))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the tree."""
        self._wait(props)
        return CreateResult(f"{props['namespace']}/{props['tree']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the tree."""
        self._wait(news)
        return UpdateResult({**news})

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        """Forget the filling of a claim that goes with the cluster."""
        inputs = TreePopulatedInputs.model_validate(props)
        if inputs.keep is False:
            self.kube(props).delete(config_map_path(inputs.namespace, JAIL_FILLED))

    def _wait(self, props: dict[str, Any]) -> None:
        """Follow the Job to its end, and record it."""
        inputs = TreePopulatedInputs.model_validate(props)
        job = JobFollower(
            self.kube(props),
            namespace=inputs.namespace,
            name=inputs.job,
            container=CONTAINER,
            prefix="jail",
            report=report,
            clock=MachineClock(),
            stuck_seconds=inputs.timeout_seconds,
            advice="If machines or images take longer, raise ready_timeout_seconds; if no machine has room for "
            "it, lower jail.populate.pod_resources.",
        )
        outcome = job.end_afresh()
        if outcome.failure:
            raise JailError(
                f"jail: the tree {inputs.tree} was not filled from {inputs.source}: {outcome.failure}\n"
                "No job and no login has entered it. Fix the problems above, in the spec or at the source, and run "
                "again: filling continues where it stopped."
            )
        report(f"jail: {inputs.source} is tree {inputs.tree}{how_much(result_of(outcome.log))}")
        at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        filled = f"tree {inputs.tree} from {inputs.source}, on the claim {inputs.claim}, {at}"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": JAIL_FILLED, "namespace": inputs.namespace, "labels": {**inputs.selector}},
            "data": {JAIL_FILLED: filled},
        }
        self.kube(props).apply(config_map_path(inputs.namespace, JAIL_FILLED), body)


def _filled(props: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the inputs that decide the tree's place and source, and what is recorded of it."""
    inputs = TreePopulatedInputs.model_validate(props)
    return inputs.namespace, inputs.job, inputs.tree, inputs.source, inputs.claim, inputs.keep, inputs.accepted


class TreePopulated(LiveResource, module="soperator", name="TreePopulated"):
    """A tree of the jail that is complete and verified."""

    tree: pulumi.Output[str]
    """Name of the tree."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        job: str,
        tree: str,
        source: str,
        claim: pulumi.Input[str],
        timeout_seconds: int,
        keep: bool,
        accepted: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster.
            job: Name of the Job that fills the tree.
            tree: Id of the tree.
            source: Image or tarball from which it is filled, for messages.
            claim: Name of the claim that holds it.
            timeout_seconds: Time for the Job's pod to get a machine and an image.
            keep: True if the claim outlives the cluster.
            accepted: Reason for which a claim that has lost its contents is filled again.
            opts: Options of the resource.
        """
        inputs = {
            "job": job,
            "tree": tree,
            "source": source,
            "claim": claim,
            "timeout_seconds": timeout_seconds,
            "keep": keep,
            "accepted": accepted,
        }
        super().__init__(TreePopulatedProvider(), resource_name, cluster, inputs, opts)
