"""A claim that has lost its contents is not filled as if it were new."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from jail_testing import trees
from jail_testing.jails import in_memory

FILLED_BEFORE = {"JAIL_FILLED_BEFORE": "tree 0123456789ab from debian:13, on the claim jail, 2026-11-28 08:00 UTC"}


@pytest.fixture
def claim() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return trees.small_source(tmp_path)


def test_an_emptied_claim_is_refused_with_what_was_on_it_and_what_to_do(claim: Path, source: Path) -> None:
    code, _, error = trees.fill(claim, source, variables=FILLED_BEFORE)

    assert code == 78
    assert "the claim is empty, and the jail was filled before (tree 0123456789ab from debian:13" in error
    assert "Restore the volume, or name the claim that has the files." in error
    assert "jail.storage.accept.emptied" in error
    assert list(claim.iterdir()) == []


def test_what_a_file_system_makes_itself_is_no_contents(claim: Path, source: Path) -> None:
    (claim / "lost+found").mkdir()
    (claim / "home").mkdir()
    assert trees.fill(claim, source, variables=FILLED_BEFORE)[0] == 78


def test_an_emptied_claim_is_filled_again_for_a_reason_which_is_told(claim: Path, source: Path) -> None:
    code, said, error = trees.fill(
        claim, source, "--accept", "emptied=a trial, no one has files there", variables=FILLED_BEFORE
    )

    assert code == 0, error
    assert "Accepted: a trial, no one has files there" in said
    assert trees.is_complete(claim)


def test_a_claim_that_was_never_filled_is_filled(claim: Path, source: Path) -> None:
    assert trees.fill(claim, source)[0] == 0


def test_a_claim_with_homes_is_filled_although_its_trees_are_gone(claim: Path, source: Path) -> None:
    (claim / "home/alice").mkdir(parents=True)
    assert trees.fill(claim, source, variables=FILLED_BEFORE)[0] == 0


def test_a_claim_with_another_tree_gets_a_second_one(claim: Path, source: Path) -> None:
    assert trees.fill(claim, source)[0] == 0
    assert trees.fill(claim, source, tree="ffffffffffff", variables=FILLED_BEFORE)[0] == 0
