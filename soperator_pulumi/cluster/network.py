"""The network of a cluster: the Service by which Slurm's pods find each other, and NetworkPolicies.

Ingress is closed but for:

| to        | port             | from                                                        |
|-----------|------------------|-------------------------------------------------------------|
| slurmctld | 6817             | controller, login, workers, slurmdbd, REST API, long checks |
| slurmd    | 6818             | controller, login, workers: srun and slurmd itself call it  |
| workers   | all              | login, workers: steps and MPI listen on ports of their own  |
| srun      | srun's own range | controller, login, workers                                  |
| sshd      | 2222             | `allowed_sources` of `login`, or of a pool's own            |
| slurmdbd  | 6819             | controller, login, workers: sacct and sacctmgr call it      |
| MariaDB   | 3306             | slurmdbd, dumps                                             |
| REST API  | 6820             | `rest.allowed_sources`, `rest.allowed_namespaces`; with     |
|           |                  | `rest.tls` the exporter, which reads the certificate's end  |
| exporter  | 9341             | `metrics.allowed_namespaces`                                |

So processes of every user can connect to slurmctld, slurmd and the steps of others, which answer by the identity that
munge proves. munged listens on a socket inside each pod. Egress is closed but for:

| from                   | to                                                                                   |
|------------------------|--------------------------------------------------------------------------------------|
| controller             | controller, login, workers, slurmdbd; name servers                                   |
| slurmdbd               | slurmctld, the database; name servers                                                |
| REST API               | slurmctld, slurmdbd; name servers                                                    |
| exporter of metrics    | slurmctld; name servers; with events or conditions the Kubernetes API; with          |
|                        | `rest.tls` the REST API                                                              |
| MariaDB                | nothing                                                                              |
| dumps                  | the database; name servers                                                           |
| long checks            | slurmctld; name servers                                                              |
| login, workers         | the same, and what `network.egress` opens, without `network.closed_ports`            |
| admin shell            | name servers, and what `network.egress` opens, without `network.closed_ports`        |
| populate, of a tarball | everything: its address may be any                                                   |
| container images       | everything: registries may be anywhere                                               |
| other Jobs of the jail | nothing: one runs programs of the image that it copies                               |

NetworkPolicies do not filter a machine's own traffic to its pods (probes, `kubectl exec` and `port-forward`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pulumi
from pulumi_kubernetes.core.v1 import Service, ServiceSpecArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs
from pulumi_kubernetes.networking.v1 import (
    IPBlockArgs,
    NetworkPolicy,
    NetworkPolicyEgressRuleArgs,
    NetworkPolicyIngressRuleArgs,
    NetworkPolicyPeerArgs,
    NetworkPolicyPortArgs,
    NetworkPolicySpecArgs,
)

from soperator_pulumi.cluster.accounting import ACCOUNTING
from soperator_pulumi.cluster.admin import ADMIN
from soperator_pulumi.cluster.container_images import CONTAINER_IMAGES
from soperator_pulumi.cluster.database import DATABASE
from soperator_pulumi.cluster.jail_pods import POPULATE, SWITCH
from soperator_pulumi.cluster.long_checks import HEALTH_CHECKS
from soperator_pulumi.cluster.metrics_exporter import METRICS
from soperator_pulumi.cluster.operator_database import OPERATOR_PODS
from soperator_pulumi.cluster.pod_template import NODES_SERVICE
from soperator_pulumi.cluster.rest_api import REST, serves_certificate
from soperator_pulumi.cluster.scope import SKIP_AWAIT, SLURM_LABEL, Scope
from soperator_pulumi.render import egress, layout
from soperator_pulumi.render.egress import Block
from soperator_pulumi.spec.accounting import AccountingSpec
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.metrics import calls_kubernetes
from soperator_pulumi.spec.network import Destination, NetworkSpec
from soperator_pulumi.spec.types.addresses import Ports

SESSIONS = "sessions"
"""Policy of all login nodes but for sshd's port. Sessions of a pool that leaves the stack have it until they end."""


class Rules(NamedTuple):
    """Connections of a component's pods. All others are blocked.

    Attributes:
        ingress: To the pods.
        egress: From the pods; None leaves all open.
    """

    ingress: list[NetworkPolicyIngressRuleArgs]
    egress: pulumi.Input[Sequence[NetworkPolicyEgressRuleArgs]] | None


def create_nodes_service(name: str, scope: Scope) -> Service:
    """Create the headless Service of the pods in which Slurm runs."""
    return Service(
        f"{name}-nodes",
        # The Service has no port to wait for, and the pods wait for the Service.
        metadata=scope.metadata(NODES_SERVICE, annotations=SKIP_AWAIT),
        spec=ServiceSpecArgs(
            cluster_ip="None", publish_not_ready_addresses=True, selector={**scope.selector(), **SLURM_LABEL}
        ),
        opts=scope.options(),
    )


