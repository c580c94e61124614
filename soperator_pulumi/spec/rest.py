"""REST API: slurmrestd, through which programs submit and query jobs over HTTP."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.login import ServiceType
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.types.addresses import Cidr
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import DnsLabel, LabelKey, ObjectName
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Model, whole
from soperator_pulumi.spec.validation.partial import known

TokenLifetime = Annotated[Duration, lasting(timedelta(minutes=1), timedelta(days=3650))]


class RestTlsSpec(Model):
    """The certificate of the REST API."""

    secret: Maybe[ObjectName]
    """Name of a Secret of the type kubernetes.io/tls in the cluster's namespace: `tls.crt` with the whole chain, and
    `tls.key`."""


class RestLimitsSpec(Model):
    """Limits of the REST API, enforced by the proxy in front of slurmrestd, per pod."""

    body_kib: Annotated[int, whole(16, 16_384)] = 1024
    """Size of a request's body in KiB: larger requests are refused with 413. Default: 1024."""
    connections: Annotated[int, whole(1, 10_000)] = 100
    """Connections of all clients together; further ones wait. Default: 100."""
    connections_per_client: Annotated[int, whole(1, 10_000)] = 20
    """Connections of one address; further ones are closed. Default: 20."""
    requests_per_client: Annotated[int, whole(1, 100_000)] = 200
    """Requests of one address in 10 seconds; further ones are refused with 429. Default: 200."""
    request_seconds: Annotated[int, whole(1, 600)] = 10
    """Time in seconds for a whole request to arrive, after which it is refused with 408. Default: 10."""


class RestSpec(Scheduled):
    """The pods that run slurmrestd, and access to them."""

    replicas: Annotated[int, whole(1, 16)] = 1
    """Number of pods."""
    service: ServiceType = ServiceType.CLUSTER_IP
    """Access to the API. Default: from inside the Kubernetes cluster only."""
    service_annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Annotations of the Service, for the platform's load balancers."""
    allowed_sources: tuple[Cidr, ...] = ()
    """Addresses that may connect. Default: none."""
    allowed_namespaces: tuple[DnsLabel, ...] = ()
    """Namespaces whose pods may connect; the cluster's own name admits jobs and sessions. Default: none, so that only
    `kubectl port-forward` reaches it."""
    tls: RestTlsSpec | None = None
    """Certificate. Default: none; tokens and jobs are sent unencrypted."""
    max_token_lifetime: TokenLifetime = timedelta(days=1)
    """Longest lifetime of a token that a user may request. Default: 1d."""
    key_version: Annotated[int, whole(1, 1_000_000)] = 1
    """Number of the key that signs tokens. Another number generates another key (or reads your changed Secret again),
    and all earlier tokens are refused."""
    limits: RestLimitsSpec = RestLimitsSpec()
    """Limits that keep clients from harming each other."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="100m", memory="128Mi"), limits=ResourceAmounts(memory="1Gi")
    )
    """Resources of slurmrestd's container. Default: a tenth of a CPU and 128 MiB, at most 1 GiB of memory."""


def problems(rest: RestSpec | None, *, has_image: bool) -> Iterator[Problem]:
    """Yield problems between the fields of `rest`, and with the images."""
    if not known(rest) or rest is None:
        return
    opened = rest.service in {ServiceType.NODE_PORT, ServiceType.LOAD_BALANCER}
    if known(rest.allowed_sources) and opened and not rest.allowed_sources:
        yield Problem(
            "rest.allowed_sources",
            f"empty, but rest.service is {rest.service}: no one could connect. "
            'List the addresses that may, such as ["10.0.0.0/8"].',
        )
    if not has_image:
        yield Problem("images.rest", "missing, and rest is on. Name the image that `make images` prints as `rest`.")
