"""The pod network: names of pods, and enforcement of NetworkPolicies with port ranges and egress.

A server listens on three ports. One policy admits the first two to it; another lets one of two clients connect to the
first only. So every direction is seen open and closed, by its own rule.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight import probing_client
from soperator_pulumi.operations.preflight.cluster_probe import (
    ClusterProbe,
    ProbePlace,
    harmless,
    json_answer_of,
    probe_pod,
)
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPods
from soperator_pulumi.render import egress, layout

CHECK = "network"

_FIRST, _SECOND, _THIRD = 7001, 7002, 7003
_METADATA = "169.254.169.254"
_ROLE = "soperator-pulumi/preflight-role"

_PYTHON = layout.JAIL_TOOLS[0]

_IMPATIENT = [{"name": "timeout", "value": "1"}, {"name": "attempts", "value": "1"}]
"""Resolver options (resolv.conf(5)) for quick failures: the client retries by itself."""

_LISTEN = f"""\
import socket, threading, time
def accept(server):
    while True:
        server.accept()[0].close()
for port in ({_THIRD}, {_SECOND}, {_FIRST}):
    threading.Thread(target=accept, args=[socket.create_server(("", port))], daemon=True).start()
time.sleep(600)
"""
"""Program of the server. Clients wait for the first port, which it opens last."""

_DNS = [{"protocol": protocol, "port": port} for protocol in ("UDP", "TCP") for port in egress.DNS_PORTS]


def network_probe(place: ProbePlace, planned: PlannedCluster, machines: Sequence[Json], seconds: float) -> ClusterProbe:
    """Return the probe. If there are two machines, its server runs on one and its clients on the other.

    Args:
        place: Place of the probe.
        planned: The cluster.
        machines: Machines on which its pods may run.
        seconds: Time in which a policy has to be in force.
    """
    like = planned.pods[0]
    image = image_with_python(planned.pods)
    first, last = (str(machines[index]["metadata"]["name"]) for index in (0, -1))
    server, free, limited = (place.name(name) for name in ("server", "free", "limited"))
    service = place.name("pods")
    domain = f"{service}.{place.namespace}.svc.{planned.cluster_domain}"
    names = [["full", f"{server}.{domain}"], ["short", server]]
    plans: dict[str, Json] = {
        free: {
            "open": [["first", "", _FIRST], ["second", "", _SECOND]],
            "closed": [["third", "", _THIRD]],
        },
        limited: {
            "open": [["first", "", _FIRST]],
            "closed": [["second", "", _SECOND], ["link_local", _METADATA, 80]],
        },
    }
    programs = {server: ["-c", _LISTEN]} | {
        name: [
            "-c",
            Path(probing_client.__file__).read_text(encoding="utf-8"),
            json.dumps({**plan, "names": names, "seconds": seconds}),
        ]
        for name, plan in plans.items()
    }
    pods = []
    for name, arguments in programs.items():
        container = {
            "name": "network",
            "image": image["image"],
            "imagePullPolicy": image.get("imagePullPolicy"),
            "command": [_PYTHON, "-I", *arguments],
            "securityContext": harmless(),
        }
        body = probe_pod(name, [container], like.spec, first if name == server else last)
        body["metadata"]["labels"] = {_ROLE: name}
        body["spec"] |= {
            "hostname": name,
            "subdomain": service,
            "dnsConfig": {"searches": [domain], "options": _IMPATIENT},
        }
        pods.append(body)
    objects = [_service(service, place), *_policies(place, server, limited), *pods]

    def judge(found: Mapping[str, Pod]) -> Iterator[Diagnosis]:
        answers = {name: json_answer_of(found.get(name)) for name in (free, limited)}
        yield from network_findings(answers[free], answers[limited], across=first != last)

    return ClusterProbe(CHECK, "network", objects, [free, limited], judge)


def network_findings(
    free: Mapping[str, Any] | None, limited: Mapping[str, Any] | None, *, across: bool
) -> Iterator[Diagnosis]:
    """Yield the faults of the pod network, from the answers of both clients.

    Args:
        free: Answer of the client that no egress policy chooses.
        limited: Answer of the client that may reach the server's first port alone.
        across: True if server and clients were on two machines.
    """
    if free is None or limited is None:
        text = "not checked: a probe's pod did not answer"
        yield warned(CHECK, "network", text, "", "Look at the findings about images, and run it again.")
        return
    faults = [*_name_faults(free), *_policy_faults(free, limited)]
    yield from faults
    if not faults:
        where = "between two machines" if across else "on one machine: there is no second one"
        yield passed(CHECK, "network", f"names of pods are resolved, and NetworkPolicies enforced, {where}")


def _name_faults(free: Mapping[str, Any]) -> Iterator[Diagnosis]:
    for kind, need in (("full", "names of pods behind a headless Service"), ("short", "search domains of dnsConfig")):
        if not free["names"].get(kind):
            yield refused(
                CHECK,
                "cluster_domain",
                f"{need}: a pod's {kind} name is not resolved in a pod",
                "a cluster DNS that serves them: Slurm's daemons find each other by name",
                "Check cluster_domain of the spec, and the cluster's DNS (CoreDNS).",
            )


def _policy_faults(free: Mapping[str, Any], limited: Mapping[str, Any]) -> Iterator[Diagnosis]:
    closed = "Install a network plugin that enforces NetworkPolicies in both directions (Cilium, Calico)."
    if not any(free["names"].values()):
        return
    if not free["open"]["first"]:
        text = "a pod does not reach another one at a port that a policy admits"
        yield refused(CHECK, "network", text, "pods that reach each other", "Repair the pod network.")
        return
    if free["open"]["third"]:
        text = "a port that a NetworkPolicy closes for ingress is open: the policy is not enforced"
        yield refused(CHECK, "network", text, "enforced ingress policies, which guard Slurm's daemons", closed)
    if not free["open"]["second"]:
        text = "of a range of ports (endPort) that a policy admits, only the first is open"
        cure = "Upgrade the network plugin, and set network.closed_ports: [] until then."
        yield refused(CHECK, "network", text, "ranges of ports in policies", cure)
    if not limited["open"]["first"]:
        text = "a pod with an egress policy does not reach what the policy opens"
        yield refused(CHECK, "network", text, "egress policies that open what they name", closed)
    if limited["open"]["second"]:
        text = "a port that a NetworkPolicy closes for egress is open: jobs reach everything"
        yield refused(CHECK, "network.egress", text, "enforced egress policies", closed)
    if limited["open"].get("link_local"):
        text = f"the metadata service ({_METADATA}) is open to a pod whose policy does not name it"
        yield refused(CHECK, "network.egress", text, "link-local addresses closed to jobs", closed)


def image_with_python(every: Sequence[PlannedPods]) -> Json:
    """Return a container whose image has this project's Python."""
    with_python = (
        container for pods in every for container in pods.containers if container.get("command", [""])[0] == _PYTHON
    )
    return next(with_python)


def _service(name: str, place: ProbePlace) -> Json:
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": place.labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _policies(place: ProbePlace, server: str, limited: str) -> Iterator[Json]:
    admitted = [{"protocol": "TCP", "port": _FIRST, "endPort": _SECOND}]
    ingress = {"policyTypes": ["Ingress"], "ingress": [{"ports": admitted}]}
    peers = [{"podSelector": {"matchLabels": {_ROLE: server}}}]
    out = [{"to": peers, "ports": [{"protocol": "TCP", "port": _FIRST}]}, {"ports": _DNS}]
    outgoing = {"policyTypes": ["Egress"], "egress": out}
    for name, chosen, rules in (("ingress", server, ingress), ("egress", limited, outgoing)):
        spec = {"podSelector": {"matchLabels": {_ROLE: chosen}}, **rules}
        metadata = {"name": place.name(name)}
        yield {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}