def create_network_policies(
    name: str, scope: Scope, spec: ClusterSpec, api_servers: pulumi.Output[Sequence[str]]
) -> dict[str, NetworkPolicy]:
    """Create the policies of the tables above, and return them by their names in Kubernetes.

    Args:
        name: Name of the cluster's component.
        scope: Scope of its children.
        spec: The cluster.
        api_servers: Addresses of the Kubernetes API, closed to users' pods.
    """
    controller, workers = (_pods(scope, component) for component in ("controller", "worker"))
    all_logins = {**scope.selector(), **layout.LOGIN_PODS}
    logins = _peer(all_logins)
    ours = [controller, logins, workers]
    slurmdbd = [_pods(scope, ACCOUNTING)] if spec.accounting else []
    rest = [_pods(scope, REST)] if spec.rest else []
    checks = [_pods(scope, HEALTH_CHECKS)] if spec.health.long_checks else []
    metrics = [_pods(scope, METRICS)] if spec.metrics else []
    first, last = layout.SRUN_PORTS
    srun = NetworkPolicyPortArgs(protocol="TCP", port=first, end_port=last)
    streams = spec.jail.source is not None and spec.jail.source.tarball is not None
    udp = [NetworkPolicyPortArgs(protocol="UDP", port=port) for port in egress.DNS_PORTS]
    names = NetworkPolicyEgressRuleArgs(ports=[*map(_tcp, egress.DNS_PORTS), *udp])
    among_ours = NetworkPolicyEgressRuleArgs(to=[*ours, *slurmdbd])
    to_slurmctld = NetworkPolicyEgressRuleArgs(to=[controller], ports=[_tcp(layout.SLURMCTLD_PORT)])
    opened = _opened(spec.network, api_servers)
    rules = {
        "controller": Rules(
            [_from([*ours, *slurmdbd, *rest, *metrics, *checks], _tcp(layout.SLURMCTLD_PORT))], [among_ours, names]
        ),
        "worker": Rules(
            [_from([controller], _tcp(layout.SLURMD_PORT)), _from(ours, srun), _from([logins, workers])],
            [among_ours, names, *opened],
        ),
        ADMIN: Rules([], [names, *opened]),
        # There for any source: a policy that a change removes would be in force until after the Job.
        POPULATE: Rules([], [NetworkPolicyEgressRuleArgs()] if streams else []),
        SWITCH: Rules([], []),
    }
    if spec.containers is not None:
        rules[CONTAINER_IMAGES] = Rules([], [NetworkPolicyEgressRuleArgs()])
    if spec.health.long_checks:
        rules[HEALTH_CHECKS] = Rules([], [to_slurmctld, names])
    if spec.rest is not None:
        clients = [*map(_addresses, spec.rest.allowed_sources), *map(_namespace, spec.rest.allowed_namespaces)]
        to_slurmdbd = [NetworkPolicyEgressRuleArgs(to=slurmdbd, ports=[_tcp(layout.SLURMDBD_PORT)])] if slurmdbd else []
        # The exporter reads the certificate in a handshake, and sends no request.
        clients += metrics if serves_certificate(spec) else []
        rules[REST] = Rules(_open_to(clients, layout.REST_PORT), [to_slurmctld, *to_slurmdbd, names])
    if spec.metrics is not None:
        readers = map(_namespace, spec.metrics.allowed_namespaces)
        to_rest = [NetworkPolicyEgressRuleArgs(to=rest, ports=[_tcp(layout.REST_PORT)])]
        called = [to_slurmctld, *(to_rest if serves_certificate(spec) else []), names]
        rules[METRICS] = Rules(
            _open_to(readers, layout.METRICS_PORT),
            _with_kubernetes(called, api_servers) if calls_kubernetes(spec.metrics) else called,
        )
    if spec.accounting is not None:
        database = _to_database(scope, spec.accounting)
        rules[ACCOUNTING] = Rules([_from([*ours, *rest], _tcp(layout.SLURMDBD_PORT))], [to_slurmctld, database, names])
        if spec.accounting.own is not None:
            dumps = _pods(scope, layout.DUMP_COMPONENT)
            rules[DATABASE] = Rules([_from([*slurmdbd, dumps], _tcp(layout.DATABASE_PORT))], [])
            # There without dumps as well: a Job may outlive them.
            rules[layout.DUMP_COMPONENT] = Rules([], [database, names])
    policies = {
        "default-deny-ingress": _policy(scope.selector(), Rules([], None)),
        SESSIONS: _policy(all_logins, Rules([_from(ours, srun)], [among_ours, names, *opened])),
    } | {component: _policy(scope.selector(component), allowed) for component, allowed in rules.items()}
    created = {policy: _create(name, scope, policy, spec_of_policy) for policy, spec_of_policy in policies.items()}
    for component, login in spec.login.by_name.items():
        opened_to = Rules(_open_to(map(_addresses, login.allowed_sources), layout.SSH_PORT), None)
        policy = _policy(scope.selector(component), opened_to)
        # An update takes the egress of sessions out of it, which the other policy has to close before.
        created[component] = _create(name, scope, component, policy, after=[created[SESSIONS]])
    return created


