"""The Job that fills the jail, what waits for it, what switches trees, and who merges users."""

import hashlib
from typing import Any

import pulumi
import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import (
    a_deployment,
    a_spec,
    all_pods,
    containers_of,
    mounts_of,
    pod_of,
    populate_pod,
    provided,
    switch_pod,
    volume_of,
)

TARBALL = {"url": "https://example.org/root.tar.zst", "sha256": "ab" * 32}
TOOLS = ["/.jail-tools/bin/python3", "-I", "-m", "jail_tools"]


def tree_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def arguments_of(container: dict[str, Any]) -> list[str]:
    assert container["command"][:4] == TOOLS
    arguments: list[str] = container["command"][4:]
    return arguments


def dependencies_of(deployment: Deployment, name: str, type_: str = "") -> set[str]:
    return {waited.name for waited in deployment.waits_for(deployment.one(name, type_))}


@pytest.mark.parametrize(
    ("jail", "image"),
    [({}, "registry.example/jail:1"), ({"source": {"image": "docker.io/library/fedora:44"}}, None)],
)
def test_an_image_is_copied_out_of_the_jobs_own_container_by_tools_that_are_brought_there(
    jail: dict[str, Any], image: str | None
) -> None:
    image = image or jail["source"]["image"]
    pod = populate_pod(a_deployment(jail=jail))
    containers = containers_of(pod)
    populate, install = containers["populate"], containers["install"]
    assert populate["image"] == image
    assert install["image"] == "registry.example/jail_tools:1"
    assert arguments_of(install) == ["install", "/target"]
    assert mounts_of(install)["/target"]["name"] == mounts_of(populate)["/.jail-tools"]["name"]
    assert mounts_of(populate)["/.jail-tools"]["readOnly"]
    assert volume_of(pod, mounts_of(populate)["/.jail"]) == {"persistentVolumeClaim": {"claimName": "jail"}}
    source = f"image:{image}"
    assert arguments_of(populate) == [
        *("populate", "--jail", "/.jail", "--tree", tree_of(source), "--source", source, "--root", "/"),
    ]


def test_a_tarball_is_streamed_by_a_container_that_has_nothing_else() -> None:
    containers = containers_of(populate_pod(a_deployment(jail={"source": {"tarball": TARBALL}})))
    assert containers.keys() == {"populate"}
    assert containers["populate"]["image"] == "registry.example/jail_tools:1"
    assert mounts_of(containers["populate"]).keys() == {"/.jail"}
    source = f"tarball:{TARBALL['sha256']}"
    assert arguments_of(containers["populate"]) == [
        *("populate", "--jail", "/.jail", "--tree", tree_of(source), "--source", source),
        *("--tarball", TARBALL["url"], "--sha256", TARBALL["sha256"]),
    ]


def test_the_jobs_pace_resources_and_place_are_those_of_the_spec() -> None:
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}
    populate = {
        "limit_mib_per_second": 200,
        "pod_resources": resources,
        "node_selector": {"disk": "fast"},
        "priority_class": "low",
    }
    pod = populate_pod(a_deployment(jail={"populate": populate}))
    container = containers_of(pod)["populate"]
    assert arguments_of(container)[-2:] == ["--limit-mib-per-second", "200"]
    assert container["resources"] == resources
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({"disk": "fast"}, "low")


def test_accepted_findings_of_the_storage_reach_the_job_with_their_reasons() -> None:
    accept = {"hard_links": "no package manager here", "execution": "no admin shell: images = all"}
    container = containers_of(populate_pod(a_deployment(jail={"storage": {"accept": accept}})))["populate"]
    assert arguments_of(container)[-4:] == [
        *("--accept", "execution=no admin shell: images = all"),
        *("--accept", "hard_links=no package manager here"),
    ]


