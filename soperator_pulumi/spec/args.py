"""Description of a cluster as typed dictionaries, for editors and type checkers.

The models beside this module check and document the values; a test compares the keys. A value that may be an Output is
a `pulumi.Input` here and a `Maybe` there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi


class TolerationArgs(TypedDict, total=False):
    """See `spec.Toleration`."""

    key: str
    operator: str
    value: str
    effect: str
    toleration_seconds: int


class ResourceAmountsArgs(TypedDict, total=False):
    """See `spec.ResourceAmounts`."""

    cpu: str | float
    memory: str


class PodResourcesArgs(TypedDict, total=False):
    """See `spec.PodResources`."""

    requests: ResourceAmountsArgs
    limits: ResourceAmountsArgs


class ScheduledArgs(TypedDict, total=False):
    """See `spec.Scheduled`."""

    node_selector: Mapping[str, str]
    tolerations: Sequence[TolerationArgs]
    affinity: Mapping[str, Any]
    priority_class: str


class SlurmArgs(TypedDict, total=False):
    """See `spec.SlurmSpec`."""

    version: str
    constrain: str
    max_nodes: int
    extra: Mapping[str, str | float]


class ControllerArgs(ScheduledArgs, total=False):
    """See `spec.ControllerSpec`."""

    pod_resources: PodResourcesArgs


class LoginArgs(ScheduledArgs, total=False):
    """See `spec.LoginSpec`."""

    replicas: int
    service: str
    service_annotations: Mapping[str, str]
    allowed_sources: Sequence[str]
    docs: str
    max_processes: int
    pod_resources: PodResourcesArgs


class DrainArgs(TypedDict, total=False):
    """See `spec.DrainSpec`."""

    timeout: str
    on_timeout: str
    max_wait: str
    not_requeueable: str
    reservations: str
    pending_jobs: str
    wait: bool
    grace: str


class RollingUpdateArgs(TypedDict, total=False):
    """See `spec.RollingUpdateSpec`."""

    max_unavailable: int | str


class NodeSetArgs(ScheduledArgs):
    """See `spec.NodeSetSpec`."""

    name: str
    cpus: int
    memory_gib: float
    replicas: NotRequired[int]
    partitions: NotRequired[Sequence[str]]
    features: NotRequired[Sequence[str]]
    pod_resources: NotRequired[PodResourcesArgs]
    max_processes: NotRequired[int]
    lock_memory: NotRequired[bool]
    ready_timeout_seconds: NotRequired[int]
    max_unready: NotRequired[int | str]
    wait_until_ready: NotRequired[bool]
    drain: NotRequired[DrainArgs]
    rolling_update: NotRequired[RollingUpdateArgs]


class PartitionArgs(TypedDict):
    """See `spec.PartitionSpec`."""

    name: str
    default: NotRequired[bool]
    options: NotRequired[Mapping[str, str | float]]


class UserArgs(TypedDict):
    """See `spec.UserSpec`."""

    name: str
    uid: int
    gid: NotRequired[int]
    groups: NotRequired[Sequence[str]]
    ssh_keys: NotRequired[Sequence[str]]
    shell: NotRequired[str]


class GroupArgs(TypedDict):
    """See `spec.GroupSpec`."""

    name: str
    gid: int


class VolumeArgs(TypedDict, total=False):
    """See `spec.VolumeSpec`."""

    size_gib: int
    storage_class: pulumi.Input[str]
    existing_claim: pulumi.Input[str]
    static_volume: pulumi.Input[str]


class StorageArgs(TypedDict, total=False):
    """See `spec.StorageSpec`."""

    state: VolumeArgs
    keep: bool


class TarballArgs(TypedDict):
    """See `spec.TarballSource`."""

    url: pulumi.Input[str]
    sha256: str


class JailSourceArgs(TypedDict, total=False):
    """See `spec.JailSource`."""

    image: str
    tarball: TarballArgs


class SubmountArgs(TypedDict):
    """See `spec.SubmountSpec`."""

    path: str
    roles: NotRequired[Sequence[str]]
    read_only: NotRequired[bool]
    existing_claim: NotRequired[pulumi.Input[str]]
    sub_path: NotRequired[str]
    host_path: NotRequired[str]
    scratch_gib: NotRequired[int]
    memory_gib: NotRequired[float]


class JailIsolationArgs(TypedDict, total=False):
    """See `spec.JailIsolation`."""

    pid: bool
    ipc: bool
    user_namespaces: bool


class PopulateArgs(ScheduledArgs, total=False):
    """See `spec.PopulateSpec`."""

    limit_mib_per_second: int
    pod_resources: PodResourcesArgs


class JailArgs(TypedDict, total=False):
    """See `spec.JailSpec`."""

    source: JailSourceArgs
    active: str
    keep_trees: int
    changes: str
    storage: VolumeArgs
    submounts: Sequence[SubmountArgs]
    isolation: JailIsolationArgs
    populate: PopulateArgs
    admin_shell: bool
    app_armor: str


class NetworkArgs(TypedDict, total=False):
    """See `spec.NetworkSpec`."""

    egress: Sequence[str]
    closed_ports: Sequence[int | str]
    api_servers: Sequence[str]


class ImagesArgs(TypedDict):
    """See `spec.ImagesSpec`."""

    controller: pulumi.Input[str]
    worker: pulumi.Input[str]
    login: pulumi.Input[str]
    munge: pulumi.Input[str]
    jail_tools: pulumi.Input[str]
    jail: NotRequired[str]
    pull_policy: NotRequired[str]
    pull_secrets: NotRequired[Sequence[pulumi.Input[str]]]


class SecretRefArgs(TypedDict):
    """See `spec.SecretRef`."""

    secret: pulumi.Input[str]
    key: NotRequired[str]


class SecretsArgs(TypedDict, total=False):
    """See `spec.SecretsSpec`."""

    munge_key: SecretRefArgs
    ssh_host_key: SecretRefArgs


class ClusterArgs(TypedDict, total=False):
    """See `spec.ClusterSpec`. Required: `name` (a component has a default), `node_sets` and `images`."""

    name: str
    namespace: str
    owner: str
    create_namespace: bool
    cluster_domain: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    slurm: SlurmArgs
    controller: ControllerArgs
    login: LoginArgs
    node_sets: Sequence[NodeSetArgs]
    partitions: Sequence[PartitionArgs]
    users: Sequence[UserArgs]
    groups: Sequence[GroupArgs]
    jail: JailArgs
    network: NetworkArgs
    storage: StorageArgs
    images: ImagesArgs
    secrets: SecretsArgs
