"""The public interface: a snapshot of every name, and the code in docstrings. UPDATE_GOLDEN=1 writes the snapshot."""

import functools
import importlib
import json
import os
import re
import textwrap
from collections.abc import Iterator

import griffe
import pytest

from soperator_pulumi import testing
from soperator_pulumi.policy import pack
from tools import paths

MODULES = re.findall(r"automodule:: (\S+)", (paths.ROOT / "docs" / "api.md").read_text())
SNAPSHOT = paths.ROOT / "tests" / "golden" / "public_interface.txt"
GENERATED = "soperator_pulumi.spec.args"
IMAGES = {
    name: f"registry.example.com/{name}:1"
    for name in ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools")
}


@functools.cache
def modules() -> list[griffe.Module]:
    """Public modules. It takes seconds to read them, which no process spends that runs none of these tests."""
    collection = griffe.load("soperator_pulumi", search_paths=[str(paths.ROOT)]).modules_collection
    return [collection[path] for path in MODULES]


def names(module: griffe.Module) -> dict[str, griffe.Object]:
    """Public objects of a module: those of `__all__`, or else those that are defined there."""
    defined = [name for name, member in module.members.items() if not (name.startswith("_") or member.is_alias)]
    listed = defined if module.exports is None else [str(name) for name in module.exports]
    return {name: target(module[name]) for name in listed if not module[name].is_module}


def members(described: griffe.Object) -> dict[str, griffe.Object]:
    """Public members of a class, without inherited ones."""
    if not isinstance(described, griffe.Class):
        return {}
    return {
        name: target(member)
        for name, member in described.members.items()
        if name == "__init__" or not name.startswith("_")
    }


def target(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found


def described(module: griffe.Module) -> list[griffe.Object]:
    """A module, its public objects, and their members."""
    objects = [*names(module).values()]
    return [module, *objects, *(member for found in objects for member in members(found).values())]


def lines(module: griffe.Module) -> Iterator[str]:
    """A line for every name: bases of a class, arguments of a function, type of an attribute."""
    for name, found in names(module).items():
        yield f"{module.path}.{name}{declared(found)}"
        yield from (f"{module.path}.{name}.{member}{declared(of)}" for member, of in members(found).items())


def declared(found: griffe.Object) -> str:
    if isinstance(found, griffe.Class):
        return f"({', '.join(map(str, found.bases))})"
    if isinstance(found, griffe.Function):
        return found.signature().removeprefix(found.name)
    return f": {getattr(found, 'annotation', None)}"


def examples(module: griffe.Module) -> dict[str, list[str]]:
    """Code in docstrings, indented lines after `::`, by the name of what it describes."""
    code = re.compile(r"(?m)^.*::\n\n(?P<code>(?:(?: {4}.*)?\n)+)")
    texts = {found.path: f"{found.docstring.value}\n" for found in described(module) if found.docstring}
    found = {
        path: [textwrap.dedent(part["code"]).strip() for part in code.finditer(text)] for path, text in texts.items()
    }
    return {path: codes for path, codes in found.items() if codes}


def test_the_interface_is_that_of_the_snapshot() -> None:
    interface = "".join(f"{line}\n" for module in modules() if module.path != GENERATED for line in lines(module))
    if os.environ.get("UPDATE_GOLDEN"):
        SNAPSHOT.write_text(interface)
    assert interface == SNAPSHOT.read_text(), (
        "The public interface has changed. Run this test with UPDATE_GOLDEN=1, look at the difference, and name it in "
        "CHANGELOG.md."
    )


def test_every_public_name_can_be_imported() -> None:
    for module in modules():
        imported = importlib.import_module(module.path)
        assert [name for name in names(module) if not hasattr(imported, name)] == []


def test_every_public_module_class_and_function_has_a_meaning() -> None:
    found = [part for module in modules() for part in described(module) if not part.is_attribute]
    assert len(found) > 50
    assert [part.path for part in found if part.docstring is None and part.name != "__init__"] == []


@pytest.mark.parametrize("index", range(len(MODULES)), ids=MODULES)
def test_the_code_in_docstrings_of_a_module_runs_as_it_stands(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, codes in examples(modules()[index]).items():
        for code in codes:
            run(owner, code, monkeypatch)


def run(owner: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setattr(pack, "PolicyPack", lambda name, _policies: served.append(name))  # Pulumi's never returns

    def program() -> None:
        exec(compile(code, owner, "exec"), {})  # noqa: S102 - it is the docstring that is tried

    if "deploy(" in code or "serve(" in code:
        program()
        assert bool(served) == ("serve(" in code)
        return
    config = {"soperator:images": json.dumps({**IMAGES, "jail": "registry.example.com/jail:1"})}
    testing.deploy(program, config=config)


def test_modules_and_classes_bring_examples() -> None:
    owners = {owner for module in modules() for owner in examples(module)}
    assert {"soperator_pulumi.testing", "soperator_pulumi.cluster.slurm_cluster.SlurmCluster"} <= owners
