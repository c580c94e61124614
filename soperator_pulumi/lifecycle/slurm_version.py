"""The resource before all of Slurm: it starts an upgrade with a preview and a dump, and refuses a downgrade."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from soperator_pulumi.errors import ConfigRefusedError, KubernetesError
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.provider import PinnedProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef
from soperator_pulumi.operations.progress import report
from soperator_pulumi.operations.slurm_upgrade import SlurmUpgrade

_UPGRADING = "upgrading"


class SlurmVersionInputs(ClusterRef):
    """The wanted version; the selector has the labels of the cluster's objects."""

    version: str
    new_settings: tuple[str, ...] = ()
    """Settings in the spec that no earlier version knows."""


class SlurmVersionProvider(PinnedProvider):
    """Prepare an upgrade, or refuse a version. The StatefulSets that follow carry out the upgrade in turn."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Print the remaining steps, and the reason if they would be refused."""
        if has_unknown(news):
            return DiffResult(changes=True)
        try:
            upgrade = _upgrade(self.pinned_kube(news), news)
            for line in upgrade.steps():
                report(line)
            upgrade.refuse_way_back()
            upgrade.refuse_new_settings(SlurmVersionInputs.model_validate(news).new_settings)
        except ConfigRefusedError as refusal:
            report(f"would be refused now. {refusal}")
            return DiffResult(changes=True)
        except KubernetesError as error:
            report(f"{news['namespace']}: cannot read its version of Slurm: {error}")
        return DiffResult(changes=SlurmVersionInputs.of(news, olds) != SlurmVersionInputs.model_validate(olds))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Prepare an upgrade: the cluster may be older than this resource."""
        return CreateResult(f"{props['namespace']}/slurm-version", self._prepare(props, upgraded=False))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Prepare an upgrade, or complete one."""
        return UpdateResult(self._prepare(news, upgraded=bool(olds.get(_UPGRADING))))

    def _prepare(self, props: dict[str, Any], *, upgraded: bool) -> dict[str, Any]:
        upgrade = _upgrade(self.pinned_kube(props), props)
        upgrade.refuse_way_back()
        upgrade.refuse_new_settings(SlurmVersionInputs.model_validate(props).new_settings)
        upgrade.dump()
        # Kept for later runs: a run after an interrupted one keeps the order, too.
        return {**props, _UPGRADING: upgraded or bool(upgrade.behind())}


def _upgrade(kube: Kube, props: Mapping[str, Any]) -> SlurmUpgrade:
    inputs = SlurmVersionInputs.model_validate(props)
    return SlurmUpgrade(kube, inputs.namespace, inputs.cluster, inputs.selector, inputs.version, report)


class SlurmVersion(LiveResource, module="soperator", name="SlurmVersion"):
    """The version of Slurm that the cluster has, or is being upgraded to."""

    upgrading: pulumi.Output[bool]
    """True from the first upgrade on: then workers are upgraded after slurmctld, and login nodes after workers."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster: ClusterConnection,
        version: str,
        new_settings: Sequence[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the resource.

        Args:
            resource_name: Name of the resource.
            cluster: The cluster, with the labels of all of its objects.
            version: `slurm.version`.
            new_settings: Settings in the spec that no earlier version knows.
            opts: Options of the resource.
        """
        inputs = {"version": version, "new_settings": [*new_settings], _UPGRADING: None}
        super().__init__(SlurmVersionProvider(), resource_name, cluster, inputs, opts)
