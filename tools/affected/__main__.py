"""`make affected`: runs only the tests that a change can break, the quickest first."""

import argparse
import sys
import tomllib
from collections.abc import Iterable

from soperator_pulumi.wording import counted
from tools import console, paths
from tools.affected.changed_files import TreeChanges, changes_since
from tools.affected.dependencies import Graph, graph_of
from tools.affected.fact_cache import facts_of_files
from tools.affected.pytest_runs import PytestRun, carry_out, runs_of, steps_of
from tools.affected.selection import TIERS, Selection, select
from tools.affected.source_tree import SourceTree
from tools.console import UserError, say


def main() -> int:
    """Select the tests, print which are left out, and run them until a run fails."""
    parser = argparse.ArgumentParser(prog="make affected", description=__doc__)
    parser.add_argument("--base", help="revision to compare with (default: where the branch left its upstream or main)")
    parser.add_argument("--tiers", default=" ".join(TIERS), help="tiers to run, in quotes (default: all)")
    parser.add_argument("--list", action="store_true", help="print the tests, and run none")
    given = parser.parse_args()
    tiers = tiers_of(given.tiers)
    changes = changes_since(given.base or None, paths.ROOT)
    if not changes.changed:
        say(f"Nothing differs from {changes.base}: there is nothing to run.")
        return 0
    selection = selection_of(changes)
    runs = runs_of(selection, tiers)
    say(summary(changes, selection))
    if given.list:
        print(listed(runs, selection))
        return 0
    return carry_out(steps_of(runs))


def tiers_of(text: str) -> list[str]:
    """Return the tiers that the user named.

    Raises:
        UserError: One of the names is not a tier.
    """
    found = text.replace(",", " ").split()
    if unknown := [name for name in found if name not in TIERS]:
        raise UserError(f"TIERS={text}: {', '.join(unknown)} is not a tier. Name some of {', '.join(TIERS)}.")
    return found or [*TIERS]


def selection_of(changes: TreeChanges) -> Selection:
    """Return the tests that changes in this tree can break.

    Raises:
        UserError: A file named `*.py` is not Python.
    """
    graph = graph_of_files({*changes.files, *changes.changed})
    return select(changes.changed, changes.files, graph, lambda test: (paths.ROOT / test).read_text())


def graph_of_files(files: Iterable[str]) -> Graph:
    """Return the users of every node, for files of this tree.

    Raises:
        UserError: A file named `*.py` is not Python.
    """
    settings = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
    tree = SourceTree(files, settings["tool"]["pytest"]["ini_options"]["pythonpath"])
    return graph_of(tree, facts_of_files(tree.files, root=paths.ROOT, folder=paths.cache_dir() / "affected"))


def summary(changes: TreeChanges, selection: Selection) -> str:
    """Return the numbers of selected and skipped files by tier, and the reason if all are selected."""
    lines = [f"{counted(len(changes.changed), 'file')} changed since {changes.base}."]
    lines += [f"All tests are selected: {reason}." for reason in selection.why_all]
    for tier in TIERS:
        selected, left_out = selection.selected[tier], selection.left_out[tier]
        lines.append(f"{tier + ':':10}{counted(len(selected), 'file')} of tests selected, {len(left_out)} left out")
    return "\n".join(lines)


def listed(runs: list[PytestRun], selection: Selection) -> str:
    """Return the names of all files: those of every run, then the skipped ones."""
    sections = [(run.name, run.files) for run in runs]
    sections += [(f"left out of {tier}", files) for tier, files in selection.left_out.items() if files]
    return "\n".join("\n  ".join([f"{name}:", *files]) for name, files in sections)


if __name__ == "__main__":
    sys.exit(console.run(main))
