"""A file is used by those that import it, name it, or ask for its fixtures."""

import pytest

from tests.unit.tools.affected.made_trees import made_graph, users
from tools.affected.dependencies import users_of
from tools.affected.stated_edges import CHOICES

ROOT = "from pathlib import Path\nROOT = Path(__file__).resolve().parent.parent\n"


def test_a_module_is_used_through_others() -> None:
    found = users(
        "a/low.py",
        {
            "a/high.py": "from a.low import f",
            "tests/test_high.py": "from a import high\nhigh.g()",
            "tests/test_other.py": "",
        },
    )
    assert found == {"a/high.py", "tests/test_high.py"}


@pytest.mark.parametrize(
    "text",
    [
        "import a.low",
        "import a.low as low\nlow.f()",
        "from a import low",
        "from a.low import f",
        "def g():\n    from a.low import f",
        "from a.low import *",
    ],
)
def test_every_form_of_an_import_counts(text: str) -> None:
    assert users("a/low.py", {"tests/test_it.py": text}) == {"tests/test_it.py"}


def test_an_import_for_type_checkers_alone_does_not_count() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.low import T\ndef f(t: 'T') -> None: ..."
    assert users("a/low.py", {"tests/test_it.py": text}) == set()


def test_a_module_is_found_where_pytest_finds_it() -> None:
    assert users("images/health/checks/smi.py", {"tests/test_it.py": "from checks.smi import f"}) == {
        "tests/test_it.py"
    }


def test_a_script_finds_modules_of_its_own_folder() -> None:
    assert users("programs/things.py", {"programs/__main__.py": "import things"}) == {"programs/__main__.py"}


def test_a_package_passes_on_one_thing_without_all_others() -> None:
    package = "from a.low import f\nfrom a.other import g"
    found = users(
        "a/low.py",
        {
            "a/__init__.py": package,
            "a/other.py": "",
            "tests/test_f.py": "from a import f",
            "tests/test_g.py": "from a import g",
        },
    )
    assert found == {"a/__init__.py", "tests/test_f.py"}


def test_a_package_passes_on_a_thing_of_an_attribute() -> None:
    package = "from a.low import f\nfrom a.other import g"
    found = users(
        "a/low.py",
        {
            "a/__init__.py": package,
            "a/other.py": "",
            "tests/test_f.py": "import a\na.f()",
            "tests/test_g.py": "import a\na.g()",
        },
    )
    assert found == {"a/__init__.py", "tests/test_f.py"}


def test_a_thing_that_a_package_imports_on_first_use_is_known_by_what_type_checkers_see() -> None:
    lazy = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.low import f\ndef __getattr__(name): ..."
    found = users(
        "a/low.py",
        {"a/__init__.py": lazy, "tests/test_f.py": "from a import f", "tests/test_version.py": "import a\na.v"},
    )
    assert found == {"tests/test_f.py"}


def test_an_import_runs_the_packages_around_the_module() -> None:
    found = users(
        "a/__init__.py", {"a/low.py": "", "tests/test_low.py": "from a.low import f", "tests/test_other.py": ""}
    )
    assert found == {"tests/test_low.py"}


def test_a_package_around_the_module_counts_without_its_imports() -> None:
    found = users(
        "a/other.py", {"a/__init__.py": "import a.other", "a/low.py": "", "tests/test_low.py": "from a.low import f"}
    )
    assert found == {"a/__init__.py"}


def test_a_file_is_used_by_those_that_name_its_path() -> None:
    named = "from tools import paths\nPAGE = (paths.ROOT / 'docs' / 'jail.md').read_text()"
    other = "from tools import paths\nPAGE = (paths.ROOT / 'docs' / 'state.md').read_text()"
    found = users("docs/jail.md", {"tools/paths.py": ROOT, "tests/test_page.py": named, "tests/test_other.py": other})
    assert found == {"tests/test_page.py"}


def test_a_folder_is_used_with_all_in_it() -> None:
    named = (
        "from pathlib import Path\nSOURCES = Path(__file__).parents[1] / 'plugin'\ndef f(): return SOURCES.iterdir()"
    )
    assert users("plugin/tests/view.c", {"tests/test_it.py": named}) == {"tests/test_it.py"}


