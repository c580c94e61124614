"""Under which URNs a resource may be in the state."""

from typing import Any

import pytest

from tools.engine.local.aliases import Alias, former_urns, make_urn

STACK = "urn:pulumi:dev::infra::pulumi:pulumi:Stack::infra-dev"
PLATFORM = "urn:pulumi:dev::infra::my:index:Platform::platform"
CLUSTER = "urn:pulumi:dev::infra::my:index:Platform$pkg:index:Cluster::hpc"
AT_THE_ROOT = "urn:pulumi:dev::infra::pkg:index:Cluster::hpc"
JOB = "urn:pulumi:dev::infra::my:index:Platform$pkg:index:Cluster$k8s:Job::hpc-job"


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ({"urn": "urn:pulumi:a::b::c::d"}, "urn:pulumi:a::b::c::d"),
        ({"name": "old"}, CLUSTER.replace("::hpc", "::old")),
        ({"type": "pkg:index:Old"}, CLUSTER.replace("Cluster", "Old")),
        ({"stack": "prod", "project": "web"}, CLUSTER.replace("dev::infra", "prod::web")),
        ({"no_parent": True}, AT_THE_ROOT),
        ({"parent": STACK}, AT_THE_ROOT),
        ({"parent": "urn:pulumi:dev::infra::my:index:Other::other"}, CLUSTER.replace("Platform", "Other")),
    ],
)
def test_what_an_alias_leaves_open_is_as_it_is_now(alias: dict[str, Any], expected: str) -> None:
    assert former_urns(CLUSTER, PLATFORM, [Alias(**alias)], {}) == [expected]


def test_children_follow_a_parent_that_was_found_under_another_urn() -> None:
    expected = "urn:pulumi:dev::infra::pkg:index:Cluster$k8s:Job::hpc-job"
    assert former_urns(JOB, CLUSTER, [], {CLUSTER: AT_THE_ROOT}) == [expected]


def test_a_childs_name_that_begins_with_its_parents_follows_that() -> None:
    before = AT_THE_ROOT.replace("::hpc", "::old")
    urn = make_urn("dev", "infra", CLUSTER, "k8s:Job", "other")
    assert former_urns(JOB, CLUSTER, [], {CLUSTER: before})[0].endswith("::old-job")
    assert former_urns(urn, CLUSTER, [], {CLUSTER: before})[0].endswith("::other")


def test_aliases_of_a_child_are_multiplied_by_its_parents() -> None:
    found = former_urns(JOB, CLUSTER, [Alias(name="hpc-work")], {CLUSTER: AT_THE_ROOT})
    assert [text.split("infra::")[1] for text in found] == [
        "my:index:Platform$pkg:index:Cluster$k8s:Job::hpc-work",
        "pkg:index:Cluster$k8s:Job::hpc-job",
        "pkg:index:Cluster$k8s:Job::hpc-work",
    ]


def test_what_has_no_alias_was_never_elsewhere() -> None:
    assert former_urns(JOB, CLUSTER, [], {}) == []
