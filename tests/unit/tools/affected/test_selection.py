"""The tests that a change can break are selected, and no others where the change is understood."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import pytest

from tests.unit.tools.affected.made_trees import made_graph
from tools.affected.selection import TIERS, Selection, nearest, select, tier_of
from tools.affected.stated_edges import ALL, CHOICES

CHOICE = CHOICES[0]
TREE = {
    "soperator_pulumi/slurm/hostlist.py": "",
    "soperator_pulumi/spec/names.py": "from soperator_pulumi.slurm import hostlist",
    "tests/unit/slurm/test_hostlist.py": "from soperator_pulumi.slurm import hostlist",
    "tests/unit/slurm/test_other.py": "",
    "tests/unit/spec/test_names.py": "from soperator_pulumi.spec import names",
    "tests/rendered/test_all.py": "from soperator_pulumi.spec import names",
    "tests/cluster/test_jobs.py": "from soperator_pulumi.spec import names",
    "tests/cluster/test_jail.py": "",
    "tests/bench/test_speed.py": "",
    "images/health/tests/test_smi.py": "",
    "LICENSE": "",
}


def selected(
    *changed: str, deleted: Collection[str] = (), added: Mapping[str, str] = MappingProxyType({})
) -> Selection:
    texts = {**TREE, **added}
    graph = made_graph({**texts, **dict.fromkeys(deleted, "")})
    return select([*changed, *deleted], [*texts], graph, lambda test: texts[test])


def all_files(found: Selection) -> set[str]:
    return {file for files in found.selected.values() for file in files}


def test_a_change_selects_its_tests_in_every_tier_and_leaves_the_others_out() -> None:
    found = selected("soperator_pulumi/slurm/hostlist.py")
    assert found.selected == {
        "unit": ["tests/unit/slurm/test_hostlist.py", "tests/unit/spec/test_names.py"],
        "rendered": ["tests/rendered/test_all.py"],
        "engine": [],
        "cluster": ["tests/cluster/test_jobs.py"],
    }
    assert found.left_out == {
        "unit": ["images/health/tests/test_smi.py", "tests/unit/slurm/test_other.py"],
        "rendered": [],
        "engine": [],
        "cluster": ["tests/cluster/test_jail.py"],
    }
    assert not found.why_all


def test_the_unit_tests_of_the_name_are_the_nearest() -> None:
    assert selected("soperator_pulumi/slurm/hostlist.py").nearest == ["tests/unit/slurm/test_hostlist.py"]


def test_a_changed_test_is_selected() -> None:
    found = selected("tests/cluster/test_jail.py", "tests/unit/slurm/test_other.py")
    assert all_files(found) == {"tests/cluster/test_jail.py", "tests/unit/slurm/test_other.py"}
    assert found.nearest == ["tests/unit/slurm/test_other.py"]


def test_a_changed_benchmark_selects_no_test_of_a_tier() -> None:
    found = selected("tests/bench/test_speed.py")
    assert all_files(found) == set()
    assert not found.why_all


@pytest.mark.parametrize("file", [*ALL, "LICENSE"])
def test_a_change_of_the_environment_or_of_an_unknown_file_selects_everything(file: str) -> None:
    found = selected("soperator_pulumi/slurm/hostlist.py", file)
    assert len(all_files(found)) == 7
    assert [file in reason for reason in found.why_all] == [True]
    assert found.nearest == ["tests/unit/slurm/test_hostlist.py"]


def test_a_deleted_module_selects_those_that_still_import_it() -> None:
    importer = {"tests/unit/test_old.py": "from soperator_pulumi import old"}
    assert all_files(selected(deleted=["soperator_pulumi/old.py"], added=importer)) == {"tests/unit/test_old.py"}


def test_a_deleted_module_without_importers_selects_nothing() -> None:
    found = selected(deleted=["soperator_pulumi/old.py", "tests/unit/test_old.py"])
    assert all_files(found) == set()
    assert not found.why_all


def test_a_choice_counts_on_kubernetes_for_tests_that_name_it_and_elsewhere_for_all() -> None:
    user, used = (file.removesuffix(".py").replace("/", ".") for file in (CHOICE.user, f"{CHOICE.used}/charts.py"))
    added = {
        f"{CHOICE.used}/charts.py": "",
        CHOICE.user: f"import {used}",
        "tests/rendered/test_plain.py": f"import {user}",
        "tests/cluster/test_plain.py": f"import {user}",
        "tests/cluster/test_chosen.py": f"import {user}\nmade(config='{CHOICE.word}')",
    }
    found = selected(f"{CHOICE.used}/charts.py", added=added)
    assert all_files(found) == {"tests/rendered/test_plain.py", "tests/cluster/test_chosen.py"}


def test_every_tier_has_its_folder_and_images_are_in_unit() -> None:
    assert [tier_of(f"tests/{tier}/test_a.py") for tier in TIERS] == [*TIERS]
    assert tier_of("images/health/tests/test_a.py") == "unit"
    assert tier_of("tests/bench/test_a.py") == ""


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("soperator_pulumi/slurm/drain/plan.py", "tests/unit/slurm/drain/test_plan_text.py"),
        ("tools/up.py", "tests/unit/tools/test_up.py"),
        ("images/health/node_health/smi.py", "images/health/tests/test_gpu_checks.py"),
        ("spank-plugin/view.c", "tests/unit/spank_plugin/test_plugin.py"),
        ("soperator_pulumi/policy/pod_rights.py", "tests/unit/policy/test_pods.py"),
    ],
)
def test_a_test_mirrors_a_file_by_its_name_or_else_by_its_folder(changed: str, test: str) -> None:
    assert nearest([changed], [test, "tests/unit/test_pages.py", "tests/unit/render/test_jail.py"]) == {test}


def test_nothing_mirrors_a_file_at_the_top_of_the_package_but_its_name() -> None:
    tests = ["tests/unit/test_pages.py", "tests/unit/test_testing.py"]
    assert nearest(["soperator_pulumi/testing.py"], tests) == {"tests/unit/test_testing.py"}
    assert nearest(["soperator_pulumi/errors.py"], tests) == set()