def test_a_folder_that_only_leads_to_a_file_is_not_used() -> None:
    named = "from tools.paths import ROOT\nDOCS = ROOT / 'docs'\nPAGE = DOCS / 'state.md'"
    assert users("docs/jail.md", {"tools/paths.py": ROOT, "tests/test_it.py": named}) == set()


def test_a_pattern_uses_what_it_matches() -> None:
    named = "from tools.paths import ROOT\nFILES = sorted((ROOT / 'stacks').glob('Pulumi.*.yaml'))"
    assert users("stacks/Pulumi.prod.yaml", {"tools/paths.py": ROOT, "tests/test_it.py": named}) == {"tests/test_it.py"}
    assert users("stacks/schema.json", {"tools/paths.py": ROOT, "tests/test_it.py": named}) == set()


def test_a_constant_of_another_module_is_looked_up() -> None:
    found = users(
        "examples/minimal/Pulumi.yaml",
        {
            "tests/examples.py": f"{ROOT}FOLDER = ROOT / 'examples'",
            "tests/test_it.py": "from tests import examples\nfound = list(examples.FOLDER.iterdir())",
        },
    )
    assert "tests/test_it.py" in found


def test_names_in_a_list_count_below_the_root() -> None:
    named = "from tools.paths import ROOT\nfor folder in ('ci', 'docs'):\n    (ROOT / folder).rglob('*')"
    assert users("ci/run", {"tools/paths.py": ROOT, "tests/test_it.py": named}) == {"tests/test_it.py"}
    assert users("policy/run", {"tools/paths.py": ROOT, "tests/test_it.py": named}) == set()


def test_a_string_of_a_test_names_a_file_and_that_of_the_product_does_not() -> None:
    assert users("docs/jail.md", {"tests/test_it.py": "PAGE = 'docs/jail.md'"}) == {"tests/test_it.py"}
    assert users("docs/jail.md", {"product/errors.py": "PAGE = 'docs/jail.md'"}) == set()


def test_a_path_of_the_machine_is_none_of_the_tree() -> None:
    assert (
        users("etc/passwd", {"tests/test_it.py": "from pathlib import Path\nUSERS = Path('/etc') / 'passwd'"}) == set()
    )


@pytest.mark.parametrize(
    "text", ["'tools.up.main'", "'import tools.up'", "f'python -m tools.up {1}'", "'from tools import up'"]
)
def test_a_string_of_a_test_names_a_module(text: str) -> None:
    assert users("tools/up.py", {"tests/test_it.py": f"f({text})"}) == {"tests/test_it.py"}


def test_a_docstring_names_nothing() -> None:
    assert users("tools/up.py", {"tests/test_it.py": '"""tools/up.py"""\ndef f():\n    """tools.up"""'}) == set()


def test_the_program_of_a_named_folder_is_run() -> None:
    named = "from tools.paths import ROOT\nf(ROOT / 'programs' / 'held')"
    texts = {"tools/paths.py": ROOT, "tests/test_it.py": named, "programs/held/__main__.py": "import a.low"}
    assert "tests/test_it.py" in users("a/low.py", texts)


def test_a_module_of_a_named_folder_is_read_and_not_run() -> None:
    named = "from tools.paths import ROOT\nf(ROOT / 'programs')"
    texts = {"tools/paths.py": ROOT, "tests/test_it.py": named, "programs/held.py": "import a.low"}
    assert users("a/low.py", texts) == {"programs/held.py"}
    assert users("programs/held.py", texts) == {"tests/test_it.py"}


