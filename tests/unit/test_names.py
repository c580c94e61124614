"""Names of classes in the sources stand for one thing, and docstrings open with the thing or the act."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.paths import ROOT

SOURCES = (
    "soperator_pulumi",
    "tools",
    "stacks",
    "images/containers/container_images",
    "images/health/node_health",
    "images/health/long_checks",
    "images/jail-tools/jail_tools",
    "images/wire/slurm_wire",
)

ON_EITHER_SIDE = {"Tree"}
"""Classes of one thing that the package and the jail's tools both have: the tools need nothing but Python."""

_OPENERS = re.compile(r"(What|Who|Whose|Whether|Its|How|Which)\b")


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def test_no_class_name_stands_for_two_things() -> None:
    classes: dict[str, list[Path]] = defaultdict(list)
    for path, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path)
    twice = {name: [*map(str, paths)] for name, paths in classes.items() if len(paths) > 1}
    assert twice.keys() == ON_EITHER_SIDE, twice


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings that stand alone: of modules, classes, functions, and below constants and fields."""
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_docstrings_open_with_a_noun_or_a_verb() -> None:
    found = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, module in sources()
        for line, text in docstrings(module)
        if _OPENERS.match(text.strip())
    ]
    assert not found, "\n".join(found)
