"""Login nodes: the ssh sessions of users."""

from collections.abc import Iterator
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
from soperator_pulumi.spec.user_pods import UserPods
from soperator_pulumi.spec.validation.base import Matches, whole
from soperator_pulumi.spec.validation.partial import known

SHORTEST_STOP_SECONDS = 30
"""Default of Kubernetes, in which sshd and its sidecars end."""


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


class LoginSpec(UserPods):
    """The pods that run sshd."""

    replicas: Annotated[int, whole(0, 64)] = 1
    """Number of login pods, all with the same host key. 0 refuses all logins."""
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
    docs: Url = "https://slurm.schedmd.com/quickstart.html"
    """Address of the documentation for users, shown at login. Default: Slurm's own."""
    max_processes: Annotated[int, whole(FEWEST_PROCESSES, 4_194_304)] = 2048
    """Processes and threads of a user in sessions on a login node (RLIMIT_NPROC). The kernel counts all pods of a
    machine
    together: if login nodes and workers share machines, set more than the node sets' `max_processes`, or users with
    large jobs there cannot log in."""
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


def problems(login: LoginSpec) -> Iterator[Problem]:
    """Yield problems between the fields of `login`."""
    opened = login.service in {ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER}
    if known(login.node_port) and login.node_port is not None and not opened:
        text = f"given with login.service {login.service}, which has none. Remove it, or set NodePort."
        yield Problem("login.node_port", text)
    balanced = login.service is ServiceType.LOAD_BALANCER
    if known(login.load_balancer_class) and login.load_balancer_class is not None and not balanced:
        text = f"given with login.service {login.service}, which has no load balancer. Remove it, or set LoadBalancer."
        yield Problem("login.load_balancer_class", text)
    if known(login.allowed_sources) and opened and not login.allowed_sources:
        yield Problem(
            "login.allowed_sources",
            f"empty, but login.service is {login.service}: no one could connect. "
            'List the addresses that may, such as ["10.0.0.0/8"].',
        )
