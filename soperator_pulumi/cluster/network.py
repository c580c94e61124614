"""The network of a cluster: the Service by which Slurm's pods find each other, and NetworkPolicies.

Ingress is closed but for:

| to        | port             | from                                                        |
|-----------|------------------|-------------------------------------------------------------|
| slurmctld | 6817             | controller, login, workers, slurmdbd, REST API, long checks |
| slurmd    | 6818             | controller, login, workers: srun and slurmd itself call it  |
| workers   | all              | login, workers: steps and MPI listen on ports of their own  |
| srun      | srun's own range | controller, login, workers                                  |
| sshd      | 2222             | `login.allowed_sources`                                     |
| slurmdbd  | 6819             | controller, login, workers: sacct and sacctmgr call it      |
| MariaDB   | 3306             | slurmdbd, dumps                                             |
| REST API  | 6820             | `rest.allowed_sources`, `rest.allowed_namespaces`           |
| exporter  | 9341             | `metrics.allowed_namespaces`                                |

So processes of every user can connect to slurmctld, slurmd and the steps of others, which answer by the identity that
munge proves. munged listens on a socket inside each pod. Egress is closed but for:

| from                   | to                                                                                   |
|------------------------|--------------------------------------------------------------------------------------|
| controller             | controller, login, workers, slurmdbd; name servers                                   |
| slurmdbd               | slurmctld, the database; name servers                                                |
| REST API               | slurmctld, slurmdbd; name servers                                                    |
| exporter of metrics    | slurmctld; name servers; with events or conditions the Kubernetes API                |
| MariaDB                | nothing                                                                              |
| dumps                  | the database; name servers                                                           |
| long checks            | slurmctld; name servers                                                              |
| login, workers         | the same, and what `network.egress` opens, without `network.closed_ports`            |
| admin shell            | name servers, and what `network.egress` opens, without `network.closed_ports`        |
| populate, of a tarball | everything: its address may be any                                                   |
| other Jobs of the jail | nothing: one runs programs of the image that it copies                               |

NetworkPolicies do not filter a machine's own traffic to its pods (probes, `kubectl exec` and `port-forward`).
"""

from collections.abc import Sequence

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
from soperator_pulumi.cluster.database import DATABASE
from soperator_pulumi.cluster.jail_pods import POPULATE, SWITCH
from soperator_pulumi.cluster.long_checks import HEALTH_CHECKS
from soperator_pulumi.cluster.metrics_exporter import METRICS
from soperator_pulumi.cluster.operator_database import OPERATOR_PODS
from soperator_pulumi.cluster.pod_template import NODES_SERVICE
from soperator_pulumi.cluster.rest_api import REST
from soperator_pulumi.cluster.scope import SKIP_AWAIT, SLURM_LABEL, Scope
from soperator_pulumi.render import egress, layout
from soperator_pulumi.render.egress import Block
from soperator_pulumi.spec.accounting import AccountingSpec
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.metrics import calls_kubernetes
from soperator_pulumi.spec.network import Destination, NetworkSpec
from soperator_pulumi.spec.types.addresses import Ports


