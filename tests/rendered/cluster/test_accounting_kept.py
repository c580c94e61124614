"""Passwords and dumps of the accounting database, as objects and in their order."""

from typing import Any

import pytest

from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment

ACCOUNTING = {"dump": {"schedule": "@daily", "keep": 3, "storage": {"size_gib": 7}}}


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return a_deployment(accounting=ACCOUNTING)


def pod(deployment: Deployment) -> dict[str, Any]:
    job = deployment.one("hpc-accounting-dump", "CronJob").inputs["spec"]["jobTemplate"]["spec"]
    found: dict[str, Any] = job["template"]["spec"]
    return found


def names_before(deployment: Deployment, name: str, kind: str) -> set[str]:
    return {awaited.name for awaited in deployment.waits_for(deployment.one(name, kind))}


def test_slurmdbd_changes_between_the_two_changes_of_its_account(deployment: Deployment) -> None:
    files = names_before(deployment, "hpc-accounting-slurmdbd-config", "SecretFiles")
    assert {"hpc-accounting-password-accepted", "hpc-accounting-database-ready"} <= files
    alone = names_before(deployment, "hpc-accounting-password-alone", "DatabaseAccount")
    assert {"hpc-accounting-slurmdbd-config", "hpc-accounting-ready"} <= alone


def test_what_has_a_password_in_it_is_encrypted_in_the_state(deployment: Deployment) -> None:
    files = deployment.one("hpc-accounting-slurmdbd-config", "SecretFiles")
    assert {"files", "known_good"} <= {*files.request.additionalSecretOutputs}
    for when in ("accepted", "alone"):
        account = deployment.one(f"hpc-accounting-password-{when}", "DatabaseAccount")
        assert "password_hash" in account.request.additionalSecretOutputs


def test_slurmdbd_tracks_wckeys_that_slurmctld_enforces() -> None:
    files = a_deployment(accounting={"enforce": ["wckeys"]}).one("hpc-accounting-slurmdbd-config", "SecretFiles")
    assert "TrackWCKey=yes" in files.inputs["files"].value["slurmdbd.conf"].splitlines()


def test_one_dump_runs_at_a_time(deployment: Deployment) -> None:
    spec = deployment.one("hpc-accounting-dump", "CronJob").inputs["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("@daily", "Etc/UTC", "Forbid")


def test_a_dump_gets_its_password_as_a_file(deployment: Deployment) -> None:
    (container,) = pod(deployment)["containers"]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert variables.keys() == {"CLUSTER", "DATABASE_HOST", "DATABASE_NAME", "DATABASE_USER", "KEEP"}
    assert variables["KEEP"] == "3"
    (mount,) = [
        volume_mount for volume_mount in container["volumeMounts"] if volume_mount["name"] == "database-password"
    ]
    assert mount == {"name": "database-password", "mountPath": "/etc/database-password", "readOnly": True}


def test_a_dump_runs_without_rights(deployment: Deployment) -> None:
    (container,) = pod(deployment)["containers"]
    context = container["securityContext"]
    assert context["runAsNonRoot"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod(deployment)["automountServiceAccountToken"] is False


def test_the_claim_of_dumps_is_kept_as_that_of_the_database_is(deployment: Deployment) -> None:
    for name in ("hpc-accounting-dump-claim", "hpc-accounting-database-claim"):
        claim = deployment.one(name, "PersistentVolumeClaim")
        assert claim.request.protect
        assert claim.request.retainOnDelete
    assert claim.inputs["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_claims_that_are_given_free_leave_the_stack_and_stay_in_kubernetes() -> None:
    free = {"storage": {"protect": False}}
    deployment = a_deployment(accounting={"dump": free, "database": {"own": free}})
    for name in ("hpc-accounting-dump-claim", "hpc-accounting-database-claim"):
        claim = deployment.one(name, "PersistentVolumeClaim")
        assert not claim.request.protect
        assert claim.request.retainOnDelete
    assert deployment.one("hpc-jail", "PersistentVolumeClaim").request.protect


def test_no_object_of_a_database_by_the_operator_has_a_name_of_the_clusters_own() -> None:
    own, by_operator = (
        {resource.inputs["metadata"]["name"] for resource in deployment.recorded if "apiVersion" in resource.inputs}
        for deployment in (a_deployment(), a_deployment(accounting={"database": {"mariadb_operator": {}}}))
    )
    gone, made = own - by_operator, by_operator - own
    assert "accounting-database" in made
    # The operator adds a suffix to the name: -internal, -primary, -root.
    assert not [name for name in gone if name.startswith("accounting-database")]


def test_dumps_reach_the_database_and_nothing_reaches_them(deployment: Deployment) -> None:
    labels = {"app.kubernetes.io/component": "accounting-dump"}
    ingress = deployment.one("hpc-network-database", "NetworkPolicy").inputs["spec"]["ingress"]
    sources = [peer["podSelector"]["matchLabels"] for rule in ingress for peer in rule["from"]]
    assert any(labels.items() <= source.items() for source in sources)
    spec = deployment.one("hpc-network-accounting-dump", "NetworkPolicy").inputs["spec"]
    assert labels.items() <= spec["podSelector"]["matchLabels"].items()
    (database, _names) = spec["egress"]
    assert [port["port"] for port in database["ports"]] == [3306]


def test_a_cluster_without_dumps_has_no_job_of_them() -> None:
    assert a_deployment(accounting={}).resources("CronJob") == ()
