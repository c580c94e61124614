"""Faults in the product, and the tests that failed with them, are a record: a change of the same file selects them all.

For the record, each fault was put there alone, and the unit and rendered tests of its area ran.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from tools import paths
from tools.affected.__main__ import graph_of_files
from tools.affected.changed_files import changes_since
from tools.affected.selection import Selection, select
from tools.affected.stated_edges import ALL, CHOICES, IGNORED, USED


class Recorded(NamedTuple):
    """A change, the tests that failed with it, and one that has nothing to do with it."""

    file: str
    fault: str
    failed: tuple[str, ...]
    unrelated: str


RECORD = (
    Recorded(
        "soperator_pulumi/slurm/drain/checks.py",
        "a node that is not drained yet counts as free",
        (
            "tests/unit/slurm/drain/test_checks.py",
            "tests/unit/slurm/drain/test_plan.py",
            "tests/unit/slurm/drain/test_plan_properties.py",
            "tests/unit/slurm/drain/test_time_out.py",
        ),
        "tests/unit/render/test_users.py",
    ),
    Recorded(
        "soperator_pulumi/operations/configuration/transaction.py",
        "refused files stay in force",
        (
            "tests/unit/lifecycle/test_database_account.py",
            "tests/unit/operations/configuration/test_secret_files.py",
            "tests/unit/operations/configuration/test_transaction.py",
        ),
        "tests/unit/slurm/drain/test_plan.py",
    ),
    Recorded(
        "images/jail-tools/jail_tools/populating/marker.py",
        "a tree that was begun from another source is continued",
        ("images/jail-tools/tests/test_faults.py",),
        "images/health/tests/test_round.py",
    ),
    Recorded(
        "soperator_pulumi/policy/pod_rights.py",
        "a privileged container passes",
        (
            "tests/rendered/policy/test_pack.py",
            "tests/rendered/policy/test_violations.py",
            "tests/unit/policy/test_pods.py",
        ),
        "tests/unit/slurm/test_hostlist.py",
    ),
    Recorded(
        "soperator_pulumi/cluster/worker.py",
        "workers have NET_ADMIN",
        ("tests/rendered/cluster/test_pods.py",),
        "tests/unit/slurm/test_hostlist.py",
    ),
    Recorded(
        "spank-plugin/mountinfo.c",
        "escaped blanks of mount points are read wrong",
        ("tests/unit/spank_plugin/test_plugin.py",),
        "tests/unit/render/test_users.py",
    ),
    Recorded(
        "images/exporter/slurm_exporter/node_samples.py",
        "drained and draining nodes are counted for each other",
        ("images/exporter/tests/test_samples.py",),
        "images/health/tests/test_round.py",
    ),
    Recorded(
        "images/health/node_health/gpu_checks.py",
        "a GPU of another model passes",
        ("images/health/tests/test_gpu_checks.py",),
        "images/exporter/tests/test_samples.py",
    ),
    Recorded(
        "soperator_pulumi/render/slurmdbd_conf.py",
        "accounting enforces nothing",
        ("tests/unit/render/test_slurmdbd_conf.py",),
        "tests/unit/slurm/test_hostlist.py",
    ),
    Recorded(
        "soperator_pulumi/platform/cilium.py",
        "Cilium removes the configuration of other networks",
        ("tests/rendered/platform/test_values.py",),
        "tests/unit/slurm/test_hostlist.py",
    ),
)


@pytest.fixture(scope="module")
def selection() -> Callable[[str], Selection]:
    """Return what a change of one file selects in this tree."""
    files = changes_since("HEAD", paths.ROOT).files
    graph = graph_of_files(files)
    text_of = cache(lambda test: (paths.ROOT / test).read_text())
    return lambda file: select([file], files, graph, text_of)


@pytest.mark.parametrize("change", RECORD, ids=lambda change: change.file)
def test_the_tests_that_failed_are_selected_and_others_are_not(
    selection: Callable[[str], Selection], change: Recorded
) -> None:
    found = selection(change.file)
    selected = {test for tests in found.selected.values() for test in tests}
    assert {*change.failed} - selected == set()
    assert change.unrelated in {test for tests in found.left_out.values() for test in tests}
    assert not found.why_all


def test_a_pure_function_has_its_own_tests_first(selection: Callable[[str], Selection]) -> None:
    found = selection("soperator_pulumi/slurm/hostlist.py")
    assert found.nearest == ["tests/unit/slurm/test_hostlist.py"]
    assert len(found.selected["unit"]) < len(found.left_out["unit"])


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("soperator_pulumi/convert/rules.py", set()),
        ("soperator_pulumi/policy/pod_rights.py", {"test_readme"}),  # types a command with POLICY=policy
        ("soperator_pulumi/platform/cilium.py", {"test_bad_prerequisites", "test_platform_charts"}),
        ("tools/site/navigation.py", set()),
        ("tools/dashboard/page.py", {"test_node_health"}),  # draws what the exporter of a cluster measures
        ("docs/runbooks.md", set()),
    ],
)
def test_what_no_pod_runs_and_no_cluster_has_selects_the_cluster_tests_that_name_it_alone(
    selection: Callable[[str], Selection], file: str, expected: set[str]
) -> None:
    assert {test.removeprefix("tests/cluster/") for test in selection(file).selected["cluster"]} == {
        f"{name}.py" for name in expected
    }


@pytest.mark.parametrize(
    "file", ["images/node/Containerfile", "spank-plugin/view.c", "soperator_pulumi/cluster/worker.py"]
)
def test_what_pods_run_selects_the_tests_of_jobs(selection: Callable[[str], Selection], file: str) -> None:
    assert {"tests/cluster/test_jobs.py", "tests/cluster/test_jail_jobs.py"} <= {*selection(file).selected["cluster"]}


def test_every_path_in_the_tables_is_there() -> None:
    named = {*ALL, *USED, *IGNORED, *(path for table in (USED, IGNORED) for used in table.values() for path in used)}
    named |= {path for choice in CHOICES for path in (choice.user, choice.used)}
    assert [path for path in sorted(named) if not [*paths.ROOT.glob(path)]] == []
