"""Login nodes: the ssh sessions of users, in one or several pools."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.node_set import FEWEST_PROCESSES
from soperator_pulumi.spec.types.addresses import Cidr
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import LabelKey
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.user import AccountName, GroupSpec
from soperator_pulumi.spec.user_pods import UserPods
from soperator_pulumi.spec.validation.base import Matches, whole
from soperator_pulumi.spec.validation.partial import known

SHORTEST_STOP_SECONDS = 30
"""Default of Kubernetes, in which sshd and its sidecars end."""


_LOGIN, _POOL_PREFIX = "login", "login-"


class ServiceType(StrEnum):
    """Access to ssh."""

    CLUSTER_IP = "ClusterIP"
    """From inside the Kubernetes cluster, and through `kubectl port-forward`."""
    NODE_PORT = "NodePort"
    """On a port of every machine."""
    LOAD_BALANCER = "LoadBalancer"
    """At its own address, from the platform."""


Url = Annotated[
    str,
    Matches(
        r"https?://[A-Za-z0-9._~:/?&=@%+#-]+",
        'needs an address without blanks and quotes, such as "https://wiki.example.org/hpc".',
        255,
    ),
]
"""A web address without characters that have another meaning in a file."""


PoolName = Annotated[
    str,
    Matches(
        r"(?!.*-[0-9]+$)[a-z]([a-z0-9-]*[a-z0-9])?",
        "needs lower case letters, digits and '-', a letter first, no '-' and no number after a '-' at the end, as "
        "pods have these.",
        40,
    ),
]
"""Name of a login pool. `login-<name>` is the name of its StatefulSet and Service, which must not be that of a pod."""


class LoginPods(UserPods):
    """Equal pods that run sshd, behind one Service."""

    replicas: Annotated[int, whole(0, 64)] = 1
    """Number of login pods, all with the same host key. 0 refuses all logins."""
    groups: tuple[AccountName, ...] = ()
    """Groups whose members may log in here, all in the `groups` of the cluster. A changed list recreates the pods;
    changed members do not. Default: all users."""
    service: ServiceType = ServiceType.CLUSTER_IP
    """Access to ssh. Default: from inside the Kubernetes cluster only."""
    service_annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Annotations of the login Service, for the platform's load balancers."""
    load_balancer_class: LabelKey | None = None
    """Class of the Service's load balancer, such as `service.k8s.aws/nlb`. Kubernetes changes it on no existing
    LoadBalancer: for another one, set `service` to ClusterIP in an `up` between. Default: that of the platform."""
    node_port: Annotated[int, whole(1, 65_535)] | None = None
    """Port of ssh on every machine, in the range of the Kubernetes (30000 to 32767 by default). Needs NodePort or
    LoadBalancer. Default: a port that Kubernetes chooses."""
    allowed_sources: tuple[Cidr, ...] = ()
    """Addresses that may connect to sshd. Default: only `kubectl port-forward`. NodePort and LoadBalancer need at least
    one address; `0.0.0.0/0` admits all."""
    max_processes: Annotated[int, whole(FEWEST_PROCESSES, 4_194_304)] = 2048
    """Processes and threads of a user in sessions on a login node (RLIMIT_NPROC). The kernel counts all pods of a
    machine together: if login nodes and workers share machines, set more than the node sets' `max_processes`, or users
    with large jobs there cannot log in."""
    termination_grace: Annotated[
        Duration, lasting(timedelta(seconds=SHORTEST_STOP_SECONDS), timedelta(days=7), why="sshd needs time to end.")
    ] = timedelta(seconds=SHORTEST_STOP_SECONDS)
    """Time for the sessions of a login pod that is deleted, evicted, or replaced (`terminationGracePeriodSeconds`).
    Users see on their terminals how much is left. The pod ends once no user has a process on it. A deployment that
    replaces login pods waits as long, one pod after the other. A changed value recreates the pods. Default: 30
    seconds."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="500m", memory="1Gi"), limits=ResourceAmounts(memory="8Gi")
    )
    """Resources of the sshd container, for all its sessions. Default: half a CPU and 1 GiB, at most 8 GiB of memory."""

    @property
    def stop_seconds(self) -> int:
        """`termination_grace` in seconds."""
        return int(self.termination_grace.total_seconds())


class LoginSpec(LoginPods):
    """The pods that run sshd."""

    docs: Url = "https://slurm.schedmd.com/quickstart.html"
    """Address of the documentation for users, shown at login. Default: Slurm's own."""
    pools: dict[PoolName, LoginPods] = Field(default_factory=dict)
    """Further login nodes, by the pool's name, such as `gpu`: their pods are `login-gpu-<ordinal>`, behind the Service
    `login-gpu`. They take no setting from the others. Default: none."""

    @property
    def by_name(self) -> dict[str, LoginPods]:
        """All login nodes, by the name of their StatefulSet: `login`, and `login-<name>` of every pool."""
        return {_LOGIN: self, **{object_name(name): pool for name, pool in self.pools.items()}}

    @property
    def by_path(self) -> dict[str, LoginPods]:
        """All login nodes, by their place in the spec: `login`, and `login.pools.<name>`."""
        return {_LOGIN: self, **{f"login.pools.{name}": pool for name, pool in self.pools.items()}}


