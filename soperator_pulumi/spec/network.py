"""Network of jobs and sessions."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, StrictBool, WithJsonSchema

from soperator_pulumi.spec.types.addresses import CIDR_PATTERN, Cidr, Ports, cidr
from soperator_pulumi.spec.validation.base import Model


class Destination(StrEnum):
    """Keywords for destinations of jobs and sessions."""

    INTERNET = "internet"
    """All addresses that are not private."""
    PRIVATE = "private"
    """The private ranges of RFC 1918, RFC 6598 and RFC 4193, which include a site's own servers."""
    CLUSTER = "cluster"
    """The pods of all namespaces of the Kubernetes cluster."""


_WANTED = 'needs "internet", "private", "cluster" or addresses in CIDR notation, such as "10.0.0.0/8".'


EgressDestination = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if value in (*Destination,) else cidr(value, _WANTED)),
    WithJsonSchema({"anyOf": [{"enum": [*Destination]}, {"type": "string", "pattern": CIDR_PATTERN}]}),
]
"""A keyword for destinations, or a range of addresses."""


class NetworkSpec(Model):
    """Destinations of login, worker and admin pods, in addition to the cluster's own pods and name servers."""

    egress: tuple[EgressDestination, ...] = tuple(map(str, Destination))
    """Destinations: `internet` (all addresses that are not private), `private` (the ranges of RFC 1918, RFC 6598
    and RFC 4193), `cluster` (pods of all namespaces) and addresses in CIDR notation. Metadata services, link-local
    addresses and the Kubernetes API stay closed, unless a CIDR names only such addresses. Default: all three
    keywords."""
    closed_ports: tuple[Ports, ...] = (Ports(2379, 2381), Ports(6443, 6443), Ports(10248, 10259))
    """TCP ports closed at all of these addresses, except on the cluster's own pods. Default: those of etcd, the
    Kubernetes API, the kubelet and related components on every machine. An empty list closes none, for network plugins
    without port ranges (`endPort`)."""
    ipv6: StrictBool = False
    """Let Slurm's daemons and commands use IPv6 addresses, in addition to IPv4 (`EnableIPv6` of
    `CommunicationParameters`). Needed if pods only have IPv6 addresses, or have them first; a preview then reports it.
    Set it in the first deployment: daemons keep the addresses on which they listen until they restart."""
    api_servers: tuple[Cidr, ...] | None = None
    """Closed addresses of the Kubernetes API. Default: those of the Service `kubernetes` and its EndpointSlices in the
    namespace `default` at the time of a deployment. Give ranges if they change."""
