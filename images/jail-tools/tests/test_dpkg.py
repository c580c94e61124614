"""Debian's packages: versions in dpkg's order, what is lacking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jail_testing.jails import package

from jail_tools.switching.dpkg import compare_versions, format_status, installed, lacking, parse

VERSIONS = st.from_regex(r"([0-9]:)?[0-9][a-z0-9.+~]{0,5}(-[a-z0-9.+~]{1,3})?", fullmatch=True)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0~rc1", "1.0"),
        ("1.0", "1.0+b1"),
        ("1.0-1", "1.0-1.1"),
        ("1.9", "1.10"),
        ("9.9", "1:0.1"),
        ("1.0~", "1.0"),
        ("1.0a", "1.0+"),
        ("2.36-9+deb12u10", "2.41-12"),
        ("1.0-1~bpo12+1", "1.0-1"),
    ],
)
def test_versions_have_the_order_of_deb_version_7(older: str, newer: str) -> None:
    assert compare_versions(older, newer) == -1
    assert compare_versions(newer, older) == 1


@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_order_is_one(one: str, two: str, three: str) -> None:
    assert compare_versions(one, one) == 0
    assert compare_versions(one, two) == -compare_versions(two, one)
    if compare_versions(one, two) <= 0 and compare_versions(two, three) <= 0:
        assert compare_versions(one, three) <= 0


def test_only_what_is_installed_counts() -> None:
    text = package("a", "1") + package("b", "2").replace("install ok installed", "deinstall ok config-files")

    assert list(installed(parse(text.encode()))) == ["a:amd64"]
    assert format_status(parse(text.encode()).values()) == text.encode()


def test_what_a_package_needs_and_is_not_there_is_named() -> None:
    there = parse(
        (package("libc6", "2.36") + package("mta", "1") + "Package: exim\nProvides: mail, smtp (= 2)\n\n").encode()
    )
    needs = "libc6 (>= 2.38), libc6:any (>> 2.30), postfix | mail, smtp (<< 2), smtp (>= 2), perl"

    (wanting,) = parse(package("x", "1", needs).encode()).values()

    assert lacking(wanting, there.values()) == ["libc6 (>= 2.38)", "smtp (<< 2)", "perl"]
