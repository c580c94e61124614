"""The spec's cluster, accounts and users in the accounting database. Delete removes nothing from it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import Field

from soperator_pulumi.errors import KubernetesError, SlurmError, TransportError
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.association_additions import WantedAssociations
from soperator_pulumi.operations.configuration.slurmdbd import ACCOUNTING_CONTAINER, ACCOUNTING_POD
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import MachineClock, report
from soperator_pulumi.slurm.named_qos import unknown_qos
from soperator_pulumi.slurm.sacctmgr import Sacctmgr


class AssociationsInputs(ClusterRef):
    """Accounts and users of the spec."""

    cluster_name: str
    """Slurm's name of the cluster."""
    accounts: list[str]
    users: dict[str, list[str]]
    """Accounts of users, by user; the default account comes first."""
    qos: dict[str, list[str]] = Field(default_factory=dict)
    """Names of QoS by the field of the spec that has them."""

    @property
    def wanted(self) -> WantedAssociations:
        """Accounts and users, without the connection."""
        return WantedAssociations(self.accounts, self.users)


class AssociationsProvider(LiveProvider):
    """Add what is missing from the database on create and update."""

    def diff(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the spec with the live database."""
        if has_unknown(news):
            return DiffResult(changes=True)
        inputs = AssociationsInputs.model_validate(news)
        try:
            found = inputs.wanted.missing(self._sacctmgr(inputs, news))
            self._warn(inputs, news)
        except (KubernetesError, SlurmError, TransportError) as error:
            report(f"accounting: cannot read the database: {error}")
            return DiffResult(changes=True)
        for line in found.lines():
            report(line)
        return DiffResult(changes=not found.is_empty)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Add what is missing from the database."""
        self._add(props)
        return CreateResult(f"{props['namespace']}/{props['cluster_name']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Add what is missing from the database."""
        self._add(news)
        return UpdateResult({**news})

    def _add(self, props: Mapping[str, Any]) -> None:
        inputs = AssociationsInputs.model_validate(props)
        inputs.wanted.add(self._sacctmgr(inputs, props), report, MachineClock())
        self._warn(inputs, props)

    def _warn(self, inputs: AssociationsInputs, props: Mapping[str, Any]) -> None:
        """Report the names without a QoS. They fail no run: an administrator may be about to make them."""
        for problem in unknown_qos(self._sacctmgr(inputs, props), inputs.qos):
            report(f"accounting: warning: {problem}")

    def _sacctmgr(self, inputs: AssociationsInputs, props: Mapping[str, Any]) -> Sacctmgr:
        place = self.kube(props).transport(inputs.namespace, ACCOUNTING_POD, ACCOUNTING_CONTAINER)
        return Sacctmgr(place, inputs.cluster_name)


class Associations(LiveResource, module="soperator", name="Associations"):
    """The spec's cluster, accounts and users in the accounting database."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        cluster_name: str,
        accounts: Sequence[str],
        users: Mapping[str, Sequence[str]],
        qos: Mapping[str, Sequence[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster.
            cluster_name: Slurm's name of the cluster.
            accounts: Accounts of the spec.
            users: Accounts of the spec's users, by user; the default account comes first.
            qos: Names of QoS by the field of the spec that has them.
            opts: Options of the resource.
        """
        inputs = {
            "cluster_name": cluster_name,
            "accounts": [*accounts],
            "users": {user: [*own] for user, own in users.items()},
            # Without names, the inputs are those in states of earlier versions.
            **({"qos": {path: [*names] for path, names in qos.items()}} if qos else {}),
        }
        super().__init__(AssociationsProvider(), resource_name, cluster, inputs, opts)
