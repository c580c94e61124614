"""Selection of the tests that a change can break, in the order in which they run."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from tools.affected.dependencies import Graph, is_in, users_of
from tools.affected.source_tree import is_test
from tools.affected.stated_edges import ALL, CHOICES, Choice

TIERS = ("unit", "rendered", "engine", "cluster")
"""Tiers, the quickest first."""

ON_KUBERNETES = ("engine", "cluster")
"""Tiers whose tests need a Kubernetes cluster."""


@dataclass(frozen=True)
class Selection:
    """Test files that a change can break, and all other test files."""

    selected: Mapping[str, Sequence[str]]
    """Files that it can break, by tier."""
    left_out: Mapping[str, Sequence[str]]
    """All other files, by tier."""
    nearest: Sequence[str]
    """Selected unit tests that mirror a changed file."""
    why_all: Sequence[str]
    """Reasons to select everything; empty if the uses of the changed files decide."""


def select(changed: Collection[str], files: Collection[str], graph: Graph, text_of: Callable[[str], str]) -> Selection:
    """Return the tests that a change can break; all if a changed file affects all tests, or is unknown.

    Args:
        changed: Paths of changed, new and deleted files.
        files: Paths of all files that are there.
        graph: Nodes that use each node.
        text_of: Return the text of a test's file.
    """
    tiers = {file: tier for file in files if is_test(file) and (tier := tier_of(file))}
    why_all = [reason for file in changed if (reason := _why_all(file, files, graph))]
    broken = {test for file in changed for test in _broken_by(file, tiers, graph, text_of)}
    selected = {*tiers} if why_all else broken
    return Selection(
        selected={tier: sorted(test for test in selected if tiers[test] == tier) for tier in TIERS},
        left_out={tier: sorted(test for test in tiers.keys() - selected if tiers[test] == tier) for tier in TIERS},
        nearest=sorted(nearest(changed, {test for test in broken if tiers[test] == "unit"})),
        why_all=why_all,
    )


def tier_of(test: str) -> str:
    """Return the tier of a test file; empty for a file of no tier, such as a benchmark."""
    parts = PurePosixPath(test).parts
    tier = "unit" if parts[0] == "images" else parts[1]
    return tier if tier in TIERS else ""


def nearest(changed: Iterable[str], tests: Collection[str]) -> set[str]:
    """Return unit tests that were changed or mirror a changed file: by name, or else by folder."""
    found: set[str] = set()
    for file in changed:
        folder, stem = _mirror_of(PurePosixPath(file.removeprefix("soperator_pulumi/").replace("-plugin", "_plugin")))
        in_folder = {test for test in tests if str(PurePosixPath(test).parent) == folder}
        of_its_name = {test for test in in_folder if PurePosixPath(test).stem.startswith(f"test_{stem}")}
        in_subfolder = in_folder if folder != "tests/unit" else set()
        found |= {file} & {*tests} or of_its_name or in_subfolder
    return found


def _mirror_of(file: PurePosixPath) -> tuple[str, str]:
    """Return the folder of a file's unit tests, and the name that they share with the file."""
    of_an_image = file.parts[0] == "images" and len(file.parts) > 2
    folder = PurePosixPath(*file.parts[:2], "tests") if of_an_image else PurePosixPath("tests/unit", file.parent)
    return str(folder), file.stem


def _why_all(file: str, files: Collection[str], graph: Graph) -> str:
    """Return why a file affects all tests; empty if it does not."""
    if is_in(file, ALL):
        return f"{file} makes the environment that all tests run in"
    is_deleted_code = file not in files and file.endswith(".py")
    if is_deleted_code or any(map(is_test, users_of(graph, file))):
        return ""
    return f"{file} is used by no test, as far as imports and paths show"


def _broken_by(file: str, tiers: Mapping[str, str], graph: Graph, text_of: Callable[[str], str]) -> set[str]:
    users = cache(lambda without: users_of(graph, file, without) & tiers.keys())

    def unmade_choices(test: str) -> frozenset[Choice]:
        if tiers[test] not in ON_KUBERNETES:
            return frozenset()
        return frozenset(choice for choice in CHOICES if choice.word not in text_of(test))

    return {test for test in users(frozenset()) if test in users(unmade_choices(test))}
