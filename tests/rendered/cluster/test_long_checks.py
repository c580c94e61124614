"""Long checks as objects: a CronJob each, with bounds and few rights."""

import json
from typing import Any

import pytest

from soperator_pulumi.render import egress as egress_ports
from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment
from tests.rendered.cluster.test_network import peer_of

RING = "hpc-health-checks-ring_bandwidth"


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return a_deployment(
        health={"long_checks": {"ring_bandwidth": {"schedule": "5 * * * *"}, "memory_bandwidth": {"enabled": False}}}
    )


def cron_job(deployment: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = deployment.one(RING, "CronJob").inputs["spec"]
    return found


def pod(deployment: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = cron_job(deployment)["jobTemplate"]["spec"]["template"]["spec"]
    return found


def test_a_cluster_without_long_checks_has_none_of_their_objects() -> None:
    names = [resource.name for resource in a_deployment().resources()]
    assert not [name for name in names if "health-checks" in name]


def test_each_check_that_is_on_has_a_cron_job(deployment: Deployment) -> None:
    jobs = [resource.name for resource in deployment.resources(":CronJob")]
    assert jobs == [RING]
    assert deployment.one(RING, "CronJob").inputs["metadata"]["name"] == "health-ring-bandwidth"


def test_runs_do_not_overlap_and_end(deployment: Deployment) -> None:
    spec = cron_job(deployment)
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("5 * * * *", "Etc/UTC", "Forbid")
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (1, 3)
    assert spec["startingDeadlineSeconds"] > 0
    job = spec["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 0
    assert job["activeDeadlineSeconds"] > 600


def test_a_run_has_no_token_and_one_right(deployment: Deployment) -> None:
    assert pod(deployment)["automountServiceAccountToken"] is False
    (container,) = pod(deployment)["containers"]
    context = container["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
    assert context["readOnlyRootFilesystem"]
    assert container["command"][-2:] == ["/usr/lib/soperator/health/long-check", "ring_bandwidth"]


def test_a_run_sees_the_homes_and_no_tree(deployment: Deployment) -> None:
    (container,) = pod(deployment)["containers"]
    claims = {
        volume_mount["mountPath"]: volume_mount.get("subPath")
        for volume_mount in container["volumeMounts"]
        if volume_mount["name"] == "jail"
    }
    assert claims == {"/home": "home"}


def test_homes_on_a_volume_of_their_own_have_the_reports() -> None:
    deployment = a_deployment(
        health={"long_checks": {"ring_bandwidth": {}}},
        jail={"submounts": [{"path": "/home", "existing_claim": "homes"}]},
    )
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod(deployment)["volumes"]
        if volume.get("persistentVolumeClaim")
    ]
    assert claims == ["homes"]


def test_the_settings_have_limits_of_each_node_set(deployment: Deployment) -> None:
    files = deployment.one("hpc-health-checks-config", "ConfigMap").inputs["data"]
    assert [*files] == ["ring_bandwidth.json"]
    settings = json.loads(files["ring_bandwidth.json"])
    assert settings["node_sets"] == {"cpu": {"alone": 0.1, "together": 0.1, "gpus": 0, "first": []}}
    assert settings["verifies"] == []


def test_runs_reach_slurmctld_alone(deployment: Deployment) -> None:
    egress = deployment.one("hpc-network-health-checks")
    rules = egress.inputs["spec"]["egress"]
    assert rules[0]["ports"] == [{"protocol": "TCP", "port": 6817}]
    assert {port["port"] for port in rules[1]["ports"]} == set(egress_ports.DNS_PORTS)
    controller = deployment.one("hpc-network-controller", "NetworkPolicy").inputs["spec"]["ingress"][0]["from"]
    assert "health-checks" in [peer_of(item) for item in controller]


def test_the_user_of_the_jobs_is_known_only_with_long_checks(deployment: Deployment) -> None:
    def passwd(of: Deployment) -> str:
        return str(of.one("hpc-users", "ConfigFiles").inputs["files"]["passwd"])

    assert "soperator-health:x:64034:64034::/home/soperator-health:/usr/sbin/nologin\n" in passwd(deployment)
    assert "soperator-health" not in passwd(a_deployment())


def test_with_accounting_the_user_has_an_association() -> None:
    deployment = a_deployment(accounting={}, health={"long_checks": {"ring_bandwidth": {}}})
    users = deployment.one("hpc-accounting-associations", "Associations").inputs["users"]
    assert users["soperator-health"] == users["alice"]
