"""The quota of GPUs counts whole GPUs and MIG instances of node sets, as the example of a GPU cluster has them."""

import json
import runpy

import pytest

from soperator_pulumi.policy.recorded import judge
from soperator_pulumi.testing import Deployment, deploy
from tests.examples import example
from tests.rendered.cluster.clusters import provided

GPUS = 2 * 8 + 7


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    which = example("gpu-cluster")
    return deploy(
        lambda: runpy.run_path(str(which.folder), run_name="__main__"), config=which.texts(), outputs=provided
    )


def over_quota(deployment: Deployment, limit: int) -> list[str]:
    policy = {"settings": {"gpu-quota": {"limit": limit}}}
    judged = judge(deployment, environment="dev", policy=policy, variables={})
    return [violation.message for violation in judged.violations if violation.policy == "gpu-quota"]


def test_a_quota_of_all_gpus_is_kept(deployment: Deployment) -> None:
    assert over_quota(deployment, GPUS) == []


def test_one_gpu_less_names_the_node_sets_that_have_them(deployment: Deployment) -> None:
    (text,) = over_quota(deployment, GPUS - 1)
    assert f"{GPUS} GPUs, at most {GPUS - 1} are allowed in dev" in text
    assert "hpc-h100 16, hpc-mig 7" in text


def test_the_examples_own_stack_keeps_its_policies(deployment: Deployment) -> None:
    policy = json.loads(example("gpu-cluster").texts()["soperator:policy"])
    judged = judge(deployment, policy=policy, stack="dev", variables={})
    assert [violation.message for violation in judged.violations if violation.policy == "gpu-quota"] == []