def create_nodes_service(name: str, scope: Scope) -> Service:
    """Create the headless Service of the pods in which Slurm runs."""
    return Service(
        f"{name}-nodes",
        # It has no port to wait for, and the pods wait for it.
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
    controller, logins, workers = (_pods(scope, component) for component in ("controller", "login", "worker"))
    ours = [controller, logins, workers]
    slurmdbd = [_pods(scope, ACCOUNTING)] if spec.accounting else []
    rest = [_pods(scope, REST)] if spec.rest else []
    checks = [_pods(scope, HEALTH_CHECKS)] if spec.health.long_checks else []
    metrics = [_pods(scope, METRICS)] if spec.metrics else []
    first, last = layout.SRUN_PORTS
    srun = NetworkPolicyPortArgs(protocol="TCP", port=first, end_port=last)

    def ingress(component: str | None, *rules: NetworkPolicyIngressRuleArgs) -> NetworkPolicySpecArgs:
        selector = LabelSelectorArgs(match_labels=scope.selector(component))
        return NetworkPolicySpecArgs(pod_selector=selector, policy_types=["Ingress"], ingress=[*rules])

    def egress_of(component: str, *rules: NetworkPolicyEgressRuleArgs) -> NetworkPolicySpecArgs:
        selector = LabelSelectorArgs(match_labels=scope.selector(component))
        return NetworkPolicySpecArgs(pod_selector=selector, policy_types=["Egress"], egress=[*rules])

    to_srun = _from(ours, srun)
    sources = [_addresses(source) for source in spec.login.allowed_sources]
    to_sshd = [_from(sources, _tcp(layout.SSH_PORT))] if sources else []  # a rule without sources admits everybody
    to_slurmd = _from([controller], _tcp(layout.SLURMD_PORT))
    streams = spec.jail.source is not None and spec.jail.source.tarball is not None
    anywhere = [NetworkPolicyEgressRuleArgs()] if streams else []
    names = NetworkPolicyEgressRuleArgs(ports=[kind(port) for kind in (_tcp, _udp) for port in egress.DNS_PORTS])
    among_ours = NetworkPolicyEgressRuleArgs(to=[*ours, *slurmdbd])
    opened = _opened(spec.network, api_servers)
    policies = {
        "default-deny-ingress": ingress(None),
        "controller-ingress": ingress(
            "controller", _from([*ours, *slurmdbd, *rest, *metrics, *checks], _tcp(layout.SLURMCTLD_PORT))
        ),
        "controller-egress": egress_of("controller", among_ours, names),
        "worker-ingress": ingress("worker", to_slurmd, to_srun, _from([logins, workers])),
        "worker-egress": egress_of("worker", among_ours, names, *opened),
        "login-ingress": ingress("login", to_srun, *to_sshd),
        "login-egress": egress_of("login", among_ours, names, *opened),
        "admin-egress": egress_of(ADMIN, names, *opened),
        # There for any source: a policy that a change removes would be in force until after the Job.
        "jail-populate-egress": egress_of(POPULATE, *anywhere),
        "jail-switch-egress": egress_of(SWITCH),
    }
    if spec.health.long_checks:
        to_slurmctld = NetworkPolicyEgressRuleArgs(to=[controller], ports=[_tcp(layout.SLURMCTLD_PORT)])
        policies["health-checks-egress"] = egress_of(HEALTH_CHECKS, to_slurmctld, names)
    if spec.rest is not None:
        allowed = [
            *(_addresses(source) for source in spec.rest.allowed_sources),
            *(_namespace(namespace) for namespace in spec.rest.allowed_namespaces),
        ]
        to_daemons = [
            NetworkPolicyEgressRuleArgs(to=[controller], ports=[_tcp(layout.SLURMCTLD_PORT)]),
            *(NetworkPolicyEgressRuleArgs(to=[each], ports=[_tcp(layout.SLURMDBD_PORT)]) for each in slurmdbd),
        ]
        policies |= {
            # a rule without sources admits everybody
            "rest-ingress": ingress(REST, *([_from(allowed, _tcp(layout.REST_PORT))] if allowed else [])),
            "rest-egress": egress_of(REST, *to_daemons, names),
        }
    if spec.metrics is not None:
        readers = [_namespace(namespace) for namespace in spec.metrics.allowed_namespaces]
        to_slurmctld = NetworkPolicyEgressRuleArgs(to=[controller], ports=[_tcp(layout.SLURMCTLD_PORT)])
        policies |= {
            "metrics-ingress": ingress(METRICS, *([_from(readers, _tcp(layout.METRICS_PORT))] if readers else [])),
            "metrics-egress": NetworkPolicySpecArgs(
                pod_selector=LabelSelectorArgs(match_labels=scope.selector(METRICS)),
                policy_types=["Egress"],
                egress=_with_kubernetes([to_slurmctld, names], api_servers)
                if calls_kubernetes(spec.metrics)
                else [to_slurmctld, names],
            ),
        }
    if spec.accounting is not None:
        database = _to_database(scope, spec.accounting)
        to_slurmctld = NetworkPolicyEgressRuleArgs(to=[controller], ports=[_tcp(layout.SLURMCTLD_PORT)])
        policies |= {
            "accounting-ingress": ingress(ACCOUNTING, _from([*ours, *rest], _tcp(layout.SLURMDBD_PORT))),
            "accounting-egress": egress_of(ACCOUNTING, to_slurmctld, database, names),
        }
        if spec.accounting.own is not None:
            dumps = [_pods(scope, layout.DUMP_COMPONENT)]
            policies |= {
                "database-ingress": ingress(DATABASE, _from([*slurmdbd, *dumps], _tcp(layout.DATABASE_PORT))),
                "database-egress": egress_of(DATABASE),
                # There without dumps as well: a Job may outlive them.
                "accounting-dump-egress": egress_of(layout.DUMP_COMPONENT, database, names),
            }
    return {
        policy: NetworkPolicy(
            f"{name}-network-{policy}", metadata=scope.metadata(policy), spec=spec_of_policy, opts=scope.options()
        )
        for policy, spec_of_policy in policies.items()
    }


def _to_database(scope: Scope, accounting: AccountingSpec) -> NetworkPolicyEgressRuleArgs:
    """Return the rule from slurmdbd to its database. The addresses of a host elsewhere are not known."""
    if accounting.database.external is not None:
        return NetworkPolicyEgressRuleArgs(ports=[_tcp(accounting.database.external.port)])
    of_operator = NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs(match_labels=OPERATOR_PODS))
    peer = of_operator if accounting.own is None else _pods(scope, DATABASE)
    return NetworkPolicyEgressRuleArgs(to=[peer], ports=[_tcp(layout.DATABASE_PORT)])


def _pods(scope: Scope, component: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs(match_labels=scope.selector(component)))


def _opened(network: NetworkSpec, api_servers: pulumi.Output[Sequence[str]]) -> list[NetworkPolicyEgressRuleArgs]:
    """Return the rule for egress of users' pods beyond the cluster's own; none where all of it is closed."""
    peers = [_without(block, api_servers) for block in egress.blocks(network.egress)]
    if Destination.CLUSTER in network.egress:
        # No pod selector: with one, some plugins count pods on the machines' own network, whose ports stay closed.
        peers.append(NetworkPolicyPeerArgs(namespace_selector=LabelSelectorArgs()))
    if not peers:
        return []  # a rule without peers allows everything
    # Ranges for UDP as well: some plugins know ranges, but no protocol without a port.
    ports = [*(_range("TCP", each) for each in egress.open_ports(network.closed_ports)), _range("UDP", Ports.all())]
    return [NetworkPolicyEgressRuleArgs(to=peers, ports=ports if network.closed_ports else None)]


def _with_kubernetes(
    rules: list[NetworkPolicyEgressRuleArgs], api_servers: pulumi.Output[Sequence[str]]
) -> pulumi.Output[list[NetworkPolicyEgressRuleArgs]]:
    """Add the addresses of the Kubernetes API to rules of egress."""

    def added(found: Sequence[str] | None) -> list[NetworkPolicyEgressRuleArgs]:
        # a rule without peers allows everything
        return [*rules, *([NetworkPolicyEgressRuleArgs(to=[_addresses(each) for each in found])] if found else [])]

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


def _tcp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="TCP", port=port)


def _udp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="UDP", port=port)
