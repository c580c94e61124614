"""Quantities of CPU and memory in Kubernetes' notation, and resources of pods."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.validation.base import Model, refused
from soperator_pulumi.spec.validation.partial import known

MIB, GIB = 1024**2, 1024**3
"""Bytes of the binary units of memory and disks."""
MIB_PER_GIB = GIB // MIB

_QUANTITY = re.compile(r"(?P<number>\d+(\.\d*)?|\.\d+)(?P<unit>m|[kMGTPE]i?|Ki|[eE][+-]?\d{1,2})?")
_CPU = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)|[0-9]+m"
_MEMORY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)[kMGTPE]i?|[0-9]+Ki"
_FACTORS = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000)} | {
    f"{prefix}{binary}": Decimal(base) ** power
    for power, prefix in enumerate("KMGTPE", start=1)
    for binary, base in (("", 1000), ("i", 1024))
    if (prefix, binary) != ("K", "")
}


def amount(quantity: str) -> Decimal:
    """Return a quantity as a number of CPUs or bytes: `500m` is 0.5, `1Gi` is 1073741824.

    Raises:
        ValueError: The text is not a quantity.
    """
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(quantity)
    unit = match["unit"] or ""
    factor = Decimal(f"1{unit}") if unit[:1] in {"e", "E"} and unit not in {"E", "Ei"} else _FACTORS[unit]
    return Decimal(match["number"]) * factor


def whole_mib(quantity: str) -> int:
    """Return a quantity of memory in whole MiB, rounded down."""
    return int(amount(quantity) / MIB)


def _cpu(value: object) -> str:
    wanted = 'needs a quantity of CPUs as Kubernetes writes it, such as "2", "0.5" or "500m".'
    text = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not re.fullmatch(_CPU, text) or amount(text) <= 0:
        raise refused(wanted)
    return text


def _memory(value: object) -> str:
    wanted = 'needs a quantity of memory with its unit as Kubernetes writes it, such as "512Mi" or "4Gi".'
    if not isinstance(value, str) or not re.fullmatch(_MEMORY, value):
        raise refused(wanted)
    if amount(value) <= 0:
        raise refused(wanted)
    return value


CpuQuantity = Annotated[
    str, BeforeValidator(_cpu), WithJsonSchema({"type": ["string", "number"], "pattern": f"^(?:{_CPU})$"})
]
"""CPUs: `"2"`, `"0.5"`, `"500m"`, or a number."""

MemoryQuantity = Annotated[
    str, BeforeValidator(_memory), WithJsonSchema({"type": "string", "pattern": f"^(?:{_MEMORY})$"})
]
"""Memory with its unit: `"512Mi"`, `"4Gi"`. A bare number, which would mean bytes, is refused."""


class ResourceAmounts(Model):
    """Amounts of a container's resources."""

    cpu: CpuQuantity | None = None
    """CPUs. Default: no request, or no limit."""
    memory: MemoryQuantity | None = None
    """Memory. Default: no request, or no limit."""


class PodResources(Model):
    """Requests and limits of a pod's main container."""

    requests: ResourceAmounts = ResourceAmounts()
    """Amounts that the scheduler reserves for the pod."""
    limits: ResourceAmounts = ResourceAmounts()
    """Amounts beyond which CPU is throttled, and the container is killed for memory."""


def problems(resources: PodResources | None, path: str) -> Iterator[Problem]:
    """Yield requests above limits."""
    if resources is None:
        return
    pairs = (
        ("cpu", resources.requests.cpu, resources.limits.cpu),
        ("memory", resources.requests.memory, resources.limits.memory),
    )
    for name, request, limit in pairs:
        if known(request, limit) and request and limit and amount(request) > amount(limit):
            yield Problem(
                f"{path}.requests.{name}",
                f'got "{request}", more than {path}.limits.{name} = "{limit}". Kubernetes refuses such a pod: '
                "lower the request or raise the limit.",
            )
