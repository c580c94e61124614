"""Tests of the policies: on recorded deployments, without an engine and without a cluster."""

from typing import Any

from acme import POLICIES_OF_ACME
from soperator_pulumi import SlurmCluster
from soperator_pulumi.policy.recorded import Judgement, judge
from soperator_pulumi.testing import deploy

CLUSTER: dict[str, Any] = {
    "images": {
        name: f"registry.example.com/{name}:1"
        for name in (
            "controller",
            "worker",
            "login",
            "accounting",
            "database",
            "exporter",
            "munge",
            "jail_tools",
            "jail",
        )
    },
    "node_sets": [{"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}],
    "login": {"replicas": 2},
    "accounting": {"dump": {}},
    "metrics": {"alerts": {}},
    "health": {"long_checks": {"memory_bandwidth": {}}},
    "network": {"egress": ["internet", "10.20.0.0/16"]},
}


def judged(**changes: Any) -> Judgement:
    """Return the judgement of a cluster in production."""
    deployment = deploy(lambda: SlurmCluster("hpc", {**CLUSTER, **changes}))
    return judge(deployment, environment="prod", policies=POLICIES_OF_ACME)


def test_a_cluster_that_no_one_pays_for_is_refused() -> None:
    (failure,) = judged().failures
    assert failure.startswith("cost-centres: Namespace hpc-namespace, metadata.labels.cost-centre: needs a cost centre")


def test_a_cluster_with_a_cost_centre_passes() -> None:
    assert judged(labels={"cost-centre": "cc-4711"}).failures == ()


def test_the_other_policies_hold_as_well() -> None:
    (failure,) = judged(labels={"cost-centre": "cc-4711"}, storage={"keep": False}).failures[:1]
    assert failure.startswith("kept-data: ")
