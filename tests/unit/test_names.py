"""Names in the sources: one name for one thing, and docstrings that open with the thing or the act."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
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

IN_EACH_LAYER = {
    "accounting",
    "admin",
    "alerts",
    "jail",
    "job_containers",
    "job_hooks",
    "login",
    "long_checks",
    "network",
    "node_health",
    "node_set",
    "secrets",
    "storage",
    "users",
}
"""Modules of one key of the spec, or one pod, in the layers that have a part of it: model, text of files, objects."""

COMMANDS = {"drift", "render", "review", "ssh"}
"""Modules of one command: of the package, and of the `make` target that adds a checkout's stack and engine."""

PARTS_OF_A_PLATFORM = {
    "cert_manager",
    "cilium",
    "gpu_operator",
    "kube_prometheus_stack",
    "mariadb_operator",
    "network_operator",
    "shared_storage",
}
"""Modules of one part of a platform: model and component."""

ON_EITHER_SIDE = {"errors", "layout", "progress", "trees"}
"""Modules that the package and the jail's tools each have of one thing: the tools need nothing but Python."""

CLASSES_ON_EITHER_SIDE = {"JailError", "Tree"}

_OPENERS = re.compile(r"(What|Who|Whose|Whether|Its|How|Which)\b")


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def twice(found: Mapping[str, list[Path]], same_thing: set[str]) -> dict[str, list[str]]:
    return {name: [*map(str, paths)] for name, paths in found.items() if len(paths) > 1 and name not in same_thing}


def test_no_module_name_stands_for_two_things() -> None:
    modules: dict[str, list[Path]] = defaultdict(list)
    for path, _ in sources():
        if not path.stem.startswith("__"):
            modules[path.stem].append(path)
    assert not twice(modules, IN_EACH_LAYER | COMMANDS | PARTS_OF_A_PLATFORM | ON_EITHER_SIDE)


def test_no_class_name_stands_for_two_things() -> None:
    classes: dict[str, list[Path]] = defaultdict(list)
    for path, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path)
    assert not twice(classes, CLASSES_ON_EITHER_SIDE)


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
