"""Parameters with which slurmctld and slurmdbd accept tokens of the REST API."""

from soperator_pulumi.render import layout
from soperator_pulumi.spec.rest import RestSpec


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