def _create(
    name: str, scope: Scope, policy: str, spec: NetworkPolicySpecArgs, after: Sequence[NetworkPolicy] = ()
) -> NetworkPolicy:
    opts = scope.options(depends_on=after)
    return NetworkPolicy(f"{name}-network-{policy}", metadata=scope.metadata(policy), spec=spec, opts=opts)


def _policy(selector: Mapping[str, str], rules: Rules) -> NetworkPolicySpecArgs:
    """Return the policy for the pods with these labels."""
    return NetworkPolicySpecArgs(
        pod_selector=LabelSelectorArgs(match_labels=selector),
        policy_types=["Ingress"] if rules.egress is None else ["Ingress", "Egress"],
        ingress=[*rules.ingress],
        egress=rules.egress,
    )


def _to_database(scope: Scope, accounting: AccountingSpec) -> NetworkPolicyEgressRuleArgs:
    """Return the rule from slurmdbd to its database. The addresses of an external host are unknown."""
    if accounting.database.external is not None:
        return NetworkPolicyEgressRuleArgs(ports=[_tcp(accounting.database.external.port)])
    labels = OPERATOR_PODS if accounting.own is None else scope.selector(DATABASE)
    return NetworkPolicyEgressRuleArgs(to=[_peer(labels)], ports=[_tcp(layout.DATABASE_PORT)])


def _pods(scope: Scope, component: str) -> NetworkPolicyPeerArgs:
    return _peer(scope.selector(component))


def _peer(labels: Mapping[str, str]) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs(match_labels=labels))


def _opened(network: NetworkSpec, api_servers: pulumi.Output[Sequence[str]]) -> list[NetworkPolicyEgressRuleArgs]:
    """Return the egress rule for users' pods beyond the cluster itself; none if all of it is closed."""
    peers = [_without(block, api_servers) for block in egress.blocks(network.egress)]
    if Destination.CLUSTER in network.egress:
        # No pod selector: with one, some plugins count pods on the machines' own network, whose ports stay closed.
        peers.append(NetworkPolicyPeerArgs(namespace_selector=LabelSelectorArgs()))
    if not peers:
        return []  # a rule without peers allows everything
    # Ranges for UDP as well: some plugins know ranges, but no protocol without a port.
    ports = [
        *(_range("TCP", open_port) for open_port in egress.open_ports(network.closed_ports)),
        _range("UDP", Ports.all()),
    ]
    return [NetworkPolicyEgressRuleArgs(to=peers, ports=ports if network.closed_ports else None)]


def _with_kubernetes(
    rules: list[NetworkPolicyEgressRuleArgs], api_servers: pulumi.Output[Sequence[str]]
) -> pulumi.Output[list[NetworkPolicyEgressRuleArgs]]:
    """Add the addresses of the Kubernetes API to egress rules."""

    def added(found: Sequence[str] | None) -> list[NetworkPolicyEgressRuleArgs]:
        peers = [_addresses(address) for address in found or ()]
        # a rule without peers allows everything
        return [*rules, *([NetworkPolicyEgressRuleArgs(to=peers)] if peers else [])]

    return api_servers.apply(added)


def _without(block: Block, api_servers: pulumi.Output[Sequence[str]]) -> NetworkPolicyPeerArgs:
    def closed(found: Sequence[str] | None) -> list[str] | None:
        # A mocked deployment finds none. Kubernetes drops an empty list: Pulumi would report a difference each time.
        return [*block.holes(found or ())] or None

    return NetworkPolicyPeerArgs(ip_block=IPBlockArgs(cidr=block.cidr, except_=api_servers.apply(closed)))


def _range(protocol: str, ports: Ports) -> NetworkPolicyPortArgs:
    last = ports.last if ports.last > ports.first else None
    return NetworkPolicyPortArgs(protocol=protocol, port=ports.first, end_port=last)


def _addresses(cidr: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(ip_block=IPBlockArgs(cidr=cidr))


def _namespace(name: str) -> NetworkPolicyPeerArgs:
    labels = {"kubernetes.io/metadata.name": name}
    return NetworkPolicyPeerArgs(namespace_selector=LabelSelectorArgs(match_labels=labels))


def _from(peers: Sequence[NetworkPolicyPeerArgs], *ports: NetworkPolicyPortArgs) -> NetworkPolicyIngressRuleArgs:
    return NetworkPolicyIngressRuleArgs(from_=[*peers], ports=[*ports] or None)


def _open_to(peers: Iterable[NetworkPolicyPeerArgs], port: int) -> list[NetworkPolicyIngressRuleArgs]:
    """Return a rule that admits these peers; none if there are no peers, as a rule without sources admits everyone."""
    found = [*peers]
    return [_from(found, _tcp(port))] if found else []


def _tcp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="TCP", port=port)
