"""Amounts as Kubernetes writes them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from pydantic import TypeAdapter, ValidationError

from soperator_pulumi.spec.types.quantity import CpuQuantity, MemoryQuantity, amount

_cpu: TypeAdapter[str] = TypeAdapter(CpuQuantity)
_memory: TypeAdapter[str] = TypeAdapter(MemoryQuantity)

_numbers = st.decimals(min_value=Decimal("0.001"), max_value=10**6, places=3).map(lambda number: f"{number:f}")
_units = st.sampled_from(["k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])


@given(_numbers, st.sampled_from(["", "m"]) | _units)
def test_amounts_are_those_of_the_kubernetes_client(number: str, unit: str) -> None:
    assert amount(number + unit) == parse_quantity(number + unit)


@pytest.mark.parametrize("text", ["", "1 Gi", "1GiB", "Gi", "-1", "1gi", "0x10", "1,5", "1K", "one", "1e3Gi"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        amount(text)


@pytest.mark.parametrize("value", ["2", "0.5", "500m", 2, 0.5])
def test_cpus_are_taken_as_text_or_number(value: object) -> None:
    assert _cpu.validate_python(value) == str(value)


@pytest.mark.parametrize(
    "value", ["0", 0, -1, "2x", "1Gi", "0.5m", True, None, float("nan"), float("inf"), 1e-9, "1e3"]
)
def test_what_is_no_number_of_cpus_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        _cpu.validate_python(value)


@given(st.integers(1, 1000), _units)
def test_memory_is_taken_with_its_unit(number: int, unit: str) -> None:
    assert _memory.validate_python(f"{number}{unit}") == f"{number}{unit}"


@pytest.mark.parametrize("value", ["4", 4, 4.0, "0Gi", "100m", "4GB", None, True, "2g"])
def test_memory_without_a_unit_or_with_one_that_kubernetes_lacks_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        _memory.validate_python(value)
