"""The resource before Slurm's files: node sets that are no longer wanted are free before their partitions go."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import KubernetesError, SlurmError, SpecError, TransportError
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.drain_override import policy_of
from soperator_pulumi.lifecycle.draining import Draining
from soperator_pulumi.lifecycle.emptying import Emptied, empty
from soperator_pulumi.lifecycle.kube import Kube
from soperator_pulumi.lifecycle.live_node_set import find_node_sets
from soperator_pulumi.lifecycle.progress import MachineClock, say
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.slurm.marker import Operation

_FORMER = "former"


class RemovedNodeSetsProvider(LiveProvider):
    """Drain on update the live node sets that are not wanted. Create and delete do nothing."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuse what the environment says of drains, if it is bad: once for the cluster, and before anything else."""
        try:
            for policy in [None, *news["policies"].values()]:
                policy_of(policy)
        except SpecError as error:
            return CheckResult(news, [CheckFailure("", str(error))])
        return CheckResult(news, [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare with the live node sets, and print what will happen to those that are not wanted."""
        if has_unknown(news):
            return DiffResult(changes=True)
        wanted, recorded = Emptied.of(news, olds), Emptied.model_validate(olds)
        try:
            kube = self.kube(news)
            wanted.uid(kube)
            removed = self._preview(kube, wanted, _former(olds))
        except KubernetesError as error:
            say(f"{wanted.cluster}: its node sets cannot be looked at: {error}")
            removed = True
        return DiffResult(changes=removed or wanted != recorded)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Free what is not wanted: the cluster may be older than this resource."""
        return CreateResult(f"{props['namespace']}/removed-node-sets", self._free(props, None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Free what is not wanted."""
        return UpdateResult(self._free(news, olds))

    def _preview(self, kube: Kube, wanted: Emptied, former: Mapping[str, Any]) -> bool:
        found = {name: each for name, each in find_node_sets(kube, wanted).items() if name not in wanted.policies}
        leaving = [each.leaving(policy_of(former.get(name)), 0) for name, each in found.items() if each.names()]
        if not leaving:
            return False
        try:
            lines = Draining.at(kube, wanted, say, MachineClock()).preview(leaving, Operation.REMOVAL)
        except (SlurmError, TransportError) as error:
            removed = ", ".join(each.node_set for each in leaving)
            lines = [f"{wanted.cluster}: removed: {removed}. What runs there is not known: {error}"]
        for line in lines:
            say(line)
        return True

    def _free(self, news: Mapping[str, Any], olds: Mapping[str, Any] | None) -> dict[str, Any]:
        wanted, former = Emptied.of(news, olds), _former(olds)
        kube = self.kube(news)
        uid = wanted.uid(kube)
        empty(kube, wanted, former, Operation.REMOVAL, say=say, clock=MachineClock(), staying=wanted.policies)
        return {**news, "namespace_uid": uid, _FORMER: former}


def _former(olds: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the policies of the node sets that there were: a run that was cut off has not removed them yet."""
    return {} if olds is None else {**olds.get(_FORMER, {}), **olds["policies"]}


class RemovedNodeSets(pulumi.dynamic.Resource, module="soperator", name="RemovedNodeSets"):
    """The node sets that were taken out of the spec, drained and free of jobs."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        namespace_uid: pulumi.Input[str] | None,
        owner: str,
        selector: Mapping[str, str],
        policies: Mapping[str, Mapping[str, Any]],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it.

        Args:
            resource_name: its name.
            namespace: where the cluster is.
            namespace_uid: the namespace's UID; None to record the one that is found.
            owner: stack and component that the cluster belongs to, as on its objects.
            selector: labels of the worker pods of all node sets.
            policies: `drain` of each node set that is wanted, as JSON, by the node set's name.
            connection: which Kubernetes it is.
            opts: its options.
        """
        inputs = {
            "namespace": namespace,
            "namespace_uid": namespace_uid,
            "owner": owner,
            "selector": {**selector},
            "policies": {name: {**policy} for name, policy in policies.items()},
            **connection.inputs(),
        }
        super().__init__(RemovedNodeSetsProvider(), resource_name, inputs, opts)
