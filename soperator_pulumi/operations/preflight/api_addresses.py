"""Addresses at which pods reach the Kubernetes API."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_network

from soperator_pulumi.errors import KubernetesError, Problem
from soperator_pulumi.kube.verbs import Kube

_API_SERVICE = "/api/v1/namespaces/default/services/kubernetes"
_API_ENDPOINTS = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def api_servers(kube: Kube) -> list[str]:
    """Return the addresses at which pods reach the Kubernetes API, in CIDR notation: `10.96.0.1/32`.

    They are those of the Service `kubernetes` in the namespace `default`, which every cluster has, and its endpoints:
    the network plugin decides which of the two a NetworkPolicy sees.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    service = (kube.get(_API_SERVICE) or {}).get("spec", {})
    slices = kube.find(_API_ENDPOINTS, {"kubernetes.io/service-name": "kubernetes"})
    behind = [
        address
        for slice_ in slices
        if slice_.get("addressType") != "FQDN"
        for end in slice_.get("endpoints") or []
        for address in end["addresses"]
    ]
    networks = {ip_network(address) for address in [*service.get("clusterIPs", []), *behind]}
    return [
        str(network)
        for network in sorted(networks, key=lambda network: (network.version, int(network.network_address)))
    ]


def ipv6_problems(kube: Kube) -> Iterator[Problem]:
    """Yield a problem if Slurm has no IPv6 on a Kubernetes cluster whose first addresses are IPv6.

    Services and pods have addresses of the family of the Service `kubernetes` first; a headless Service names those.
    Without the right to read it, nothing is known or yielded.
    """
    try:
        address = (kube.get(_API_SERVICE) or {}).get("spec", {}).get("clusterIP", "")
    except KubernetesError:
        return
    if ":" in address:
        yield Problem(
            "network.ipv6",
            f'false, but the Service "kubernetes" has {address}: pods have IPv6 addresses first here, at which daemons '
            "of Slurm would not listen. Set network.ipv6: true.",
        )


def closed_api_servers(kube: Kube, given: Sequence[str] | None) -> tuple[list[str], list[Problem]]:
    """Return the addresses of the Kubernetes API to close, and the problems if they are unknown, from one read.

    Args:
        kube: The cluster.
        given: Addresses that the spec lists; None for those of the cluster's own Service.
    """
    if given is not None:
        return [*given], []
    field, step = "network.api_servers", "List its addresses here, in CIDR notation."
    try:
        found = api_servers(kube)
    except KubernetesError as error:
        text = f"not given, and the addresses of the Kubernetes API cannot be read: {error} {step}"
        return [], [Problem(field, text)]
    text = f'not given, and the Service "kubernetes" in the namespace "default" has no address. {step}'
    return found, [] if found else [Problem(field, text)]
