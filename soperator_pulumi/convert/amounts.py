"""Kubernetes quantities in the units of the spec."""

import math
from decimal import Decimal

from soperator_pulumi.spec.types.quantity import GIB, amount


def quantity(value: object) -> Decimal | None:
    """Return a quantity as a number of CPUs or bytes; None if the value is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return amount(str(value))
    except (ValueError, ArithmeticError):
        return None


def gib(value: object) -> float | int | None:
    """Return a quantity of memory in GiB, exactly: an int if it is whole."""
    found = quantity(value)
    if found is None:
        return None
    exact = found / GIB
    return int(exact) if exact == int(exact) else float(exact)


def whole_gib(value: object) -> int | None:
    """Return a quantity of storage in whole GiB, rounded up."""
    found = quantity(value)
    return None if found is None else max(1, math.ceil(found / GIB))
