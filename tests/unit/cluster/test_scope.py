"""Names of owners."""

import re

import pulumi
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.cluster.scope import owner_of
from soperator_pulumi.testing import deploy

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")


def owners(*names: str) -> list[str]:
    found: list[str] = []
    deploy(lambda: found.extend(owner_of(name) for name in names))
    return found


@given(st.text(min_size=1, max_size=200))
def test_any_name_gives_a_valid_label(name: str) -> None:
    (owner,) = owners(name)
    assert len(owner) <= 63
    assert LABEL.fullmatch(owner)


def test_a_short_name_stays_readable() -> None:
    assert owners("hpc") == ["project.test.hpc"]


def test_long_names_that_begin_alike_stay_apart() -> None:
    first, second = owners("x" * 100 + "a", "x" * 100 + "b")
    assert first != second


def test_no_deployment_is_left_behind() -> None:
    owners("hpc")
    assert pulumi.runtime.get_root_resource() is None
