"""The order of an upgrade of Slurm, as Pulumi keeps it; and the pods of a new cluster, which start at the same time."""

from collections.abc import Mapping
from typing import Any

import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.lifecycle import VERSION_ANNOTATION
from soperator_pulumi.render import layout
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_spec, provided

ORDER = ["hpc-slurm-version", "hpc-accounting", "hpc-controller", "hpc-cpu", "hpc-login"]
"""StatefulSets with Slurm in their pods, after the check of the version, in Slurm's order."""


def a_deployment(*, upgrading: bool, **changes: Any) -> Deployment:
    def outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if type_.endswith(":SlurmVersion"):
            return {"upgrading": upgrading}
        return provided(type_, name, inputs)

    return deploy(lambda: SlurmCluster("hpc", a_spec(accounting={}, **changes)), outputs=outputs)


def waits_for(deployment: Deployment, name: str) -> set[str]:
    kind = "SlurmVersion" if name == ORDER[0] else "StatefulSet"
    return {awaited.name for awaited in deployment.waits_for(deployment.one(name, kind))}


def test_in_an_upgrade_each_part_waits_for_those_before_it_to_be_ready() -> None:
    deployment = a_deployment(upgrading=True)

    for index, name in enumerate(ORDER[1:], start=1):
        assert set(ORDER[:index]) <= waits_for(deployment, name)
    assert "hpc-accounting-ready" in waits_for(deployment, "hpc-controller")
    assert "hpc-controller-ready" in waits_for(deployment, "hpc-cpu")
    assert "hpc-cpu-ready" in waits_for(deployment, "hpc-login")


def test_in_an_upgrade_slurmrestd_waits_for_slurmctld_and_slurmdbd_to_be_ready() -> None:
    found = waits_for(a_deployment(upgrading=True, rest={}), "hpc-rest")

    assert {*ORDER[:3], "hpc-accounting-ready", "hpc-controller-ready"} <= found


@pytest.mark.parametrize("later", ["hpc-cpu", "hpc-login"])
def test_the_pods_of_a_new_cluster_start_at_the_same_time(later: str) -> None:
    found = waits_for(a_deployment(upgrading=False), later)

    assert "hpc-slurm-version" in found
    assert not {"hpc-controller-ready", "hpc-cpu-ready"} & found


@pytest.mark.parametrize("name", ["accounting", "controller", "rest", "cpu", "login"])
def test_a_part_with_slurm_in_it_is_marked_with_its_version(name: str) -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(accounting={}, rest={})), outputs=provided)
    annotations = deployment.one(f"hpc-{name}", "StatefulSet").inputs["metadata"]["annotations"]

    assert annotations[VERSION_ANNOTATION] == "24.11"


@pytest.mark.parametrize(
    ("name", "container"), [("accounting", "slurmdbd"), ("controller", "slurmctld"), ("rest", "slurmrestd")]
)
def test_a_daemon_knows_the_version_of_the_spec_against_an_image_of_another(name: str, container: str) -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", a_spec(accounting={}, rest={})), outputs=provided)
    template = deployment.one(f"hpc-{name}", "StatefulSet").inputs["spec"]["template"]["spec"]
    (daemon,) = (item for item in template["containers"] if item["name"] == container)

    assert {"name": layout.SLURM_OF_SPEC, "value": "24.11"} in daemon["env"]
    assert any(word.endswith(f"start-{container}") for word in daemon["command"])
