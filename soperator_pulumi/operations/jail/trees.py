"""Trees of a jail, and the results of programs that work on them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from soperator_pulumi.errors import JailError


class Tree(BaseModel):
    """A complete tree on the jail's claim, as `jail_tools trees` lists it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tree: str
    source: str | None = None
    populated: str | None = None
    """Time when it was filled."""
    active: bool = False

    def __str__(self) -> str:
        return f"{self.source} ({self.tree})" if self.source else self.tree


_TREES = TypeAdapter(tuple[Tree, ...])


def read_trees(text: str) -> tuple[Tree, ...]:
    """Return the trees in the output of `jail_tools trees`.

    Raises:
        JailError: the text is not such output.
    """
    try:
        return _TREES.validate_json(text)
    except ValidationError as error:
        raise JailError(f"jail: its trees cannot be listed: jail_tools printed {text[:200]!r}.") from error


def active_of(trees: Sequence[Tree]) -> Tree | None:
    """Return the tree that new jobs and logins enter; None if there is none."""
    return next((tree for tree in trees if tree.active), None)


def emptied(tree: str) -> str:
    """Return what to do about a claim without any tree, on which `tree` was active."""
    return (
        f"jail: its claim holds no tree, and tree {tree} was active on it: the volume was emptied, or is another one. "
        "Homes and other shared files are not on it; jobs and log-ins fail. Restore the volume, or name the claim that "
        "has the files. If they may be lost, set jail.storage.accept.emptied to the reason until the next up has ended."
    )


def find_tree(trees: Sequence[Tree], tree: str) -> Tree:
    """Return the tree with this name.

    Raises:
        JailError: it does not exist; the message lists those that do.
    """
    found = next((kept for kept in trees if kept.tree == tree), None)
    if found is None:
        there = "\n".join(f"  {line}" for line in _listed(trees)) or "  none"
        raise JailError(
            f'jail.active: got "{tree}", but the jail has no complete tree of that name. There are:\n{there}\n'
            "Choose one of them, or remove jail.active to use the tree that jail.source fills."
        )
    return found


def _listed(trees: Sequence[Tree]) -> Iterator[str]:
    for kept in sorted(trees, key=lambda tree: tree.populated or ""):
        filled = kept.populated and f"filled {kept.populated}"
        parts = [kept.tree, kept.source or "of unknown source", filled, kept.active and "active"]
        yield ", ".join(part for part in parts if part)


def result_of(log: Sequence[str]) -> Mapping[str, Any]:
    """Return the result that a program printed last, as JSON; empty if there is none."""
    line = next((line for line in reversed(log) if line.startswith("{")), "{}")
    try:
        result = json.loads(line)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}


def how_much(result: Mapping[str, Any]) -> str:
    """Return the size of a filled tree and the time that it took, worded as the end of a sentence."""
    try:
        files, mebibytes, seconds = int(result["files"]), int(result["bytes"]) / 2**20, float(result["seconds"])
    except (KeyError, TypeError, ValueError):
        return ""
    return f": {files:,} files, {mebibytes:,.0f} MiB, in {seconds:.0f} s"