def test_a_job_that_was_refused_is_not_tried_again_and_a_disrupted_one_is_not_counted() -> None:
    (job,) = (resource.inputs["spec"] for resource in a_deployment().resources(":Job"))
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["podFailurePolicy"]["rules"] == [
        {"action": "FailJob", "onExitCodes": {"containerName": "populate", "operator": "In", "values": [78]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    assert job["backoffLimit"] >= 3


def test_a_job_that_is_made_again_under_its_name_does_not_meet_the_old_one() -> None:
    (job,) = a_deployment().resources(":Job")
    annotations = job.inputs["metadata"]["annotations"]
    assert annotations["pulumi.com/skipAwait"] == "true"
    assert annotations["pulumi.com/deletionPropagationPolicy"] == "background"


def test_the_last_words_of_a_job_tell_why_it_failed() -> None:
    for pod in (populate_pod(a_deployment()), switch_pod(a_deployment())):
        for container in containers_of(pod).values():
            assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_every_source_has_a_job_of_its_own() -> None:
    for name in ("a", "b"):
        tree = tree_of(f"image:example/{name}:1")
        (job,) = a_deployment(jail={"source": {"image": f"example/{name}:1"}}).resources(":Job")
        assert job.name == f"hpc-jail-populate-{tree}"
        assert job.inputs["metadata"]["name"] == f"jail-populate-{tree}"


def test_workers_and_logins_come_after_the_tree_and_slurmctld_at_once() -> None:
    deployment = a_deployment()
    (job,) = deployment.resources(":Job")
    assert job.name in dependencies_of(deployment, "hpc-jail-populated")
    for name in ("hpc-cpu", "hpc-login"):
        assert "hpc-jail-populated" in dependencies_of(deployment, name, "StatefulSet")
    assert not {job.name, "hpc-jail-populated"} & dependencies_of(deployment, "hpc-controller", "StatefulSet")


def test_trees_are_switched_when_slurmctld_and_logins_can_be_asked_and_before_there_is_an_admin_shell() -> None:
    deployment = a_deployment()
    before = dependencies_of(deployment, "hpc-active-tree")
    assert {"hpc-jail-populated", "hpc-controller-ready", "hpc-login-ready"} <= before
    assert "hpc-active-tree" in dependencies_of(deployment, "hpc-admin", "StatefulSet")


def test_what_switches_trees_knows_the_wanted_tree_and_what_becomes_of_the_others() -> None:
    older = "0123456789ab"
    jail = {"active": older, "keep_trees": 5, "changes": "carry_over"}
    active = a_deployment(jail=jail).one("hpc-active-tree").inputs
    assert (active["tree"], active["keep_trees"], active["changes"]) == (older, 5, "carry_over")
    assert active["populated"] == tree_of("image:registry.example/jail:1")
    assert a_deployment().one("hpc-active-tree").inputs["tree"] == tree_of("image:registry.example/jail:1")


def test_a_switch_works_on_the_whole_claim_in_one_container_to_which_its_arguments_are_added() -> None:
    pod = switch_pod(a_deployment())
    (container,) = pod["containers"]
    assert container["name"] == "jail"
    assert arguments_of(container) == []
    assert volume_of(pod, mounts_of(container)["/jail"]) == {"persistentVolumeClaim": {"claimName": "jail"}}
    assert pod["restartPolicy"] == "Never"


def test_users_of_the_spec_and_of_the_jail_are_merged_next_to_slurmctld_and_sshd() -> None:
    for name, daemon in (("hpc-controller", "slurmctld"), ("hpc-login", "sshd")):
        pod = pod_of(a_deployment(), name)
        containers = containers_of(pod)
        users, merged = containers["users"], mounts_of(containers[daemon])["/var/lib/extrausers"]
        assert users["restartPolicy"] == "Always"
        assert users["startupProbe"], "the daemon begins with users"
        paths = ["--jail", "/jail", "--declared", "/etc/users", "--out", "/var/lib/extrausers"]
        assert arguments_of(users)[:7] == ["users", *paths]
        assert volume_of(pod, mounts_of(users)["/etc/users"]) == {"configMap": {"name": "users"}}
        assert merged["readOnly"]
        assert merged["name"] == mounts_of(users)["/var/lib/extrausers"]["name"]


def test_one_pod_alone_writes_users_into_the_tree() -> None:
    writing = {
        name: mounts_of(containers["users"])["/jail"].get("readOnly", False)
        for name, pod in all_pods(a_deployment()).items()
        if "users" in (containers := containers_of(pod))
    }
    assert writing == {"controller": False, "login": True}
    assert "--write-tree" in containers_of(pod_of(a_deployment(), "hpc-controller"))["users"]["command"]
    assert "--write-tree" not in containers_of(pod_of(a_deployment(), "hpc-login"))["users"]["command"]


def test_a_changed_user_is_waited_for_where_the_files_are_merged() -> None:
    readers = a_deployment().one("hpc-users").inputs["readers"]
    sums = {reader["component"]: reader.get("sums") for reader in readers}
    assert sums == {
        "controller": "/var/lib/extrausers/declared.sha256",
        "login": "/var/lib/extrausers/declared.sha256",
        "worker": None,
    }


def test_sshd_is_started_by_what_makes_the_view_of_the_jail() -> None:
    jail = {"submounts": [{"path": "/data", "existing_claim": "data", "read_only": True}]}
    command = containers_of(pod_of(a_deployment(jail=jail), "hpc-login"))["sshd"]["command"]
    assert command[3:] == [
        *("/usr/bin/prlimit", "--nproc=2048", "--"),
        *("/opt/slurm/sbin/jail-login", "jail=/jail"),
        *("bind=/data:ro", "bind=/dev/shm", "bind=/home", "bind=/tmp", "bind=/etc/profile.d/soperator.sh:ro"),
        *("--", "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh-config/sshd_config"),
    ]


def test_the_active_tree_is_an_output_of_the_cluster() -> None:
    def program() -> None:
        pulumi.export("jail_tree", SlurmCluster("hpc", a_spec()).jail_tree)

    assert deploy(program, outputs=provided).exports["jail_tree"] == tree_of("image:registry.example/jail:1")


@pytest.mark.parametrize("source", [{"image": "debian:13"}, {"tarball": TARBALL}], ids=["image", "tarball"])
def test_a_filling_knows_of_the_one_before_and_of_the_reason_to_begin_anew(source: dict[str, object]) -> None:
    jail = {"source": source, "storage": {"accept": {"emptied": "a trial"}}}
    populate = containers_of(populate_pod(a_deployment(jail=jail)))["populate"]
    key = {"name": "jail-filled", "key": "jail-filled", "optional": True}
    assert populate["env"] == [{"name": "JAIL_FILLED_BEFORE", "valueFrom": {"configMapKeyRef": key}}]
    assert arguments_of(populate)[-2:] == ["--accept", "emptied=a trial"]


@pytest.mark.parametrize(
    ("storage", "jail", "keep"),
    [({}, {}, True), ({"keep": False}, {}, False), ({"keep": False}, {"storage": {"existing_claim": "shared"}}, True)],
    ids=str,
)
def test_a_filling_is_remembered_for_as_long_as_its_claim_stays(
    storage: dict[str, object], jail: dict[str, object], keep: bool
) -> None:
    assert a_deployment(storage=storage, jail=jail).one("hpc-jail-populated").inputs["keep"] is keep
