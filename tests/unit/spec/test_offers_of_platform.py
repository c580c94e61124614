"""Offers of a platform: defaults of a cluster's description, where it is silent."""

import asyncio
from typing import Any

import pulumi
import pytest

from soperator_pulumi.spec.platform.provided import with_defaults_of_platform

OFFERS = {
    "gpu_resource": "nvidia.com/gpu",
    "rdma_resources": ["rdma/hca"],
    "runtime_class": "nvidia",
    "storage_class": "shared",
}


def described(**cluster: Any) -> dict[str, Any]:
    return with_defaults_of_platform({"platform": OFFERS, **cluster})


def one(**node_set: Any) -> dict[str, Any]:
    (found,) = described(node_sets=[node_set])["node_sets"]
    return dict(found)


def check_no_resource_is_taken_of(offered: object) -> None:
    platform = {**OFFERS, "rdma_resources": offered}
    (found,) = with_defaults_of_platform({"platform": platform, "node_sets": [{"rdma": {"count": 1}}]})["node_sets"]
    assert found == {"rdma": {"count": 1}}


def test_a_node_set_with_gpus_takes_resource_and_runtime_class() -> None:
    assert one(gpus={"count": 8}) == {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}, "runtime_class": "nvidia"}


def test_what_a_node_set_gives_wins() -> None:
    given = {"gpus": {"count": 8, "resource": "amd.com/gpu"}, "runtime_class": "other", "rdma": {"resource": "rdma/b"}}
    assert one(**given) == given


def test_gpus_of_another_vendor_take_no_runtime_class() -> None:
    given = {"gpus": {"count": 8, "resource": "amd.com/gpu"}}
    assert one(**given) == given
    shared = {"gpus": {"count": 1, "resource": "nvidia.com/gpu.shared"}}
    assert one(**shared) == {**shared, "runtime_class": "nvidia"}


def test_a_node_set_without_gpus_takes_nothing_of_them() -> None:
    assert one(cpus=4) == {"cpus": 4}


def test_rdma_takes_the_only_resource_and_none_of_several() -> None:
    assert one(rdma={"count": 1}) == {"rdma": {"count": 1, "resource": "rdma/hca"}}
    check_no_resource_is_taken_of(["rdma/a", "rdma/b"])


@pytest.mark.parametrize("wrong", [5, True, "rdma/hca"])
def test_offers_of_rdma_that_are_no_list_stay_for_the_checks_of_the_spec(wrong: object) -> None:
    check_no_resource_is_taken_of(wrong)


def test_offers_of_rdma_that_are_known_later_stay_for_the_checks_of_the_spec() -> None:
    async def check() -> None:  # an Output needs an event loop
        check_no_resource_is_taken_of(pulumi.Output.from_input(["rdma/hca"]))

    asyncio.run(check())


@pytest.mark.parametrize("given", [{"storage_class": "own"}, {"existing_claim": "jail"}, {"static_volume": "pv"}])
def test_a_jail_with_a_volume_of_its_own_takes_no_class(given: dict[str, str]) -> None:
    assert described(jail={"storage": given})["jail"] == {"storage": given}


def test_a_jail_without_takes_the_class() -> None:
    assert described()["jail"] == {"storage": {"storage_class": "shared"}}
    assert described(jail={"storage": {"size_gib": 5}})["jail"]["storage"] == {"size_gib": 5, "storage_class": "shared"}


@pytest.mark.parametrize("wrong", [{"node_sets": "x"}, {"node_sets": ["x"]}, {"jail": 3}, {"jail": {"storage": []}}])
def test_malformed_parts_stay_for_the_checks_of_the_spec(wrong: dict[str, Any]) -> None:
    found = described(**wrong)
    assert {key: found[key] for key in wrong} == wrong


def test_a_description_without_a_platform_stays_as_it_is() -> None:
    assert with_defaults_of_platform({"name": "hpc", "node_sets": []}) == {"name": "hpc", "node_sets": []}
