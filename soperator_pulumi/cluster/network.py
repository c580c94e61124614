"""NetworkPolicies: nothing reaches the cluster's pods but what has to.

| to        | port             | from                                                        |
|-----------|------------------|-------------------------------------------------------------|
| slurmctld | 6817             | controller, login, workers                                  |
| slurmd    | 6818             | controller, login, workers                                  |
| workers   | all              | login, workers: steps and MPI listen on ports of their own  |
| srun      | srun's own range | controller, login, workers                                  |
| sshd      | 2222             | `login.allowed_sources`                                     |

munged listens on a socket inside each pod. What leaves login and worker pods is not limited, as users fetch
data and packages; slurmctld talks to the cluster's own pods and to name servers only. Nothing reaches the pods that
work on the jail's trees. Of these the admin shell fetches packages and the Job of a tarball its tarball; a Job that
copies an image, and runs with what is in it, reaches nobody. A machine's own traffic to its pods (probes,
`kubectl exec` and `port-forward`) is not filtered by NetworkPolicies.
"""

from collections.abc import Sequence

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

from soperator_pulumi.cluster.options import Scope
from soperator_pulumi.cluster.populate import POPULATE, SWITCH
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec

_DNS_PORT = 53


def create_network_policies(name: str, scope: Scope, spec: ClusterSpec) -> tuple[NetworkPolicy, ...]:
    """Create the policies of the table above."""
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
    names = NetworkPolicyEgressRuleArgs(ports=[_tcp(_DNS_PORT), _udp(_DNS_PORT)])
    return (
        policy("default-deny", incoming(None)),
        policy("controller", incoming("controller", _from(ours, _tcp(layout.SLURMCTLD_PORT)))),
        policy("controller-out", outgoing("controller", NetworkPolicyEgressRuleArgs(to=ours), names)),
        policy("worker", incoming("worker", to_slurmd, to_srun, _from([logins, workers]))),
        policy("login", incoming("login", to_srun, *to_sshd)),
        # There in both cases: a policy that a change does away with would be in force until after the Job.
        policy("jail-populate-out", outgoing(POPULATE, *anywhere)),
        policy("jail-switch-out", outgoing(SWITCH)),
    )


def _pods(scope: Scope, component: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(pod_selector=LabelSelectorArgs(match_labels=scope.selector(component)))


def _addresses(cidr: str) -> NetworkPolicyPeerArgs:
    return NetworkPolicyPeerArgs(ip_block=IPBlockArgs(cidr=cidr))


def _from(peers: Sequence[NetworkPolicyPeerArgs], *ports: NetworkPolicyPortArgs) -> NetworkPolicyIngressRuleArgs:
    return NetworkPolicyIngressRuleArgs(from_=[*peers], ports=[*ports] or None)


def _tcp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="TCP", port=port)


def _udp(port: int) -> NetworkPolicyPortArgs:
    return NetworkPolicyPortArgs(protocol="UDP", port=port)
