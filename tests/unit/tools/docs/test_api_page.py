"""The page on the Python API: the snapshot of every public name, and the code in its docstrings."""

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
MODULES = api_page.modules()
OBJECTS = [each for module in MODULES for each in api_page.public_objects(module).values()]
MEMBERS = [
    member
    for each in OBJECTS
    if isinstance(each, griffe.Class) and not api_page.is_typed_dictionary(each)
    for member in api_page.public_members(each).values()
]
EXAMPLES = [(each.path, code) for each in (*MODULES, *OBJECTS, *MEMBERS) for code in api_page.examples(each)]


def test_the_page_is_what_the_sources_say() -> None:
    assert api_page.FILE.read_text() == api_page.text(), (
        "The public interface has changed. Run `make docs`, look at the difference, and name it in CHANGELOG.md."
    )


def test_the_page_describes_each_module_once() -> None:
    assert len(set(api_page.PUBLIC_MODULES)) == len(api_page.PUBLIC_MODULES)


def test_every_name_that_the_page_lists_can_be_imported() -> None:
    for module in MODULES:
        imported = importlib.import_module(module.path)
        assert [name for name in api_page.public_objects(module) if not hasattr(imported, name)] == []


def test_every_public_module_class_and_function_has_a_meaning() -> None:
    described = [each for each in (*MODULES, *OBJECTS, *MEMBERS) if not each.is_attribute]
    assert len(described) > 50
    assert [each.path for each in described if each.docstring is None] == []


@pytest.mark.parametrize(("owner", "code"), EXAMPLES, ids=[owner for owner, _ in EXAMPLES])
def test_the_code_in_a_docstring_runs_as_it_stands(owner: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setattr(pack, "PolicyPack", lambda name, _policies: served.append(name))  # Pulumi's never returns

    def run() -> None:
        exec(compile(code, owner, "exec"), {})  # noqa: S102 - it is the docstring that is tried

    if "deploy(" in code or "serve(" in code:
        run()
        assert bool(served) == ("serve(" in code)
        return
    config = {"soperator:images": json.dumps({**IMAGES, "jail": "registry.example.com/jail:1"})}
    testing.deploy(run, config=config)


def test_modules_and_classes_bring_examples() -> None:
    assert {"soperator_pulumi.testing", "soperator_pulumi.cluster.slurm_cluster.SlurmCluster"} <= {
        owner for owner, _ in EXAMPLES
    }
