"""NetworkPolicies: nothing reaches the cluster's pods but what has to, and little but what users need leaves them.

| to        | port             | from                                                        |
|-----------|------------------|-------------------------------------------------------------|
| slurmctld | 6817             | controller, login, workers                                  |
| slurmd    | 6818             | controller, login, workers: srun and slurmd itself call it  |
| workers   | all              | login, workers: steps and MPI listen on ports of their own  |
| srun      | srun's own range | controller, login, workers                                  |
| sshd      | 2222             | `login.allowed_sources`                                     |

Every user's processes can so connect to slurmctld, slurmd and the steps of others, whose answer depends on what munge
says of the caller. munged listens on a socket inside each pod.

| from                   | to                                                                                   |
|------------------------|--------------------------------------------------------------------------------------|
| controller             | controller, login, workers; name servers                                             |
| login, workers         | the same, and what `network.egress` opens, without `network.closed_ports`            |
| admin shell            | name servers, and what `network.egress` opens, without `network.closed_ports`        |
| populate, of a tarball | everything: its address may be any                                                   |
| other Jobs of the jail | nothing: one runs with what is in the image that it copies                           |

A machine's own traffic to its pods (probes, `kubectl exec` and `port-forward`) is not filtered by NetworkPolicies.
"""

from collections.abc import Sequence

import pulumi
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
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.render import egress, layout
from soperator_pulumi.render.egress import Block
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.network import Destination, NetworkSpec
from soperator_pulumi.spec.types.addresses import Ports


def create_network_policies(
    name: str, scope: Scope, spec: ClusterSpec, api_servers: pulumi.Output[Sequence[str]]
) -> tuple[NetworkPolicy, ...]:
    """Create the policies of the tables above.

    Args:
        name: Of the cluster's component.
        scope: The surroundings of its children.
        spec: The cluster.
        api_servers: Addresses of the Kubernetes API, which users' pods do not reach.
    """
    controller, logins, workers = (_pods(scope, component) for component in ("controller", "login", "worker"))
    ours = [controller, logins, workers]
    first, last = layout.SRUN_PORTS
    srun = NetworkPolicyPortArgs(protocol="TCP", port=first, end_port=last)

    def policy(suffix: str, spec: NetworkPolicySpecArgs) -> NetworkPolicy:
        return NetworkPolicy(
            f"{name}-network-{suffix}", metadata=scope.metadata(suffix), spec=spec, opts=scope.options()
        )

    def incoming(component: str | None, *rules: NetworkPolicyIngressRuleArgs) -> NetworkPolicySpecArgs:
        selector = LabelSelectorArgs(match_labels=scope.selector(component))
        return NetworkPolicySpecArgs(pod_selector=selector, policy_types=["Ingress"], ingress=[*rules])

    def outgoing(component: str, *rules: NetworkPolicyEgressRuleArgs) -> NetworkPolicySpecArgs:
        selector = LabelSelectorArgs(match_labels=scope.selector(component))
        return NetworkPolicySpecArgs(pod_selector=selector, policy_types=["Egress"], egress=[*rules])

    to_srun = _from(ours, srun)
    sources = [_addresses(source) for source in spec.login.allowed_sources]
    to_sshd = [_from(sources, _tcp(layout.SSH_PORT))] if sources else []  # a rule without sources would admit everybody
    to_slurmd = _from([controller], _tcp(layout.SLURMD_PORT))
    streams = spec.jail.source is not None and spec.jail.source.tarball is not None
    anywhere = [NetworkPolicyEgressRuleArgs()] if streams else []
    names = NetworkPolicyEgressRuleArgs(ports=[kind(port) for kind in (_tcp, _udp) for port in egress.DNS_PORTS])
    among_ours = NetworkPolicyEgressRuleArgs(to=ours)
    opened = _opened(spec.network, api_servers)
    return (
        policy("default-deny", incoming(None)),
        policy("controller", incoming("controller", _from(ours, _tcp(layout.SLURMCTLD_PORT)))),
        policy("controller-out", outgoing("controller", among_ours, names)),
        policy("worker", incoming("worker", to_slurmd, to_srun, _from([logins, workers]))),
        policy("worker-out", outgoing("worker", among_ours, names, *opened)),
        policy("login", incoming("login", to_srun, *to_sshd)),
        policy("login-out", outgoing("login", among_ours, names, *opened)),
        policy("admin-out", outgoing(ADMIN, names, *opened)),
        # There in both cases: a policy that a change does away with would be in force until after the Job.
        policy("jail-populate-out", outgoing(POPULATE, *anywhere)),
        policy("jail-switch-out", outgoing(SWITCH)),
    )


def _pods(scope: Scope, component: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs(match_labels=scope.selector(component)))


def _opened(network: NetworkSpec, api_servers: pulumi.Output[Sequence[str]]) -> list[NetworkPolicyEgressRuleArgs]:
    """Return the rule of what users' pods reach besides the cluster's own; none where that is nothing."""
    peers = [_without(block, api_servers) for block in egress.blocks(network.egress)]
    if Destination.CLUSTER in network.egress:
        # No pod selector: with one, some plugins count pods on the machines' own network, whose ports are closed.
        peers.append(NetworkPolicyPeerArgs(namespace_selector=LabelSelectorArgs()))
    if not peers:
        return []  # a rule without peers would allow everything
    # Ranges for UDP as well: not all plugins that know them know a protocol without a port.
    ports = [*(_range("TCP", each) for each in egress.open_ports(network.closed_ports)), _range("UDP", Ports.all())]
    return [NetworkPolicyEgressRuleArgs(to=peers, ports=ports if network.closed_ports else None)]


def _without(block: Block, api_servers: pulumi.Output[Sequence[str]]) -> NetworkPolicyPeerArgs:
    def closed(found: Sequence[str] | None) -> list[str] | None:
        # A mocked deployment finds none. Kubernetes forgets an empty list, so Pulumi would find it missing each time.
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
