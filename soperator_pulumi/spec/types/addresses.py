"""Ranges of addresses, as annotated types."""

import ipaddress
from typing import Annotated

from pydantic import BeforeValidator

from soperator_pulumi.spec.validation.base import refused

WANTED = 'needs addresses in CIDR notation, such as "10.0.0.0/8" or "2001:db8::/32".'


def cidr(value: object, wanted: str = WANTED) -> str:
    """Return a range of addresses in its usual form; `wanted` says in an error what is allowed.

    Raises:
        PydanticCustomError: it is none, or names an address that is not its first.
    """
    if not isinstance(value, str):
        raise refused(wanted)
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise refused(wanted) from None
    if str(network) != value.lower():
        raise refused(f'{wanted} Did you mean "{network}"?')
    return str(network)


def _cidr(value: object) -> str:
    return cidr(value)


Cidr = Annotated[str, BeforeValidator(_cidr)]
"""A range of addresses, `10.0.0.0/8`."""
