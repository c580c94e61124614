"""Inputs and outputs of `Platform` in other languages, as typed dictionaries."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from soperator_pulumi.lifecycle.connection import AccessArgs
from soperator_pulumi.plugin.property_types import ComponentType, dictionary_type
from soperator_pulumi.spec.args import PlatformArgs


class RemotePlatformArgs(PlatformArgs, AccessArgs, total=False):
    """Arguments of `Platform`, from modules that load no resources."""


class RemotePlatformOutputs(TypedDict):
    """Outputs of `Platform`: the values of `platform` of a SlurmCluster."""

    gpu_resource: NotRequired[pulumi.Output[str]]
    """Resource of whole GPUs."""
    rdma_resources: pulumi.Output[Sequence[str]]
    """Resources of RDMA devices."""
    runtime_class: NotRequired[pulumi.Output[str]]
    """RuntimeClass of pods with GPUs."""
    storage_class: NotRequired[pulumi.Output[str]]
    """StorageClass of the shared volume."""
    static_volume: NotRequired[pulumi.Output[str]]
    """PersistentVolume of the shared volume."""
    existing_claim: NotRequired[pulumi.Output[str]]
    """Claim of the shared volume."""
    size_gib: NotRequired[pulumi.Output[int]]
    """Size of the shared volume in GiB."""
    kube_prometheus_stack: pulumi.Output[bool]
    """True if the platform installs the kinds of Prometheus' operator."""
    mariadb_operator: pulumi.Output[bool]
    """True if the platform installs the kinds of MariaDB's operator."""


PLATFORM = ComponentType(
    "Platform",
    "The platform of one Kubernetes, which Slurm stands on: charts of other projects, pinned, with settings that keep "
    "jobs alive. Parts with `exists` are checked, and not touched.",
    dictionary_type(RemotePlatformArgs),
    dictionary_type(RemotePlatformOutputs),
)
