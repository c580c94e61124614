"""The network of a cluster: the Service by which Slurm's pods find each other, and NetworkPolicies.

Ingress is closed but for:

| to        | port             | from                                                        |
|-----------|------------------|-------------------------------------------------------------|
| slurmctld | 6817             | controller, login, workers                                  |
| slurmd    | 6818             | controller, login, workers: srun and slurmd itself call it  |
| workers   | all              | login, workers: steps and MPI listen on ports of their own  |
| srun      | srun's own range | controller, login, workers                                  |
| sshd      | 2222             | `login.allowed_sources`                                     |

So processes of every user can connect to slurmctld, slurmd and the steps of others, which answer by the identity that
munge proves. munged listens on a socket inside each pod. Egress is closed but for:

| from                   | to                                                                                   |
|------------------------|--------------------------------------------------------------------------------------|
| controller             | controller, login, workers; name servers                                             |
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

from soperator_pulumi.cluster.admin import ADMIN
from soperator_pulumi.cluster.jail_pods import POPULATE, SWITCH
from soperator_pulumi.cluster.pod_template import NODES_SERVICE
from soperator_pulumi.cluster.scope import SKIP_AWAIT, SLURM_LABEL, Scope
from soperator_pulumi.render import egress, layout
from soperator_pulumi.render.egress import Block
from soperator_pulumi.spec.cluster import ClusterSpec
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
    among_ours = NetworkPolicyEgressRuleArgs(to=ours)
    opened = _opened(spec.network, api_servers)
    policies = {
        "default-deny-ingress": ingress(None),
        "controller-ingress": ingress("controller", _from(ours, _tcp(layout.SLURMCTLD_PORT))),
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
    return {
        policy: NetworkPolicy(
            f"{name}-network-{policy}", metadata=scope.metadata(policy), spec=spec_of_policy, opts=scope.options()
        )
        for policy, spec_of_policy in policies.items()
    }


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


def _from(peers: Sequence[NetworkPolicyPeerArgs], *ports: NetworkPolicyPortArgs) -> NetworkPolicyIngressRuleArgs:
    return NetworkPolicyIngressRuleArgs(from_=[*peers], ports=[*ports] or None)


def _tcp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="TCP", port=port)


def _udp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="UDP", port=port)
