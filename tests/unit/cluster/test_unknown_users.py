"""The sidecar that gives users of the jail an association: those of the spec get theirs by the deployment."""

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.render import layout
from tools import paths

SCRIPT = paths.ROOT / "images" / "accounting" / "add-unknown-users"
ALICE, CAROL, DAVE = (
    "{0}:x:{1}:{1}::/home/{0}:/bin/sh\n".format(*user) for user in (("alice", 2001), ("Carol", 2003), ("dave", 2004))
)
SYSTEM = "slurm:x:640:640::/:/bin/false\n"


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT), run_name="script")


@pytest.fixture
def add(script: dict[str, Any], tmp_path: Path) -> Callable[[str], list[Sequence[str]]]:
    """Give the sidecar's additions for users that the database knows; alice is in the spec."""
    (tmp_path / "merged").write_text(SYSTEM + ALICE + CAROL + DAVE)
    (tmp_path / "declared").write_text(ALICE)
    calls: list[Sequence[str]] = []

    def added(known: str) -> list[Sequence[str]]:
        def sacctmgr(*words: str) -> str:
            if words[0] != "show":
                calls.append(words)
            return known

        names = script["add_unknown"].__globals__
        names.update(MERGED=tmp_path / "merged", DECLARED=tmp_path / "declared", sacctmgr=sacctmgr)
        script["add_unknown"]("hpc", "default")
        return calls

    return added


def test_users_of_the_jail_get_the_default_account(add: Callable[[str], list[Sequence[str]]]) -> None:
    assert add("root\n") == [("add", "user", "name=Carol,dave", "account=default", "cluster=hpc")]


def test_users_of_the_spec_are_left_to_the_deployment(add: Callable[[str], list[Sequence[str]]]) -> None:
    assert not any("alice" in word for words in add("root\n") for word in words)


def test_users_with_an_association_are_left_alone(add: Callable[[str], list[Sequence[str]]]) -> None:
    assert add("root\nCarol\ndave\n") == []


def test_the_places_are_those_of_the_pod(script: dict[str, Any]) -> None:
    assert script["MERGED"] == Path(layout.USER_FILES, "passwd")
    assert script["DECLARED"] == Path(layout.DECLARED_USERS, "passwd")
