"""Removing what no one needs any more, and nothing else."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from jail_testing.jails import Jail, command, contents, in_memory, killed_at

from jail_tools import claim
from jail_tools.claim import listing
from jail_tools.collect import collect
from jail_tools.errors import RefusedError
from jail_tools.layout import Tree, tree_of
from jail_tools.populating.marker import only_one
from jail_tools.removal import remove_tree
from jail_tools.switching.tree_switch import Policy, switch


@pytest.fixture
def jail() -> Iterator[Jail]:
    with in_memory() as folder:
        yield Jail(folder)


@pytest.fixture
def trees(jail: Jail) -> list[Tree]:
    """Three trees in order of age, of which the first is active."""
    found = [jail.populate(name) for name in ("first", "second", "third")]
    for age, tree in enumerate(reversed(found)):
        marker = json.loads(tree.complete.read_text())
        tree.complete.write_text(json.dumps({**marker, "populated": f"2026-01-0{9 - age}T00:00:00Z"}))
    return found


def names(jail: Jail) -> set[str]:
    """Names of the trees that are there."""
    return {path.name for path in (jail.path / "trees").iterdir()}


def test_the_oldest_trees_beyond_those_to_keep_go(jail: Jail, trees: list[Tree]) -> None:
    first, second, third = trees

    assert collect(jail.path, 2, [], []) == [second.name]

    assert names(jail) == {first.name, third.name}
    assert not second.meta.exists()


def test_the_active_tree_stays_whatever_its_age(jail: Jail, trees: list[Tree]) -> None:
    collect(jail.path, 1, [], [])

    assert names(jail) == {trees[0].name}


def test_a_tree_that_was_left_last_outlives_one_that_was_never_used(jail: Jail, trees: list[Tree]) -> None:
    """It is the one to go back to."""
    first, second, _ = trees
    switch(second, Policy.REFUSE)

    collect(jail.path, 2, [], [])

    assert names(jail) == {first.name, second.name}


def test_trees_that_jobs_and_logins_are_in_stay(jail: Jail, trees: list[Tree]) -> None:
    _, second, third = trees
    jail.job_in(17, second)

    assert collect(jail.path, 1, [third.name], ["17"]) == []
    assert (jail.path / "jobs/17").is_symlink()


def test_records_of_jobs_that_are_gone_go_and_their_trees_with_them(jail: Jail, trees: list[Tree]) -> None:
    jail.job_in(17, trees[1])

    assert trees[1].name in collect(jail.path, 1, [], ["18"])
    assert not (jail.path / "jobs/17").is_symlink()


def test_a_record_that_may_be_younger_than_the_list_of_jobs_stays(jail: Jail, trees: list[Tree]) -> None:
    jail.job_in(17, trees[1], age_seconds=60.0)

    assert trees[1].name not in collect(jail.path, 1, [], [])


def test_a_tree_that_a_populate_is_filling_stays(jail: Jail, trees: list[Tree]) -> None:
    trees[1].complete.rename(trees[1].in_progress)

    collect(jail.path, 1, [], [])

    assert names(jail) == {trees[0].name, trees[1].name}


def test_a_tree_whose_populate_was_given_up_goes_after_a_day(jail: Jail, trees: list[Tree]) -> None:
    trees[1].complete.rename(trees[1].in_progress)
    os.utime(trees[1].in_progress, (0, 0))

    assert collect(jail.path, 3, [], []) == [trees[1].name]
    assert names(jail) == {trees[0].name, trees[2].name}


def test_a_populate_that_is_at_work_keeps_its_tree_however_long_it_takes(jail: Jail, trees: list[Tree]) -> None:
    trees[1].complete.rename(trees[1].in_progress)
    os.utime(trees[1].in_progress, (0, 0))

    with only_one(trees[1]):
        assert collect(jail.path, 3, [], []) == []


def test_nothing_outside_of_a_tree_is_touched(jail: Jail, trees: list[Tree], tmp_path: Path) -> None:
    """Links that root in the jail planted: to a folder, to a file, and in the place of the tree itself."""
    (tmp_path / "kept").write_text("x")
    (trees[1].root / "usr/out").symlink_to(tmp_path)
    (trees[1].root / "file").symlink_to(tmp_path / "kept")
    (trees[2].root).rename(trees[2].root.with_name("0" * 12))
    trees[2].root.symlink_to(tmp_path)

    collect(jail.path, 1, [], [])

    assert (tmp_path / "kept").read_text() == "x"


def test_a_tree_deeper_than_any_stack_is_removed(jail: Jail, trees: list[Tree]) -> None:
    """Any user may make such a one in /var/tmp."""
    here = os.open(trees[1].root, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)

    collect(jail.path, 1, [], [])

    assert names(jail) == {trees[0].name}


def test_killed_before_any_change_a_removal_is_finished_by_the_next_run(jail: Jail, trees: list[Tree]) -> None:
    left = {path: seen for path, seen in contents(jail.path).items() if not path_of(path, trees[1:])}
    step = 0
    while True:
        tried = jail.path.with_name(f"step-{step}")
        subprocess.run(["cp", "-a", jail.path, tried], check=True)
        killed = killed_at(step, lambda path=tried: collect(path, 1, [], []))  # type: ignore[misc] # bound now
        for name in (tree.name for tree in trees[1:]):
            tree = tree_of(tried, name)
            whole = (tree.root / "usr/bin/sh").exists() and (tree.root / "etc/passwd").exists()
            assert claim.complete(tree) is None or whole, step
        collect(tried, 1, [], [])
        assert contents(tried) == left, step
        subprocess.run(["rm", "-r", tried], check=True)
        if not killed:
            break
        step += 3  # one step is like the next: hundreds of files are removed one by one

    assert step > 30


def path_of(path: str, trees: list[Tree]) -> bool:
    """Tell whether a path belongs to one of some trees."""
    return any(tree.name in path for tree in trees)


def test_a_tree_that_is_not_marked_is_not_removed(trees: list[Tree]) -> None:
    with pytest.raises(RefusedError, match="is not marked as to be removed"):
        remove_tree(trees[1])
    assert claim.complete(trees[1]) is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--keep", "0", "--live-jobs", "@-"], "--keep: got 0. At least 1 tree is kept"),
        (["--keep", "1", "--live-jobs", "17"], '--live-jobs: got "17". Give @FILE'),
        (["--keep", "1", "--live-jobs", "@-"], '"12_[1-5]" is not a job id'),
        (["--keep", "1", "--live-jobs", "@-", "--in-use=../.."], "12 hexadecimal digits"),
    ],
)
def test_what_is_not_understood_removes_nothing(jail: Jail, trees: list[Tree], arguments: list[str], said: str) -> None:
    before = contents(jail.path)

    done = subprocess.run(
        command("collect", "--jail", jail.path, *arguments),
        input="11\n12_[1-5]\n",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 78
    assert said in done.stderr
    assert contents(jail.path) == before


def test_the_command_takes_jobs_from_a_file_and_trees_from_a_list(
    jail: Jail, trees: list[Tree], tmp_path: Path
) -> None:
    (tmp_path / "jobs").write_text("17\n18\n")
    jail.job_in(17, trees[1])
    jail.job_in(19, trees[1])
    in_use = f"{trees[0].name},{trees[2].name}"

    subprocess.run(
        command(
            "collect", "--jail", jail.path, "--keep", "1", "--in-use", in_use, "--live-jobs", f"@{tmp_path / 'jobs'}"
        ),
        check=True,
    )

    assert names(jail) == {tree.name for tree in trees}
    assert [path.name for path in (jail.path / "jobs").iterdir()] == ["17"]


def test_trees_are_listed_with_what_they_were_made_from(jail: Jail, trees: list[Tree]) -> None:
    trees[1].complete.rename(trees[1].in_progress)

    found = listing(jail.path)

    assert [(entry["tree"], entry["active"]) for entry in found] == [(trees[2].name, False), (trees[0].name, True)]
    assert found[1]["source"] == "image:first"
    assert isinstance(found[1]["files"], int)
    assert (
        json.loads(
            subprocess.run(command("trees", "--jail", jail.path), capture_output=True, text=True, check=True).stdout
        )
        == found
    )
