"""Files that differ from a revision, uncommitted and untracked files included."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.console import UserError

_BASES = ("@{upstream}", "main")
"""Branches that may be the base of a change, in order of preference."""


@dataclass(frozen=True)
class TreeChanges:
    """State of the source tree, compared with a base."""

    base: str
    """Revision, as a person would name it."""
    changed: tuple[str, ...]
    """Paths that differ, from the root: changed, new and deleted files."""
    files: tuple[str, ...]
    """Paths of all existing files that are not ignored."""


def changes_since(base: str | None, root: Path) -> TreeChanges:
    """Return the changes of a source tree.

    Args:
        base: A revision. Default: the commit where the branch left its upstream or `main`; HEAD if there is neither.
        root: Folder of the source tree.

    Raises:
        UserError: The folder is not a Git checkout, or it has no such revision.

    """
    name, commit = _resolve(base, root)
    differing = _lines(root, "diff", "--name-only", "--no-renames", "-z", commit, "--")
    untracked = _lines(root, "ls-files", "--others", "--exclude-standard", "-z")
    listed = {*_lines(root, "ls-files", "-z"), *untracked}
    there = sorted(name for name in listed if (root / name).is_file())
    return TreeChanges(name, tuple(sorted({*differing, *untracked})), tuple(there))


def _resolve(base: str | None, root: Path) -> tuple[str, str]:
    if _git(root, "rev-parse", "--is-inside-work-tree") is None:
        raise UserError(
            f"{root} is not a Git checkout, so the changes are unknown. Clone the repository, or run `make check`."
        )
    if base:
        commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
        if commit is None:
            raise UserError(
                f"BASE={base}: git knows no such revision. Name a commit, a branch or a tag of `git log --all`."
            )
        return base, commit.strip()
    for branch in _BASES:
        if commit := _git(root, "merge-base", "HEAD", branch):
            return f"the merge base with {branch}", commit.strip()
    return "HEAD", "HEAD"


def _lines(root: Path, *arguments: str) -> list[str]:
    found = _git(root, *arguments)
    if found is None:
        raise UserError(f"`git {' '.join(arguments)}` failed in {root}. Run it there to see why.")
    return [name for name in found.split("\0") if name]


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of git; None if it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UserError("git is not on PATH: changes are not known. Install it, or run `make check`.") from error
    return done.stdout if done.returncode == 0 else None
