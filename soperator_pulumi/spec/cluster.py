"""Spec of the whole cluster, and the rules between its fields."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field, StrictBool, model_validator

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec import (
    accounting,
    devices,
    drain,
    jail,
    job_containers,
    job_hooks,
    login,
    long_checks,
    metrics,
    node_health,
    node_set,
    partition,
    rest,
    scheduling,
    secrets,
    storage,
    submount,
    user,
    user_pods,
)
from soperator_pulumi.spec.accounting import Accounting, AccountingSpec, DumpSpec, OwnDatabaseSpec, SlurmdbdSpec
from soperator_pulumi.spec.images import ImagesSpec
from soperator_pulumi.spec.jail import JailSpec, PopulateSpec
from soperator_pulumi.spec.job_containers import ContainersSpec
from soperator_pulumi.spec.job_hooks import HooksSpec
from soperator_pulumi.spec.login import LoginPods, LoginSpec
from soperator_pulumi.spec.metrics import MetricsSpec
from soperator_pulumi.spec.network import NetworkSpec
from soperator_pulumi.spec.node_health import HealthSpec
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.partition import PartitionSpec
from soperator_pulumi.spec.platform.provided import ProvidedSpec, with_defaults_of_platform
from soperator_pulumi.spec.rest import RestSpec
from soperator_pulumi.spec.secrets import SecretsSpec
from soperator_pulumi.spec.slurm import Constrain, ControllerSpec, SlurmSpec
from soperator_pulumi.spec.slurm_parameters import version_problems
from soperator_pulumi.spec.storage import StorageSpec
from soperator_pulumi.spec.types import quantity
from soperator_pulumi.spec.types.names import ClusterName, DnsLabel, LabelKey, LabelValue, ObjectName, Owner
from soperator_pulumi.spec.user import GroupSpec, UserSpec
from soperator_pulumi.spec.user_pods import UserPods
from soperator_pulumi.spec.validation.base import Model, broken_rules, whole
from soperator_pulumi.spec.validation.parse import parse
from soperator_pulumi.spec.validation.partial import known

_Role = (
    ControllerSpec
    | LoginPods
    | NodeSetSpec
    | PopulateSpec
    | OwnDatabaseSpec
    | SlurmdbdSpec
    | DumpSpec
    | RestSpec
    | MetricsSpec
)


class ClusterSpec(Model):
    """A Slurm cluster on Kubernetes."""

    name: ClusterName
    """Slurm's name of the cluster: lower case letters, digits and '-', at most 40 characters."""
    namespace: DnsLabel = Field(default_factory=lambda fields: str(fields["name"]))
    """Namespace of the cluster, which no other SlurmCluster may use. Default: the cluster's name."""
    owner: Owner | None = None
    """Mark on the cluster's own objects and drains. Default: `<project>.<stack>.<component>`. If you rename one of
    these, set the owner to its former value."""
    create_namespace: StrictBool = True
    """Create the namespace. If false, it must exist."""
    cluster_domain: ObjectName = "cluster.local"
    """DNS domain of the Kubernetes cluster (the kubelet's `clusterDomain`), in which Slurm's pods resolve their
    names."""
    ready_timeout_seconds: Annotated[int, whole(1, 86_400)] = 600
    """Time in seconds for pods of the cluster to become ready, except workers, and for Jobs on the jail to get a
    machine and an image. Workers have `node_sets[].ready_timeout_seconds`. Default: 10 minutes, enough for a large
    image and a new machine in most clouds."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further labels of all objects."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Further annotations of all objects."""
    slurm: SlurmSpec = SlurmSpec()
    """Slurm itself."""
    controller: ControllerSpec = ControllerSpec()
    """The pod that runs slurmctld."""
    login: LoginSpec = LoginSpec()
    """The pods that run sshd."""
    node_sets: tuple[NodeSetSpec, ...]
    """The worker nodes: at least one node set."""
    partitions: tuple[PartitionSpec, ...] = ()
    """Partitions with their own settings. A partition that only a node set names has default settings."""
    users: tuple[UserSpec, ...] = ()
    """People who may log in and run jobs."""
    groups: tuple[GroupSpec, ...] = ()
    """Groups of users. A user's own group needs no entry."""
    jail: JailSpec = JailSpec()
    """The root filesystem of all sessions and jobs, on the same volume as the homes."""
    containers: ContainersSpec | None = None
    """Containers in jobs. Default: none; `--container-image` is refused."""
    accounting: Accounting = AccountingSpec()
    """Records of jobs, and limits of accounts, in a database: a mapping, or "none". Default: slurmdbd with the
    cluster's own MariaDB."""
    health: HealthSpec = HealthSpec()
    """Quick checks of the nodes."""
    hooks: HooksSpec | None = None
    """Hooks of jobs, before their first step on a node and after their last one. Default: none."""
    rest: RestSpec | None = None
    """The REST API. Default: none."""
    metrics: MetricsSpec | None = None
    """Metrics of Slurm for Prometheus, with alert rules and dashboards. Default: none."""
    network: NetworkSpec = NetworkSpec()
    """Network destinations of jobs and sessions."""
    storage: StorageSpec = StorageSpec()
    """The volume of slurmctld's state, and the protection of volumes."""
    images: ImagesSpec
    """Container images."""
    secrets: SecretsSpec = SecretsSpec()
    """Secrets with your own keys. Default: generated keys."""
    platform: ProvidedSpec = ProvidedSpec()
    """Names that a platform offers, used as defaults by the node sets and the jail's volume. Default: those of the
    stack's platform, or of the component given to `SlurmCluster(platform=...)`."""

    @property
    def all_partitions(self) -> tuple[PartitionSpec, ...]:
        """Partitions in Slurm's order; at most one is the default."""
        return partition.all_partitions(self.partitions, self.node_sets)

    @property
    def named_qos(self) -> dict[str, list[str]]:
        """Names of QoS by the path of their field, such as `partitions[0].options.AllowQos`."""
        return accounting.named_qos(self.partitions, self.health.long_checks)

    @model_validator(mode="after")
    def _follow_the_rules(self) -> "ClusterSpec":
        found = list(rule_problems(self))
        if found:
            raise broken_rules(found)
        return self