def object_name(pool: str | None) -> str:
    """Return the name of a pool's StatefulSet and Service, and the component label of its pods.

    None names those of the login nodes outside the pools.
    """
    return _LOGIN if pool is None else f"{_POOL_PREFIX}{pool}"


def place(component: str) -> str | None:
    """Return the place in the spec of the login nodes with a component label; None if it is none of login nodes."""
    if component.startswith(_POOL_PREFIX):
        return f"login.pools.{component.removeprefix(_POOL_PREFIX)}"
    return _LOGIN if component == _LOGIN else None


def problems(login: LoginSpec, groups: Sequence[GroupSpec]) -> Iterator[Problem]:
    """Yield problems between the fields of login nodes, and groups that the cluster does not have."""
    ports: dict[int, str] = {}
    for path, pods in login.by_path.items():
        yield from _service_problems(pods, path)
        yield from _group_problems(pods, path, groups)
        port = pods.node_port
        if known(port) and port is not None and ports.setdefault(port, path) != path:
            yield Problem(f"{path}.node_port", f"got {port}, which {ports[port]} has as well. Choose another port.")


def name_problems(login: LoginSpec, node_sets: Mapping[str, str]) -> Iterator[Problem]:
    """Yield node sets whose StatefulSet or nodes would have the names of a pool's. `node_sets` has names by path."""
    for path, name in node_sets.items():
        owner, _, ordinal = name.rpartition("-")
        taken = {name, owner} if ordinal.isdecimal() else {name}
        for pool in login.pools:
            if object_name(pool) in taken:
                yield Problem(
                    f"{path}.name", f'got "{name}", a name of login.pools.{pool} and its pods. Choose another name.'
                )


def _group_problems(pods: LoginPods, path: str, groups: Sequence[GroupSpec]) -> Iterator[Problem]:
    names = [group.name for group in groups]
    if not known(pods.groups, *names):
        return
    for index, group in enumerate(pods.groups):
        if known(group) and group not in names:
            yield Problem(
                f"{path}.groups[{index}]",
                f'"{group}" is not in the groups of the cluster. Add it there, and to the groups of its users.',
            )


def _service_problems(login: LoginPods, path: str) -> Iterator[Problem]:
    opened = login.service in {ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER}
    if known(login.node_port) and login.node_port is not None and not opened:
        text = f"given with {path}.service {login.service}, which has none. Remove it, or set NodePort."
        yield Problem(f"{path}.node_port", text)
    balanced = login.service is ServiceType.LOAD_BALANCER
    if known(login.load_balancer_class) and login.load_balancer_class is not None and not balanced:
        text = f"given with {path}.service {login.service}, which has no load balancer. Remove it, or set LoadBalancer."
        yield Problem(f"{path}.load_balancer_class", text)
    if known(login.allowed_sources) and opened and not login.allowed_sources:
        yield Problem(
            f"{path}.allowed_sources",
            f"empty, but {path}.service is {login.service}: no one could connect. "
            'List the addresses that may, such as ["10.0.0.0/8"].',
        )
