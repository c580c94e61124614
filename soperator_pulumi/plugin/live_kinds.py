"""Kinds of resources that act on a live cluster: the resource class, the provider that acts, and the inputs."""

from dataclasses import dataclass

from pydantic import BaseModel

from soperator_pulumi.lifecycle.active_tree import ActiveTree, ActiveTreeInputs, ActiveTreeProvider
from soperator_pulumi.lifecycle.associations import Associations, AssociationsInputs, AssociationsProvider
from soperator_pulumi.lifecycle.config_files import ConfigFiles, ConfigFilesProvider
from soperator_pulumi.lifecycle.database_account import (
    DatabaseAccount,
    DatabaseAccountInputs,
    DatabaseAccountProvider,
)
from soperator_pulumi.lifecycle.drain_gate import DrainGate, DrainGateInputs, DrainGateProvider
from soperator_pulumi.lifecycle.images_published import (
    ImagesPublished,
    ImagesPublishedInputs,
    ImagesPublishedProvider,
)
from soperator_pulumi.lifecycle.installed_parts import InstalledParts, InstalledPartsInputs, InstalledPartsProvider
from soperator_pulumi.lifecycle.keys_in_use import KeysInUse, KeysInUseInputs, KeysInUseProvider
from soperator_pulumi.lifecycle.node_drain import NodeDrain, NodeDrainInputs, NodeDrainProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReady, NodesReadyInputs, NodesReadyProvider
from soperator_pulumi.lifecycle.pods_ready import PodsReady, PodsReadyInputs, PodsReadyProvider
from soperator_pulumi.lifecycle.prerequisites import Prerequisites, PrerequisitesProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.removed_node_sets import (
    RemovedNodeSets,
    RemovedNodeSetsInputs,
    RemovedNodeSetsProvider,
)
from soperator_pulumi.lifecycle.resource import LiveResource, ServedBy
from soperator_pulumi.lifecycle.secret_files import SecretFiles, SecretFilesProvider
from soperator_pulumi.lifecycle.slurm_version import SlurmVersion, SlurmVersionInputs, SlurmVersionProvider
from soperator_pulumi.lifecycle.tree_populated import TreePopulated, TreePopulatedInputs, TreePopulatedProvider
from soperator_pulumi.operations.configuration.desired_files import DesiredFiles
from soperator_pulumi.operations.preflight import PrerequisitesInputs


@dataclass(frozen=True)
class LiveKind:
    """A kind of resource."""

    resource: type[LiveResource]
    provider: type[LiveProvider]
    inputs: type[BaseModel]

    @property
    def token(self) -> str:
        """Type of the plugin's resources."""
        return self.resource.token(ServedBy.PLUGIN)


KINDS = (
    LiveKind(ActiveTree, ActiveTreeProvider, ActiveTreeInputs),
    LiveKind(Associations, AssociationsProvider, AssociationsInputs),
    LiveKind(ConfigFiles, ConfigFilesProvider, DesiredFiles),
    LiveKind(DatabaseAccount, DatabaseAccountProvider, DatabaseAccountInputs),
    LiveKind(DrainGate, DrainGateProvider, DrainGateInputs),
    LiveKind(ImagesPublished, ImagesPublishedProvider, ImagesPublishedInputs),
    LiveKind(InstalledParts, InstalledPartsProvider, InstalledPartsInputs),
    LiveKind(KeysInUse, KeysInUseProvider, KeysInUseInputs),
    LiveKind(NodeDrain, NodeDrainProvider, NodeDrainInputs),
    LiveKind(NodesReady, NodesReadyProvider, NodesReadyInputs),
    LiveKind(PodsReady, PodsReadyProvider, PodsReadyInputs),
    LiveKind(Prerequisites, PrerequisitesProvider, PrerequisitesInputs),
    LiveKind(RemovedNodeSets, RemovedNodeSetsProvider, RemovedNodeSetsInputs),
    LiveKind(SecretFiles, SecretFilesProvider, DesiredFiles),
    LiveKind(SlurmVersion, SlurmVersionProvider, SlurmVersionInputs),
    LiveKind(TreePopulated, TreePopulatedProvider, TreePopulatedInputs),
)
