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
    network = _Network(scope, spec, api_servers)
    rules = {
        **network.of_slurm(),
        **network.of_package_jobs(),
        **network.of_rest(),
        **network.of_metrics(),
        **network.of_accounting(),
    }
    policies = {
        "default-deny-ingress": _policy(scope.selector(), Rules([], None)),
        SESSIONS: _policy(network.login_labels, network.of_sessions()),
    } | {component: _policy(scope.selector(component), allowed) for component, allowed in rules.items()}
    created = {policy: _create(name, scope, policy, spec_of_policy) for policy, spec_of_policy in policies.items()}
    for component, login in spec.login.by_name.items():
        opened_to = Rules(_open_to(map(_addresses, login.allowed_sources), layout.SSH_PORT), None)
        policy = _policy(scope.selector(component), opened_to)
        # An update takes the egress of sessions out of it, which the other policy has to close before.
        created[component] = _create(name, scope, component, policy, after=[created[SESSIONS]])
    return created


class _Network:
    """Peers of a cluster, and the rules of its components by their names. A part that the spec lacks has none."""

    def __init__(self, scope: Scope, spec: ClusterSpec, api_servers: pulumi.Output[Sequence[str]]) -> None:
        self._scope, self._spec, self._api_servers = scope, spec, api_servers
        self.login_labels = {**scope.selector(), **layout.LOGIN_PODS}
        self._controller, self._workers = (_pods(scope, component) for component in ("controller", "worker"))
        self._logins = _peer(self.login_labels)
        self._nodes = [self._controller, self._logins, self._workers]
        self._slurmdbd = [_pods(scope, ACCOUNTING)] if spec.accounting else []
        self._rest = [_pods(scope, REST)] if spec.rest else []
        self._checks = [_pods(scope, HEALTH_CHECKS)] if spec.health.long_checks else []
        self._metrics = [_pods(scope, METRICS)] if spec.metrics else []
        first, last = layout.SRUN_PORTS
        self._srun = NetworkPolicyPortArgs(protocol="TCP", port=first, end_port=last)
        udp = [NetworkPolicyPortArgs(protocol="UDP", port=port) for port in egress.DNS_PORTS]
        self._names = NetworkPolicyEgressRuleArgs(ports=[*map(_tcp, egress.DNS_PORTS), *udp])
        self._to_nodes = NetworkPolicyEgressRuleArgs(to=[*self._nodes, *self._slurmdbd])
        self._to_slurmctld = _to([self._controller], layout.SLURMCTLD_PORT)
        self._opened = _opened(spec.network, api_servers)

    def of_slurm(self) -> dict[str, Rules]:
        callers = [*self._nodes, *self._slurmdbd, *self._rest, *self._metrics, *self._checks]
        return {
            "controller": Rules([_from(callers, _tcp(layout.SLURMCTLD_PORT))], [self._to_nodes, self._names]),
            "worker": Rules(
                [
                    _from([self._controller], _tcp(layout.SLURMD_PORT)),
                    _from(self._nodes, self._srun),
                    _from([self._logins, self._workers]),
                ],
                [self._to_nodes, self._names, *self._opened],
            ),
            ADMIN: Rules([], [self._names, *self._opened]),
        }

    def of_sessions(self) -> Rules:
        return Rules([_from(self._nodes, self._srun)], [self._to_nodes, self._names, *self._opened])

    def of_package_jobs(self) -> dict[str, Rules]:
        """Return the rules of the Jobs and CronJobs that fill the jail, switch trees, fetch images, and test nodes."""
        source = self._spec.jail.source
        streams = source is not None and source.tarball is not None
        everything = [NetworkPolicyEgressRuleArgs()]
        return {
            # There for any source: a policy that a change removes would be in force until after the Job.
            POPULATE: Rules([], everything if streams else []),
            SWITCH: Rules([], []),
            **({CONTAINER_IMAGES: Rules([], everything)} if self._spec.containers is not None else {}),
            **({HEALTH_CHECKS: Rules([], [self._to_slurmctld, self._names])} if self._checks else {}),
        }

    def of_rest(self) -> dict[str, Rules]:
        rest = self._spec.rest
        if rest is None:
            return {}
        clients = [*map(_addresses, rest.allowed_sources), *map(_namespace, rest.allowed_namespaces)]
        # The exporter reads the certificate in a handshake, and sends no request.
        clients += self._metrics if serves_certificate(self._spec) else []
        to_slurmdbd = [_to(self._slurmdbd, layout.SLURMDBD_PORT)] if self._slurmdbd else []
        return {REST: Rules(_open_to(clients, layout.REST_PORT), [self._to_slurmctld, *to_slurmdbd, self._names])}

    def of_metrics(self) -> dict[str, Rules]:
        metrics = self._spec.metrics
        if metrics is None:
            return {}
        to_rest = [_to(self._rest, layout.REST_PORT)] if serves_certificate(self._spec) else []
        called = [self._to_slurmctld, *to_rest, self._names]
        readers = map(_namespace, metrics.allowed_namespaces)
        return {
            METRICS: Rules(
                _open_to(readers, layout.METRICS_PORT),
                _with_kubernetes(called, self._api_servers) if calls_kubernetes(metrics) else called,
            )
        }

    def of_accounting(self) -> dict[str, Rules]:
        accounting = self._spec.accounting
        if accounting is None:
            return {}
        to_database = _to_database(self._scope, accounting)
        slurmdbd = Rules(
            [_from([*self._nodes, *self._rest], _tcp(layout.SLURMDBD_PORT))],
            [self._to_slurmctld, to_database, self._names],
        )
        if accounting.own is None:
            return {ACCOUNTING: slurmdbd}
        dumps = _pods(self._scope, layout.DUMP_COMPONENT)
        return {
            ACCOUNTING: slurmdbd,
            DATABASE: Rules([_from([*self._slurmdbd, dumps], _tcp(layout.DATABASE_PORT))], []),
            # There without dumps as well: a Job may outlive them.
            layout.DUMP_COMPONENT: Rules([], [to_database, self._names]),
        }


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
    return _to([_peer(labels)], layout.DATABASE_PORT)


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


def _to(peers: Sequence[NetworkPolicyPeerArgs], port: int) -> NetworkPolicyEgressRuleArgs:
    return NetworkPolicyEgressRuleArgs(to=[*peers], ports=[_tcp(port)])


def _from(peers: Sequence[NetworkPolicyPeerArgs], *ports: NetworkPolicyPortArgs) -> NetworkPolicyIngressRuleArgs:
    return NetworkPolicyIngressRuleArgs(from_=[*peers], ports=[*ports] or None)


def _open_to(peers: Iterable[NetworkPolicyPeerArgs], port: int) -> list[NetworkPolicyIngressRuleArgs]:
    """Return a rule that admits these peers; none if there are no peers, as a rule without sources admits everyone."""
    found = [*peers]
    return [_from(found, _tcp(port))] if found else []


def _tcp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="TCP", port=port)
