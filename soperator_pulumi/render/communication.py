"""Parameters with which Slurm's daemons and commands reach each other."""

from soperator_pulumi.spec.cluster import ClusterSpec

PARAMETER, _IPV6 = "CommunicationParameters", "EnableIPv6"


def uses_ipv6(spec: ClusterSpec) -> bool:
    """Return True if Slurm uses IPv6 addresses, by `network.ipv6` or by a parameter in `slurm.extra`."""
    given = spec.slurm.extra.get(PARAMETER, "").lower().split(",")
    return spec.network.ipv6 or _IPV6.lower() in given


def communication_lines(spec: ClusterSpec) -> dict[str, str]:
    """Return the parameters of a daemon's or a client's configuration, slurmdbd's too (slurmdbd.conf(5))."""
    return {PARAMETER: _IPV6} if uses_ipv6(spec) else {}
