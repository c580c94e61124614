"""Communication of Slurm's daemons and commands: its parameters, and the slurm.conf of pods that are not nodes."""

from collections.abc import Mapping

from soperator_pulumi.render import layout
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.rest import RestSpec

PARAMETER, _IPV6 = "CommunicationParameters", "EnableIPv6"


def uses_ipv6(spec: ClusterSpec) -> bool:
    """Return True if Slurm uses IPv6 addresses, by `network.ipv6` or by a parameter in `slurm.extra`."""
    given = spec.slurm.extra.get(PARAMETER, "").lower().split(",")
    return spec.network.ipv6 or _IPV6.lower() in given


def communication_lines(spec: ClusterSpec) -> dict[str, str]:
    """Return the parameters of a daemon's or a client's configuration, slurmdbd's too (slurmdbd.conf(5))."""
    return {PARAMETER: _IPV6} if uses_ipv6(spec) else {}


def token_lines(rest: RestSpec | None, directory: str) -> dict[str, str]:
    """Return the parameters with which a daemon accepts tokens (slurm.conf(5), slurmdbd.conf(5)); none without REST.

    Args:
        rest: The REST API; None if it is off.
        directory: Directory of the daemon's own copy of the key.
    """
    if rest is None:
        return {}
    longest = int(rest.max_token_lifetime.total_seconds())
    key = f"{directory}/{layout.JWT_KEY}"
    return {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={key},max_token_lifespan={longest}"}


def client_slurm_conf(spec: ClusterSpec, more: Mapping[str, str] | None = None) -> str:
    """Return the file, with which client programs find slurmctld.

    Args:
        spec: The cluster.
        more: Further parameters of the client.
    """
    settings = {
        "ClusterName": spec.name,
        "SlurmctldHost": layout.CONTROLLER_HOST,
        "SlurmctldPort": str(layout.SLURMCTLD_PORT),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "SelectType": "select/cons_tres",
        **communication_lines(spec),
        **(more or {}),
    }
    return lines(HEADER, *(f"{name}={value}" for name, value in settings.items()))
