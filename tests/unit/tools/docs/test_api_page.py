"""The page on the Python API: the snapshot of every public name, and the code in its docstrings."""

import functools
import importlib
import json

import griffe
import pytest

from soperator_pulumi import testing
from soperator_pulumi.policy import pack
from tools.docs import api_page

IMAGES = {
    name: f"registry.example.com/{name}:1"
    for name in ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools")
}


@functools.cache
def modules() -> list[griffe.Module]:
    """Public modules. It takes seconds to read them, which no process spends that runs none of these tests."""
    return api_page.modules()


def described(module: griffe.Module) -> list[griffe.Object]:
    """A module, its public objects, and the members of these that the page shows."""
    objects = [*api_page.public_objects(module).values()]
    members = [
        member
        for each in objects
        if isinstance(each, griffe.Class) and not api_page.is_typed_dictionary(each)
        for member in api_page.public_members(each).values()
    ]
    return [module, *objects, *members]


def examples(module: griffe.Module) -> dict[str, list[str]]:
    """Code in docstrings by the name of what it describes."""
    found = {each.path: [*api_page.examples(each)] for each in described(module)}
    return {owner: code for owner, code in found.items() if code}


def test_the_page_is_what_the_sources_say() -> None:
    assert api_page.FILE.read_text() == api_page.text(), (
        "The public interface has changed. Run `make docs`, look at the difference, and name it in CHANGELOG.md."
    )


def test_the_page_describes_each_module_once() -> None:
    assert len(set(api_page.PUBLIC_MODULES)) == len(api_page.PUBLIC_MODULES)


def test_every_name_that_the_page_lists_can_be_imported() -> None:
    for module in modules():
        imported = importlib.import_module(module.path)
        assert [name for name in api_page.public_objects(module) if not hasattr(imported, name)] == []


def test_every_public_module_class_and_function_has_a_meaning() -> None:
    found = [each for module in modules() for each in described(module) if not each.is_attribute]
    assert len(found) > 50
    assert [each.path for each in found if each.docstring is None] == []


@pytest.mark.parametrize("index", range(len(api_page.PUBLIC_MODULES)), ids=api_page.PUBLIC_MODULES)
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
