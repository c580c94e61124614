"""A claim that has lost its contents is not filled as if it were new."""

import os
import subprocess
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
    (tmp_path / "source/etc").mkdir(parents=True)
    (tmp_path / "source/etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    return tmp_path / "source"


def populate(
    claim: Path, source: Path, *more: str, before: dict[str, str] = FILLED_BEFORE, tree: str = trees.NAME
) -> tuple[int, str, str]:
    command = [*trees.populate(claim, "--root", source, tree=tree), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **before})
    return done.returncode, done.stdout, done.stderr


def test_an_emptied_claim_is_refused_with_what_was_on_it_and_what_to_do(claim: Path, source: Path) -> None:
    code, _, error = populate(claim, source)

    assert code == 78
    assert "the claim is empty, and the jail was filled before (tree 0123456789ab from debian:13" in error
    assert "Restore the volume, or name the claim that has the files." in error
    assert "jail.storage.accept.emptied" in error
    assert list(claim.iterdir()) == []


def test_what_a_file_system_makes_itself_is_no_contents(claim: Path, source: Path) -> None:
    (claim / "lost+found").mkdir()
    (claim / "home").mkdir()
    assert populate(claim, source)[0] == 78


def test_an_emptied_claim_is_filled_anew_for_a_reason_which_is_told(claim: Path, source: Path) -> None:
    code, said, error = populate(claim, source, "--accept", "emptied=a trial, nobody has files there")

    assert code == 0, error
    assert "Accepted: a trial, nobody has files there" in said
    assert trees.is_complete(claim)


def test_a_claim_that_was_never_filled_is_filled(claim: Path, source: Path) -> None:
    assert populate(claim, source, before={})[0] == 0


def test_a_claim_with_homes_is_filled_although_its_trees_are_gone(claim: Path, source: Path) -> None:
    (claim / "home/alice").mkdir(parents=True)
    assert populate(claim, source)[0] == 0


def test_a_claim_with_another_tree_gets_a_second_one(claim: Path, source: Path) -> None:
    assert populate(claim, source, before={})[0] == 0
    assert populate(claim, source, tree="ffffffffffff")[0] == 0
