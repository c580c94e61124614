"""The API server: its release, its addresses, and the kinds of other projects' operators that it must serve."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from soperator_pulumi.errors import KubernetesError, Problem
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned

CHECK = "release"

OLDEST_MINOR = 29
"""Oldest supported minor release: native sidecars, which every pod of Slurm has, are on by default (KEP-753)."""

_FEATURES: Sequence[tuple[int, str, Callable[[str, Any], bool]]] = (
    (25, "ranges of ports in NetworkPolicies (endPort)", lambda key, _value: key == "endPort"),
    (29, "native sidecars", lambda key, value: key == "initContainers" and any("restartPolicy" in e for e in value)),
    (29, "Jobs that stop at a failure that no retry cures", lambda key, _value: key == "podFailurePolicy"),
    (30, "a field for the AppArmor profile", lambda key, _value: key == "appArmorProfile"),
)
"""Features by the minor release in which they are on by default: kubernetes.io, Feature Gates."""

_API_SERVICE = "/api/v1/namespaces/default/services/kubernetes"
_API_ENDPOINTS = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def release_findings(kube: Kube, objects: Sequence[Json] = ()) -> Iterator[Diagnosis]:
    """Yield findings about the server's release, by the features that the objects use."""
    answer = kube.get("/version") or {}
    shown = str(answer.get("gitVersion", "of an unknown version"))
    number = re.match(r"\d+", str(answer.get("minor", "")))
    if number is None:
        text = f"the API server is {shown}: the release cannot be judged"
        yield warned(CHECK, "Kubernetes", text, f"Kubernetes 1.{OLDEST_MINOR} or newer", "Look it up by hand.")
        return
    used = [(since, feature) for since, feature, uses in _FEATURES if any(_any(object_, uses) for object_ in objects)]
    minor = int(number[0])
    missing = [feature for since, feature in used if since > minor]
    if missing or minor < OLDEST_MINOR:
        newest = max(OLDEST_MINOR, *(since for since, _ in used), 0)
        without = f", without {', '.join(missing)}" if missing else ""
        yield refused(
            CHECK,
            "Kubernetes",
            f"the API server is {shown}{without}",
            f"Kubernetes 1.{newest} or newer",
            "Upgrade the control plane and the machines.",
        )
    else:
        yield passed(CHECK, "Kubernetes", f"the API server is {shown}")


def kubelet_findings(machines: Sequence[Json]) -> Iterator[Diagnosis]:
    """Yield machines whose kubelet is too old."""
    for machine in machines:
        shown = str(machine.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", ""))
        match = re.match(r"v1\.(\d+)", shown)
        if match and int(match[1]) < OLDEST_MINOR:
            yield refused(
                CHECK,
                f"machine {machine['metadata']['name']}",
                f"its kubelet is {shown}",
                f"v1.{OLDEST_MINOR} or newer, for native sidecars",
                "Upgrade the machine, or keep Slurm's pods from it by node_selector.",
            )


def _any(value: object, uses: Callable[[str, Any], bool]) -> bool:
    if isinstance(value, dict):
        return any(uses(key, item) or _any(item, uses) for key, item in value.items())
    return isinstance(value, list) and any(_any(item, uses) for item in value)


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


@dataclass(frozen=True)
class Operator:
    """An operator that provides kinds."""

    title: str
    part: str
    """Key of the platform that installs it."""


_PROMETHEUS = Operator("Prometheus' operator", "kube_prometheus_stack")
_MARIADB = Operator("MariaDB's operator", "mariadb_operator")

OPERATORS = {"monitoring.coreos.com": _PROMETHEUS, "k8s.mariadb.com": _MARIADB}
"""Operators by the group of their kinds."""

_WITHOUT = {
    "podmonitors.monitoring.coreos.com": "set metrics.pod_monitor: false",
    "prometheusrules.monitoring.coreos.com": "leave out metrics.alerts",
    "mariadbs.k8s.mariadb.com": "choose another database",
}
"""Alternative to a kind, by the name of its definition."""


def custom_kind_problems(kube: Kube, path: str, definition: str, version: str) -> Iterator[Problem]:
    """Yield a problem if the server does not serve a kind.

    The check reads the server's own list of an API, which every user may do (ClusterRole `system:discovery`), and not
    the definitions.

    Args:
        kube: The Kubernetes.
        path: Field of the spec that needs the kind.
        definition: Name of the CustomResourceDefinition: `podmonitors.monitoring.coreos.com`.
        version: Version of its objects.
    """
    plural, _, group = definition.partition(".")
    served = (kube.get(f"/apis/{group}/{version}") or {}).get("resources", [])
    if plural in {item["name"] for item in served}:
        return
    operator = OPERATORS[group]
    yield Problem(
        path,
        f"needs {operator.title}, but the API server knows no {definition} ({version}). Install it "
        f"(platform.{operator.part} does), or {_WITHOUT[definition]}. If the program itself installs it in another "
        f"way, before the cluster, give the cluster platform: {{{operator.part}: true}}.",
    )
