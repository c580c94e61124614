"""What a user may say about a cluster: frozen, documented, checked models. No resource is created here."""

from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.controller import ControllerSpec
from soperator_pulumi.spec.deferred import Maybe
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout, Reaction, RollingUpdateSpec
from soperator_pulumi.spec.duration import Duration
from soperator_pulumi.spec.images import ImagesSpec, PullPolicy
from soperator_pulumi.spec.jail import (
    Changes,
    JailIsolation,
    JailSource,
    JailSpec,
    PopulateSpec,
    TarballSource,
)
from soperator_pulumi.spec.login import LoginSpec, ServiceType
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.parse import parse_cluster, parse_drain
from soperator_pulumi.spec.partition import PartitionSpec
from soperator_pulumi.spec.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.scheduling import Scheduled, TaintEffect, Toleration, TolerationOperator
from soperator_pulumi.spec.secrets import MungeKeyRef, SecretRef, SecretsSpec, SshHostKeyRef
from soperator_pulumi.spec.share import Share
from soperator_pulumi.spec.slurm import Constrain, SlurmSpec
from soperator_pulumi.spec.storage import JailVolume, StateVolume, StorageSpec, VolumeSpec
from soperator_pulumi.spec.submount import SubmountRole, SubmountSpec
from soperator_pulumi.spec.user import GroupSpec, UserSpec

__all__ = [
    "Changes",
    "ClusterSpec",
    "Constrain",
    "ControllerSpec",
    "DrainSpec",
    "Duration",
    "GroupSpec",
    "ImagesSpec",
    "JailIsolation",
    "JailSource",
    "JailSpec",
    "JailVolume",
    "LoginSpec",
    "Maybe",
    "MungeKeyRef",
    "NodeSetSpec",
    "NotRequeueable",
    "OnTimeout",
    "PartitionSpec",
    "PodResources",
    "PopulateSpec",
    "PullPolicy",
    "Reaction",
    "ResourceAmounts",
    "RollingUpdateSpec",
    "Scheduled",
    "SecretRef",
    "SecretsSpec",
    "ServiceType",
    "Share",
    "SlurmSpec",
    "SshHostKeyRef",
    "StateVolume",
    "StorageSpec",
    "SubmountRole",
    "SubmountSpec",
    "TaintEffect",
    "TarballSource",
    "Toleration",
    "TolerationOperator",
    "UserSpec",
    "VolumeSpec",
    "parse_cluster",
    "parse_drain",
]
