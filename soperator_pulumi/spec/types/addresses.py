"""Ranges of addresses (`10.0.0.0/8`) and of ports (`6443`, `2379-2381`)."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from soperator_pulumi.spec.validation.base import refused

_BEFORE_IPV4 = 96
"""Bits of an IPv6 address before the IPv4 address that it may hold (RFC 4291, 2.5.5.2)."""

WANTED = 'needs addresses in CIDR notation, such as "10.0.0.0/8" or "2001:db8::/32".'


def cidr(value: object, wanted: str = WANTED) -> str:
    """Return a range of addresses in canonical form. `wanted` names the allowed values in an error.

    Raises:
        PydanticCustomError: The value is not a range, does not start with its first address, or is IPv4 in the form of
            IPv6.
    """
    if not isinstance(value, str):
        raise refused(wanted)
    try:
        network = ipaddress.ip_network(value, strict=False)
        # Kubernetes' stricter validation (KEP-4858) refuses IPv4 in the form of IPv6.
        if isinstance(network, ipaddress.IPv6Network) and (of_ipv4 := network.network_address.ipv4_mapped):
            network = ipaddress.ip_network((of_ipv4, network.prefixlen - _BEFORE_IPV4))
    except ValueError:
        raise refused(wanted) from None
    if str(network) != value.lower():
        raise refused(f'{wanted} Did you mean "{network}"?')
    return str(network)


def _cidr(value: object) -> str:
    return cidr(value)


CIDR_PATTERN = "^[0-9A-Fa-f:.]+/[0-9]{1,3}$"

Cidr = Annotated[str, BeforeValidator(_cidr), WithJsonSchema({"type": "string", "pattern": CIDR_PATTERN})]
"""A range of addresses, `10.0.0.0/8`."""


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise refused('needs a single address, such as "10.0.0.7" or "2001:db8::7".') from None


IpAddress = Annotated[str, BeforeValidator(_address), WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f:.]+$"})]
"""An address, in its shortest form."""


LAST_PORT = 65_535
_RANGE = re.compile(r"(?P<first>\d{1,5})(-(?P<last>\d{1,5}))?")
_WANTED = 'needs a port from 1 to 65535, such as 6443, or a range of them in quotes, such as "2379-2381".'


@dataclass(frozen=True, order=True)
class Ports:
    """A port, or all ports from `first` to `last`."""

    first: int
    last: int

    @classmethod
    def all(cls) -> "Ports":
        """Return the range of all ports."""
        return cls(1, LAST_PORT)

    def written(self) -> int | str:
        """Return the value as written in a spec: `6443` or `"2379-2381"`."""
        return self.first if self.first == self.last else str(self)

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read a number or a range, and dump the same."""
        return core_schema.no_info_plain_validator_function(
            cls._read, serialization=core_schema.plain_serializer_function_ser_schema(cls.written)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe both forms."""
        range_ = {"type": "string", "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$"}
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": LAST_PORT}, range_]}

    @classmethod
    def _read(cls, value: object) -> "Ports":
        if isinstance(value, cls):
            return value
        # 6443.0 is 6443: other languages send numbers as floats.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            match = _RANGE.fullmatch(str(value))
            if match is not None:
                first, last = int(match["first"]), int(match["last"] or match["first"])
                if 1 <= first <= last <= LAST_PORT:
                    return cls(first, last)
        raise refused(_WANTED)
