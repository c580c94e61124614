"""Hostlist expressions: what the real `scontrol` makes of them is compared in the cluster tier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.slurm.hostlist import compress, expand, in_order

prefixes = st.sampled_from(["gpu-", "cpu", "a-1-b-", "login.x", ""])
numbers = st.one_of(
    st.integers(0, 12).map(str),
    st.integers(0, 10**6).map(str),
    st.integers(0, 120).map("{:03d}".format),
)
names = st.one_of(st.builds("{}{}".format, prefixes, numbers), st.sampled_from(["login", "a", "gpu-x"]))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", []),
        ("login", ["login"]),
        ("gpu-3", ["gpu-3"]),
        ("gpu-[0-2,7],login-0", ["gpu-0", "gpu-1", "gpu-2", "gpu-7", "login-0"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[099-101]", ["n099", "n100", "n101"]),
        ("n[1-002]", ["n1", "n2"]),
        ("r[0-1]n[2-3]x", ["r0n2x", "r0n3x", "r1n2x", "r1n3x"]),
        ("x[1-3,2]", ["x1", "x2", "x3", "x2"]),
        ("a,a", ["a", "a"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_an_expression_stands_for_names_in_its_order(expression: str, expected: list[str]) -> None:
    assert expand(expression) == expected


@pytest.mark.parametrize(
    "expression",
    ["gpu-[0-", "gpu-[]", "gpu-[3-1]", "gpu-[a-b]", "gpu-[1,]", "gpu-]", "a,,b", ",a", "gpu-[[0]]", "gpu-[0][", "a,"],
)
def test_what_is_not_whole_is_refused_and_not_taken_for_fewer_nodes(expression: str) -> None:
    with pytest.raises(ValueError, match=r"hostlist expression|holds"):
        expand(expression)


@pytest.mark.parametrize(
    ("given_names", "expected"),
    [
        ([], ""),
        (["gpu-5"], "gpu-5"),
        (["gpu-0", "gpu-1", "gpu-2", "gpu-7", "login-0"], "gpu-[0-2,7],login-0"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n10"], "n[09-10]"),
        (["n007", "n008", "n009", "n010"], "n[007-010]"),
        (["a1", "b1", "a2"], "a1,b1,a2"),
        (["a2", "a1"], "a[2,1]"),
        (["a1", "a1"], "a[1,1]"),
        (["login", "login"], "login,login"),
    ],
)
def test_neighbours_share_brackets(given_names: list[str], expected: str) -> None:
    assert compress(given_names) == expected


@given(st.lists(names))
def test_names_come_back_in_their_order_with_duplicates_and_leading_zeros(some: list[str]) -> None:
    assert expand(compress(some)) == some


@given(st.integers(0, 5000), st.integers(1, 3000))
def test_a_range_is_one_expression_however_many_it_stands_for(first: int, count: int) -> None:
    assert len(compress(f"gpu-{number}" for number in range(first, first + count))) <= len("gpu-[10000-10000]")


def test_names_are_sorted_by_their_numbers_so_that_neighbours_share_brackets() -> None:
    names = {f"gpu-{ordinal}" for ordinal in range(12)} | {"cpu-3"}
    assert compress(in_order(names)) == "cpu-3,gpu-[0-11]"
