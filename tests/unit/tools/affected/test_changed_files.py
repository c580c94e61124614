"""Changes are those since the branch began, with all that is not committed."""

import subprocess
from pathlib import Path

import pytest

from tools.affected.changed_files import changes_since
from tools.console import UserError

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *AUTHOR, "-C", root, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A branch with one commit beyond `main`."""
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("kept.py", "old.py", "gone.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / ".gitignore").write_text("ignored\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "before")
    git(tmp_path, "switch", "-qc", "branch")
    (tmp_path / "old.py").write_text("# new\n")
    git(tmp_path, "commit", "-qam", "change")
    return tmp_path


def test_commits_of_the_branch_count(checkout: Path) -> None:
    assert changes_since(None, checkout).changed == ("old.py",)


def test_changes_that_are_not_committed_count(checkout: Path) -> None:
    (checkout / "kept.py").write_text("# changed\n")
    (checkout / "new name.py").touch()
    (checkout / "ignored").touch()
    (checkout / "gone.py").unlink()
    found = changes_since(None, checkout)
    assert found.changed == ("gone.py", "kept.py", "new name.py", "old.py")
    assert found.files == (".gitignore", "kept.py", "new name.py", "old.py")


def test_a_renamed_file_counts_by_both_names(checkout: Path) -> None:
    git(checkout, "mv", "kept.py", "moved.py")
    assert changes_since(None, checkout).changed == ("kept.py", "moved.py", "old.py")


def test_commits_that_main_got_meanwhile_do_not_count(checkout: Path) -> None:
    git(checkout, "switch", "-q", "main")
    (checkout / "kept.py").write_text("# of others\n")
    git(checkout, "commit", "-qam", "of others")
    git(checkout, "switch", "-q", "branch")
    found = changes_since(None, checkout)
    assert found.changed == ("old.py",)
    assert found.base == "the merge base with main"


def test_the_upstream_comes_before_main(checkout: Path) -> None:
    git(checkout, "branch", "pushed")
    git(checkout, "branch", "-q", "--set-upstream-to", "pushed")
    assert changes_since(None, checkout).changed == ()


def test_without_a_branch_to_compare_with_the_last_commit_is_the_base(checkout: Path) -> None:
    git(checkout, "branch", "-qD", "main")
    (checkout / "kept.py").write_text("# changed\n")
    found = changes_since(None, checkout)
    assert (found.base, found.changed) == ("HEAD", ("kept.py",))


def test_a_person_chooses_the_base(checkout: Path) -> None:
    (checkout / "kept.py").write_text("# changed\n")
    assert changes_since("HEAD", checkout).changed == ("kept.py",)
    assert changes_since("HEAD~1", checkout).changed == ("kept.py", "old.py")


@pytest.mark.parametrize("base", ["nowhere", "--all", "HEAD:kept.py"])
def test_a_base_that_is_no_commit_is_refused_with_the_next_step(checkout: Path, base: str) -> None:
    with pytest.raises(UserError, match=rf"BASE={base}: .* Name a commit"):
        changes_since(base, checkout)


def test_a_folder_without_git_is_refused_with_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UserError, match=r"not a Git checkout.*make check"):
        changes_since(None, tmp_path)


def test_a_machine_without_git_is_reported(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=r"git is not on PATH"):
        changes_since(None, checkout)