def test_a_fixture_is_used_by_those_that_ask_for_it() -> None:
    world, sky = "@pytest.fixture\ndef world(): low.f()\n", "@pytest.fixture\ndef sky(): other.f()\n"
    found = users(
        "a/low.py",
        {
            "tests/conftest.py": f"from a import low, other\n{world}{sky}",
            "tests/test_it.py": "def test_a(world): ...",
            "tests/test_sky.py": "def test_b(sky): ...",
        },
    )
    assert found == {"tests/conftest.py", "tests/test_it.py"}


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.fixture\ndef mine(world): ...\ndef test_a(mine): ...",
        "pytestmark = pytest.mark.usefixtures('world')",
        "def test_a(request): request.getfixturevalue('world')",
        "def test_a(sea): ...",
    ],
)
def test_a_fixture_is_asked_for_in_every_way(text: str) -> None:
    conftest = "from a import low\n@pytest.fixture\ndef world(): low.f()\n@pytest.fixture\ndef sea(world): ..."
    assert "tests/b/test_it.py" in users("a/low.py", {"tests/conftest.py": conftest, "tests/b/test_it.py": text})


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.fixture\ndef world(): ...\ndef test_a(world): ...",
        "@pytest.mark.parametrize('world', [1])\ndef test_a(world): ...",
        "def helper(world): ...",
    ],
)
def test_a_name_of_the_tests_own_is_no_fixture_of_others(text: str) -> None:
    conftest = "from a import low\n@pytest.fixture\ndef world(): low.f()"
    assert "tests/test_it.py" not in users("a/low.py", {"tests/conftest.py": conftest, "tests/test_it.py": text})


@pytest.mark.parametrize("decorator", ["", "@pytest.fixture(autouse=True)\n"])
def test_hooks_and_fixtures_that_act_unasked_are_used_by_all_below(decorator: str) -> None:
    name = "world" if decorator else "pytest_configure"
    conftest = f"from a import low\n{decorator}def {name}(): low.f()"
    found = users("a/low.py", {"tests/b/conftest.py": conftest, "tests/b/c/test_it.py": "", "tests/test_other.py": ""})
    assert found == {"tests/b/conftest.py", "tests/b/c/test_it.py"}


def test_an_annotation_of_a_conftest_uses_nothing() -> None:
    conftest = "from a.low import T\n_all: dict[str, T] = {}\ndef pytest_configure(t: T) -> T: ..."
    assert users("a/low.py", {"tests/conftest.py": conftest, "tests/test_it.py": ""}) == set()


def test_a_changed_conftest_is_used_by_all_tests_below() -> None:
    texts = {"tests/b/test_it.py": "", "tests/c/test_it.py": "", "images/health/tests/test_it.py": ""}
    assert users("tests/b/conftest.py", {"tests/b/conftest.py": "", **texts}) == {"tests/b/test_it.py"}
    assert len(users("conftest.py", {"conftest.py": "", **texts})) == 3


def test_what_runs_in_pods_is_used_by_tests_of_clusters() -> None:
    texts = {"tests/cluster/slurm.py": "", "tests/cluster/test_jobs.py": "from tests.cluster.slurm import Slurm"}
    assert users("spank-plugin/view.c", texts) >= {"tests/cluster/test_jobs.py"}
    assert users("images/worker/Containerfile", texts) >= {"tests/cluster/test_jobs.py"}


@pytest.mark.parametrize("file", ["images/worker/tests/test_a.py", "images/README.md", "spank-plugin/tests/world.c"])
def test_what_stays_out_of_images_is_used_by_no_test_of_a_cluster(file: str) -> None:
    assert users(file, {"tests/cluster/slurm.py": ""}) == set()


def test_the_program_is_used_by_tests_of_clusters() -> None:
    texts = {"tests/cluster/slurm.py": "", "tests/cluster/test_jobs.py": "from tests.cluster.slurm import Slurm"}
    assert users("a/low.py", {"__main__.py": "import a.low", **texts}) >= {"tests/cluster/test_jobs.py"}


def test_imports_ahead_of_programs_do_not_count() -> None:
    ahead = "_IMPORTED = ('soperator_pulumi.policy.pack',)"
    assert users("soperator_pulumi/policy/pack.py", {"tests/warm_python.py": ahead}) == set()


def test_uses_of_a_choice_are_left_out_with_it() -> None:
    choice = CHOICES[0]
    file = f"{choice.used}/charts.py"
    module = f"import {choice.used.replace('/', '.')}.charts"
    graph = made_graph({file: "", choice.user: module, "tests/test_direct.py": module})

    assert users_of(graph, file) == {file, choice.user, "tests/test_direct.py"}
    assert users_of(graph, file, [choice]) == {file, "tests/test_direct.py"}
