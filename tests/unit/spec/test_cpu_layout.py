"""Layouts of a machine's CPUs in node sets: complete, equal to the CPUs, and with a socket for every GPU."""

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.node_set import CpuLayout
from tests.strategies import Data, a_cluster, a_spec

LAYOUT: Data = {"sockets": 2, "cores_per_socket": 48, "threads_per_core": 2}


def a_node_set(**changes: object) -> Data:
    return {"name": "gpu", "cpus": 192, "memory_gib": 8, **LAYOUT, **changes}


def problems_of(node_set: Data) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_cluster(a_cluster(node_sets=[node_set]))
    return {problem.path.removeprefix("node_sets[0]."): problem.text for problem in caught.value.problems}


def test_a_layout_is_that_of_the_cpus() -> None:
    (node_set,) = a_spec(node_sets=[a_node_set()]).node_sets

    assert node_set.layout == CpuLayout(2, 48, 2)


def test_a_node_set_without_sockets_has_no_layout() -> None:
    (node_set,) = a_spec().node_sets

    assert node_set.layout is None


@pytest.mark.parametrize("missing", [{"sockets"}, {"threads_per_core"}, {"sockets", "cores_per_socket"}], ids=sorted)
def test_every_missing_part_of_a_layout_is_named(missing: set[str]) -> None:
    given = {key: value for key, value in a_node_set().items() if key not in missing}

    found = problems_of(given)

    assert found.keys() == missing
    assert all("as `lscpu` on the machine prints it" in text for text in found.values())


def test_cpus_that_are_not_those_of_the_layout_are_refused_with_the_product() -> None:
    (text,) = (found := problems_of(a_node_set(cpus=184))).values()

    assert found.keys() == {"cpus"}
    assert "got 184, but sockets * cores_per_socket * threads_per_core is 2 * 48 * 2 = 192" in text
    assert "pod_resources" in text


def test_problems_of_a_layout_and_of_its_gpus_are_reported_together() -> None:
    found = problems_of(a_node_set(cpus=184, gpus={"count": 2, "sockets": [0, 2]}))

    assert found.keys() == {"cpus", "gpus.sockets"}
    assert "got socket 2, but the node set has 2, counted from 0" in found["gpus.sockets"]


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ({"count": 2, "sockets": [0]}, "got 1, but gpus.count is 2. Give one socket for every GPU"),
        ({"count": 1, "sockets": []}, "got 0, but gpus.count is 1. Give one socket for every GPU"),
        ({"mig": {"1g.10gb": 1}, "sockets": [0]}, "needs nodes with only whole GPUs"),
    ],
)
def test_every_whole_gpu_has_its_socket(gpus: Data, words: str) -> None:
    assert words in problems_of(a_node_set(gpus=gpus))["gpus.sockets"]


def test_sockets_of_gpus_need_those_of_the_machine() -> None:
    without = {"name": "gpu", "cpus": 4, "memory_gib": 8, "gpus": {"count": 1, "sockets": [0]}}

    assert "Add sockets, cores_per_socket, threads_per_core to the node set" in problems_of(without)["gpus.sockets"]


@pytest.mark.parametrize(("layout", "cores"), [({}, 192), (LAYOUT, 96)])
def test_reserved_cores_leave_one_for_jobs(layout: Data, cores: int) -> None:
    node_set = {"name": "cpu", "cpus": 192, "memory_gib": 8, **layout}

    (text,) = (found := problems_of({**node_set, "reserved_cores": cores})).values()

    assert found.keys() == {"reserved_cores"}
    assert f"got {cores}, which leaves no core for jobs: a node has {cores} in all." in text
    a_spec(node_sets=[{**node_set, "reserved_cores": cores - 1}])


@pytest.mark.parametrize(("layout", "left"), [({}, 190), (LAYOUT, 188)])
def test_jobs_get_the_cpus_without_those_of_reserved_cores(layout: Data, left: int) -> None:
    (spec,) = a_spec(node_sets=[{"name": "cpu", "cpus": 192, "memory_gib": 8, "reserved_cores": 2, **layout}]).node_sets

    assert spec.job_cpus == left


def test_cores_are_reserved_only_if_jobs_are_bound_to_theirs() -> None:
    with pytest.raises(SpecError, match=r"slurm\.constrain: none Slurm binds no job") as caught:
        parse_cluster(a_cluster(slurm={"constrain": "none"}, node_sets=[a_node_set(reserved_cores=1)]))

    assert [problem.path for problem in caught.value.problems] == ["node_sets[0].reserved_cores"]


@pytest.mark.parametrize("value", [True, "yes", "UP", 1])
def test_cores_are_not_reserved_if_users_may_take_them(value: object) -> None:
    slurm, node_sets = (
        {"extra": {"allowspecresourcesusage": value}},
        [a_node_set(reserved_cores=1), a_node_set(name="b")],
    )
    with pytest.raises(SpecError, match=r"slurm\.extra\.AllowSpecResourcesUsage any user takes") as caught:
        parse_cluster(a_cluster(slurm=slurm, node_sets=node_sets))

    assert [problem.path for problem in caught.value.problems] == ["node_sets[0].reserved_cores"]
    parse_cluster(a_cluster(slurm={"extra": {"AllowSpecResourcesUsage": False}}, node_sets=node_sets))
    parse_cluster(a_cluster(slurm=slurm, node_sets=node_sets[1:]))
