"""Pods in which users work: labels, annotations, spread over machines, host names and a cloud identity."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.types.addresses import IpAddress
from soperator_pulumi.spec.types.names import HostName, LabelKey, LabelValue, ObjectName
from soperator_pulumi.spec.validation.base import Model, whole
from soperator_pulumi.spec.validation.partial import known

OWN_PREFIXES = ("app.kubernetes.io/", "soperator-pulumi/", "pulumi.com/")
"""Prefixes of labels and annotations by which the package and Pulumi know objects."""

_TAKEN_ACCOUNTS = ("default", "metrics-exporter")
"""ServiceAccounts of a cluster's namespace that Kubernetes and the package create."""


class Unsatisfiable(StrEnum):
    """Reaction of the scheduler if no machine keeps the pods spread."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class TopologySpread(Model):
    """A constraint of a pod's `topologySpreadConstraints`, which counts the role's own pods."""

    topology_key: LabelKey
    """Label of machines whose values are the places, such as `topology.kubernetes.io/zone`."""
    max_skew: Annotated[int, whole(1)] = 1
    """Largest difference in pods between two places."""
    when_unsatisfiable: Unsatisfiable = Unsatisfiable.SCHEDULE_ANYWAY
    """`ScheduleAnyway`: prefer an even spread. `DoNotSchedule`: leave a pod pending rather than uneven."""


class HostAlias(Model):
    """Names for an address in `/etc/hosts` of pods, sessions and jobs."""

    ip: IpAddress
    """The address."""
    hostnames: tuple[HostName, ...]
    """Names of the address."""


class ServiceAccountSpec(Model):
    """ServiceAccount of the pods, for the identity that a cloud gives them. It has no rights in Kubernetes."""

    name: ObjectName | None = None
    """Name of the ServiceAccount, as policies of the cloud have it. Default: the node set's name, or `login`."""
    create: StrictBool = True
    """Create it. If false, it must exist in the namespace."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Annotations of the created ServiceAccount that name the cloud's identity, such as
    `eks.amazonaws.com/role-arn`, `iam.gke.io/gcp-service-account` or `azure.workload.identity/client-id`."""


class UserPods(Scheduled):
    """Pods in which users work."""

    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Further labels of the pods, in addition to the cluster's `labels`. A changed value recreates the pods."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Further annotations of the pods, in addition to the cluster's `annotations`. A changed value recreates the
    pods."""
    topology_spread: tuple[TopologySpread, ...] = ()
    """Spread of the pods over zones, racks or machines. Default: none."""
    host_aliases: tuple[HostAlias, ...] = ()
    """Further lines of `/etc/hosts` in pods, sessions and jobs. Default: none."""
    service_account: ServiceAccountSpec | None = None
    """ServiceAccount of the pods, for cloud identities. Default: the namespace's own, without a token."""


def problems(pods: UserPods, path: str) -> Iterator[Problem]:
    """Yield reserved labels and annotations, and contradictory settings of a ServiceAccount."""
    yield from own_prefix_problems(pods.labels, f"{path}.labels")
    yield from own_prefix_problems(pods.annotations, f"{path}.annotations")
    keys = [spread.topology_key for spread in pods.topology_spread]
    for index, key in enumerate(keys):
        if known(key) and key in keys[:index]:
            yield Problem(f"{path}.topology_spread[{index}].topology_key", f'"{key}" is listed twice. Remove one.')
    for index, alias in enumerate(pods.host_aliases):
        if known(alias.hostnames) and not alias.hostnames:
            yield Problem(f"{path}.host_aliases[{index}].hostnames", "empty. Name at least one host.")
    account = pods.service_account
    if not known(account) or account is None:
        return
    yield from own_prefix_problems(account.annotations, f"{path}.service_account.annotations")
    if known(account.create, account.annotations) and account.annotations and not account.create:
        yield Problem(
            f"{path}.service_account.annotations",
            "given for an existing ServiceAccount, which this cluster does not change. Annotate it where it is "
            "created, or remove create: false.",
        )
    if known(account.name, account.create) and account.create and account.name in _TAKEN_ACCOUNTS:
        yield Problem(
            f"{path}.service_account.name",
            f'got "{account.name}", which exists for other pods. Choose another name.',
        )


def own_prefix_problems(keys: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Yield keys of labels or annotations that would hide the cluster's objects."""
    for key in keys:
        if key.startswith(OWN_PREFIXES):
            yield Problem(f"{path}.{key}", "is reserved: it selects the cluster's objects. Remove it.")


def account_problems(roles: Mapping[str, UserPods], names: Mapping[str, str]) -> Iterator[Problem]:
    """Yield ServiceAccounts that two roles create.

    Args:
        roles: Login nodes and node sets, by their paths.
        names: Names of their ServiceAccounts without a name of their own, by the same paths.
    """
    created: dict[str, str] = {}
    for path, pods in roles.items():
        account = pods.service_account
        if not known(account) or account is None or not known(account.name, account.create) or not account.create:
            continue
        name = account.name or names[path]
        if name in created:
            yield Problem(
                f"{path}.service_account.name",
                f'"{name}" is also created for {created[name]}. Set create: false here, or choose another name.',
            )
        created.setdefault(name, path)