def parse_cluster(data: object, where: str = "soperator:cluster") -> ClusterSpec:
    """Return the spec of a cluster's description.

    Example::

        from soperator_pulumi import parse_cluster
        from soperator_pulumi.errors import SpecError

        try:
            parse_cluster({"name": "hpc", "node_sets": []}, where="hpc.yaml")
        except SpecError as error:
            problems = [str(problem) for problem in error.problems]

    Args:
        data: A mapping as in a stack's configuration, with Outputs for fields that accept them; or a checked spec.
        where: Origin of the data in an error: a configuration key, or a component.

    Raises:
        SpecError: The data has problems; all of them at once.
    """
    described = with_defaults_of_platform(data) if isinstance(data, Mapping) else data
    return parse(ClusterSpec, described, where, "a cluster", rule_problems)


def rule_problems(spec: ClusterSpec) -> Iterator[Problem]:
    """Yield the problems between fields of a spec, some of which may be unknown."""
    yield from _node_set_problems(spec)
    yield from partition.problems(spec.partitions, spec.node_sets)
    yield from user.problems(spec.users, spec.groups)
    if known(spec.secrets):
        yield from secrets.problems(spec.secrets)
    yield from login.problems(spec.login, spec.groups)
    yield from login.name_problems(
        spec.login,
        {f"node_sets[{index}]": entry.name for index, entry in enumerate(spec.node_sets) if known(entry.name)},
    )
    other_volumes = {"storage.state": spec.storage.state, **dict(accounting.volumes(spec.accounting))}
    yield from storage.problems({"jail.storage": spec.jail.storage, **other_volumes})
    yield from accounting.problems(spec.accounting, spec.images, spec.users)
    if spec.accounting is None and known(spec.slurm):
        yield from accounting.qos_problems(spec.slurm.extra, spec.partitions)
    yield from rest.problems(spec.rest, has_image=spec.images.rest is not None)
    yield from metrics.problems(spec.metrics, spec.slurm.extra, has_image=spec.images.exporter is not None)
    yield from jail.problems(spec.jail, spec.images)
    yield from submount.problems(spec.jail.submounts, spec.node_sets, spec.login)
    yield from submount.claim_problems(spec.jail.submounts, spec.jail.storage, other_volumes)
    yield from submount.driver_problems(spec.jail.submounts, spec.node_sets)
    yield from submount.memory_problems(spec.jail.submounts, spec.node_sets, spec.login)
    yield from _role_problems(spec)
    yield from node_health.problems(spec.health)
    yield from _long_check_problems(spec)
    yield from job_containers.problems(spec.containers)
    yield from job_containers.local_problems(spec.containers, spec.node_sets, spec.jail.submounts)
    yield from job_hooks.problems(spec.hooks, spec.slurm.extra, spec.node_sets)
    yield from _version_problems(spec)
    yield from _object_problems(spec)
    yield from _user_pod_problems(spec)


