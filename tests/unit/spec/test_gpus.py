"""Rules of GPUs that concern more than their own keys."""

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import Data, a_cluster, a_spec


def a_node_set(**changes: object) -> Data:
    return {"name": "gpu", "cpus": 8, "memory_gib": 8, **changes}


def problems_of(node_set: Data, **cluster: object) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_cluster(a_cluster(node_sets=[node_set], **cluster))
    return {problem.path: problem.text for problem in caught.value.problems}


def test_mig_instances_need_the_kernel_to_separate_jobs() -> None:
    node_set = a_node_set(gpus={"mig": {"1g.10gb": 7}})
    assert a_spec(node_sets=[node_set], slurm={"constrain": "cgroup"}).node_sets[0].gpus
    found = problems_of(node_set, slurm={"constrain": "none"})
    assert found.keys() == {"node_sets[0].gpus.mig"}
    assert 'needs slurm.constrain = "cgroup"' in found["node_sets[0].gpus.mig"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"rdma": {"resource": "nvidia.com/gpu"}}, "rdma.resource"),
        ({"extra_resources": {"nvidia.com/gpu": 1}}, "extra_resources"),
        ({"rdma": {"resource": "rdma/a"}, "extra_resources": {"rdma/a": 1}}, "extra_resources"),
    ],
)
def test_a_resource_has_one_number(changes: Data, path: str) -> None:
    found = problems_of(a_node_set(gpus={"count": 1}, **changes))
    assert found.keys() == {f"node_sets[0].{path}"}
    assert "is also a resource of node_sets[0]." in found[f"node_sets[0].{path}"]


def test_a_resource_of_mig_instances_leads_to_their_profile() -> None:
    found = problems_of(a_node_set(gpus={"count": 7, "resource": "nvidia.com/mig-1g.10gb"}))
    assert 'mig: {"1g.10gb": 7}' in found["node_sets[0].gpus.resource"]


def test_the_topology_for_nccl_is_named_once() -> None:
    twice = a_node_set(nccl_topology="<system></system>", environment={"NCCL_TOPO_FILE": "/etc/topology.xml"})
    assert "nccl_topology sets it as well" in problems_of(twice)["node_sets[0].environment.NCCL_TOPO_FILE"]


def test_a_message_about_the_environment_holds_no_value() -> None:
    secret = "hunter2"
    with pytest.raises(SpecError) as caught:
        parse_cluster(a_cluster(node_sets=[a_node_set(environment={"A": [secret], "B C": secret, "PATH": secret})]))
    assert len(caught.value.problems) == 3
    assert secret not in str(caught.value)


def test_numbers_of_variables_are_text() -> None:
    (node_set,) = a_spec(node_sets=[a_node_set(environment={"A": 1, "B": 2.0, "C": 0.5, "D": "x"})]).node_sets
    assert node_set.environment == {"A": "1", "B": "2", "C": "0.5", "D": "x"}


@pytest.mark.parametrize(
    "profile", ["1g.10gb", "1g.10gb.me", "1g.24gb.gfx", "1g.24gb-me", "1g.24gb.me.all", "2g.48gb-me", "7g.141gb"]
)
def test_profiles_of_mig_are_those_of_the_device_plugins_resources(profile: str) -> None:
    node_set = a_node_set(gpus={"mig": {profile: 7}})
    (made,) = a_spec(node_sets=[node_set], slurm={"constrain": "cgroup"}).node_sets

    assert made.gpus
    assert made.gpus.resources == {f"nvidia.com/mig-{profile}": 7}


@pytest.mark.parametrize("profile", ["1g.24gb+gfx", "MIG 1g.10gb", "1c.3g.20gb", "8g.10gb", "1g.10gb."])
def test_a_profile_that_is_no_resource_is_refused_with_the_form_of_one(profile: str) -> None:
    (text,) = problems_of(a_node_set(gpus={"mig": {profile: 7}}), slurm={"constrain": "cgroup"}).values()

    assert '"." for each "+" that nvidia-smi prints' in text
