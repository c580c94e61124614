"""A release: tag, version and changelog agree."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import dist, paths
from tools.console import UserError

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-22\n"


def problems(
    tags: Sequence[str],
    *,
    version: str = "1.2.0",
    changelog: str = CHANGELOG,
    changed: Sequence[str] = (),
    untracked: Sequence[str] = (),
) -> list[str]:
    return dist.problems(version, tags, changelog, changed=changed, untracked=untracked)


def test_a_tag_that_is_the_version_is_a_release() -> None:
    assert problems(["v1.2.0", "nightly"]) == []


@pytest.mark.parametrize("tags", [[], ["nightly"], ["very-good"]])
def test_a_commit_without_a_version_s_tag_is_built_whatever_its_changelog_says(tags: list[str]) -> None:
    assert problems(tags, changelog="", changed=[" M README.md"]) == []


def test_a_tag_of_another_version_is_refused() -> None:
    (problem,) = problems(["v1.3.0"])
    assert '__version__ is "1.2.0", and the commit has the tag v1.3.0' in problem


def test_a_second_version_s_tag_is_refused() -> None:
    (problem,) = problems(["v1.2.0", "v1.3.0"])
    assert "v1.2.0, v1.3.0" in problem


def test_a_release_that_the_changelog_leaves_under_unreleased_is_refused() -> None:
    (problem,) = problems(["v1.2.0"], changelog="## [Unreleased]\n")
    assert problem.startswith('CHANGELOG.md: "## [1.2.0]')
    assert problem.endswith('put a new, empty "## [Unreleased]" above it.')


def test_a_release_with_uncommitted_changes_is_refused() -> None:
    (problem,) = problems(["v1.2.0"], changed=[" M README.md"])
    assert "README.md" in problem


@pytest.mark.parametrize("tags", [[], ["v1.2.0"]])
def test_files_that_git_does_not_know_are_refused_by_name(tags: list[str]) -> None:
    (problem,) = problems(tags, untracked=["kubeconfig", "notes.txt"])
    assert problem.endswith(": kubeconfig, notes.txt.")


def test_git_is_asked_for_them_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    for name in ("CHANGELOG.md", "ignored", "kubeconfig"):
        (tmp_path / name).touch()
    subprocess.run(["git", "-C", str(tmp_path), "add", "CHANGELOG.md", ".gitignore"], check=True)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with pytest.raises(UserError, match=r"Nothing is built:\n.*: kubeconfig\.$"):
        dist.main()


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems(["v2.0.0"], changelog="", changed=["?? x"], untracked=["x"])) == 4