def _node_set_problems(spec: ClusterSpec) -> Iterator[Problem]:
    if known(spec.node_sets) and not spec.node_sets:
        yield Problem("node_sets", "empty: a cluster needs at least one node set. Add one.")
    yield from node_set.problems(spec.node_sets, spec.slurm.max_nodes)
    yield from node_set.layout_problems(spec.node_sets)
    yield from node_set.reserved_core_problems(spec.node_sets, spec.slurm.constrain, spec.slurm.extra)
    yield from node_set.environment_problems(spec.node_sets)
    yield from node_set.token_problems(spec.node_sets)
    for index, node_spec in enumerate(spec.node_sets):
        yield from drain.problems(node_spec.drain, f"node_sets[{index}].drain.")
        constrained = spec.slurm.constrain is not Constrain.NONE
        yield from devices.problems(node_spec, f"node_sets[{index}]", constrained=constrained)


def _role_problems(spec: ClusterSpec) -> Iterator[Problem]:
    """Yield the problems of the keys that all pods of this package share: scheduling and resources."""
    roles: list[tuple[str, _Role]] = [
        ("controller", spec.controller),
        *spec.login.by_path.items(),
        ("jail.populate", spec.jail.populate),
        *accounting.roles(spec.accounting),
        *([("rest", spec.rest)] if known(spec.rest) and spec.rest is not None else []),
        *([("metrics", spec.metrics)] if known(spec.metrics) and spec.metrics is not None else []),
        *((f"node_sets[{index}]", node_set) for index, node_set in enumerate(spec.node_sets)),
    ]
    for path, role in roles:
        yield from scheduling.problems(role, path)
        yield from quantity.problems(role.pod_resources, f"{path}.pod_resources")


def _long_check_problems(spec: ClusterSpec) -> Iterator[Problem]:
    if known(spec.health) and known(spec.health.long_checks):
        checks = spec.health.long_checks
        yield from long_checks.long_problems(checks, has_accounting=spec.accounting is not None)
        yield from long_checks.image_problems(checks, spec.containers)
        if known(spec.health.verify_new_nodes):
            verify = spec.health.verify_new_nodes
            yield from long_checks.new_node_problems(checks, spec.node_sets, verify_new_nodes=verify)


def _version_problems(spec: ClusterSpec) -> Iterator[Problem]:
    """Yield Slurm settings that the spec's Slurm version does not have."""
    if not known(spec.slurm):
        return
    yield from version_problems(spec.slurm.extra, spec.slurm.version, "slurm.extra")
    for index, entry in enumerate(spec.partitions):
        yield from version_problems(entry.options, spec.slurm.version, f"partitions[{index}].options")


def _object_problems(spec: ClusterSpec) -> Iterator[Problem]:
    """Yield problems with a namespace of Kubernetes, and with labels that would hide the cluster's objects."""
    if known(spec.namespace) and (spec.namespace.startswith("kube-") or spec.namespace == "default"):
        yield Problem(
            "namespace",
            f'got "{spec.namespace}", which belongs to Kubernetes. A cluster needs its own: choose another name.',
        )
    yield from user_pods.own_prefix_problems(spec.labels, "labels")
    yield from user_pods.own_prefix_problems(spec.annotations, "annotations")


def _user_pod_problems(spec: ClusterSpec) -> Iterator[Problem]:
    """Yield problems of the pods in which users work."""
    roles: dict[str, UserPods] = {
        **spec.login.by_path,
        **{f"node_sets[{index}]": node_set for index, node_set in enumerate(spec.node_sets)},
    }
    for path, pods in roles.items():
        yield from user_pods.problems(pods, path)
    names = dict(zip(roles, [*spec.login.by_name, *(node_set.name for node_set in spec.node_sets)], strict=True))
    yield from user_pods.account_problems(roles, names)
