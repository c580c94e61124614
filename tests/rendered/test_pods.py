"""What each role's pods may do, hold and ask for."""

from typing import Any

import pytest

from tests.rendered.clusters import PODS, a_deployment, containers_of, pod_of


def capabilities(container: dict[str, Any]) -> set[str]:
    return set(container["securityContext"]["capabilities"].get("add", []))


@pytest.mark.parametrize(
    ("name", "daemon", "expected"),
    [
        ("hpc-controller", "slurmctld", set()),
        ("hpc-login", "sshd", {"SYS_CHROOT", "SETUID", "SETGID", "CHOWN", "AUDIT_WRITE"}),
        ("hpc-cpu", "slurmd", {"SETUID", "SETGID", "CHOWN", "FOWNER", "KILL"}),
    ],
)
def test_a_daemon_has_the_capabilities_that_were_measured_and_no_others(
    name: str, daemon: str, expected: set[str]
) -> None:
    containers = containers_of(pod_of(a_deployment(slurm={"constrain": "none"}), name))
    assert capabilities(containers.pop(daemon)) == expected
    assert all(not capabilities(container) for container in containers.values())


def test_slurmd_gets_the_machines_cgroups_only_when_jobs_are_constrained() -> None:
    constrained = pod_of(a_deployment(slurm={"constrain": "cgroup"}), "hpc-cpu")
    free = pod_of(a_deployment(slurm={"constrain": "none"}), "hpc-cpu")
    paths = [volume["hostPath"]["path"] for volume in constrained["volumes"] if "hostPath" in volume]
    assert paths == ["/sys/fs/cgroup"]
    added = capabilities(containers_of(constrained)["slurmd"]) - capabilities(containers_of(free)["slurmd"])
    assert added == {"DAC_OVERRIDE", "SYS_NICE"}
    assert not any("hostPath" in volume for volume in free["volumes"])


@pytest.mark.parametrize(("constrain", "level"), [("cgroup", "privileged"), ("none", "baseline")])
def test_the_namespace_enforces_the_tightest_pod_security_level_that_fits(constrain: str, level: str) -> None:
    namespace = a_deployment(slurm={"constrain": constrain}).one("hpc-namespace")
    assert namespace.inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == level


def test_slurmctld_and_munged_do_not_run_as_root() -> None:
    deployment = a_deployment()
    assert containers_of(pod_of(deployment, "hpc-controller"))["slurmctld"]["securityContext"]["runAsUser"] == 64030
    for name in PODS:
        context = containers_of(pod_of(deployment, name))["munged"]["securityContext"]
        assert (context["runAsUser"], context["runAsNonRoot"]) == (64031, True)


@pytest.mark.parametrize("name", PODS)
def test_every_container_begins_with_an_init_that_reaps(name: str) -> None:
    for container in containers_of(pod_of(a_deployment(), name)).values():
        assert container["command"][:3] == ["/usr/bin/tini", "-g", "--"], container["name"]


@pytest.mark.parametrize("name", PODS)
def test_only_munged_sees_the_munge_key(name: str) -> None:
    for container in containers_of(pod_of(a_deployment(), name)).values():
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert (mounted & {"munge-secret", "munge-key"} != set()) == (container["name"] == "munged")


def test_only_sshd_sees_the_host_key() -> None:
    deployment = a_deployment()
    for name in PODS:
        for container in containers_of(pod_of(deployment, name)).values():
            sees = "ssh-host-key" in {mount["name"] for mount in container["volumeMounts"]}
            assert sees == (container["name"] == "sshd")


def test_munged_runs_before_and_after_the_daemon_it_serves() -> None:
    for name in PODS:
        munged = pod_of(a_deployment(), name)["initContainers"][-1]
        assert (munged["name"], munged["restartPolicy"]) == ("munged", "Always")
        assert munged["startupProbe"]["exec"]


def quality_of_service(pod: dict[str, Any]) -> str:
    """The class as Kubernetes computes it."""
    resources = [container["resources"] for container in containers_of(pod).values()]
    equal = all(
        each.get("limits", {}).keys() == {"cpu", "memory"} and each["requests"] == each["limits"] for each in resources
    )
    return "Guaranteed" if equal else "Burstable"


def test_a_worker_asks_for_what_slurm_schedules_and_is_guaranteed() -> None:
    pod = pod_of(a_deployment(), "hpc-cpu")
    assert containers_of(pod)["slurmd"]["resources"]["requests"] == {"cpu": "4", "memory": "8192Mi"}
    assert quality_of_service(pod) == "Guaranteed"


def test_pod_resources_of_the_spec_replace_what_a_worker_asks_for() -> None:
    small = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
    node_set = {"name": "cpu", "cpus": 4, "memory_gib": 8, "pod_resources": small}
    pod = pod_of(a_deployment(node_sets=[node_set]), "hpc-cpu")
    assert containers_of(pod)["slurmd"]["resources"] == small
    assert quality_of_service(pod) == "Burstable"


def test_scheduling_fields_reach_the_pods_of_their_role() -> None:
    scheduling = {
        "node_selector": {"disk": "fast"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priority_class": "high",
    }
    deployment = a_deployment(
        controller=scheduling,
        login=scheduling,
        node_sets=[{"name": "cpu", "cpus": 4, "memory_gib": 8, **scheduling}],
    )
    for name in PODS:
        pod = pod_of(deployment, name)
        assert pod["nodeSelector"] == scheduling["node_selector"]
        assert pod["tolerations"] == scheduling["tolerations"]
        assert pod["affinity"] == scheduling["affinity"]
        assert pod["priorityClassName"] == "high"


def test_login_pods_prefer_machines_of_their_own() -> None:
    affinity = pod_of(a_deployment(), "hpc-login")["affinity"]
    assert affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]


def test_images_and_their_pull_settings_reach_every_container() -> None:
    images = {
        **{role: f"mirror.example/{role}:2" for role in ("controller", "worker", "login", "munge")},
        "pull_policy": "Always",
        "pull_secrets": ["registry"],
    }
    deployment = a_deployment(images=images)
    for name, role in zip(PODS, ("controller", "login", "worker"), strict=True):
        pod = pod_of(deployment, name)
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        for container in containers_of(pod).values():
            expected = "munge" if container["name"] == "munged" else role
            assert container["image"] == f"mirror.example/{expected}:2"
            assert container["imagePullPolicy"] == "Always"


def test_workers_start_together_and_are_not_restarted_by_a_changed_template() -> None:
    spec = a_deployment().one("hpc-cpu", "StatefulSet").inputs["spec"]
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "OnDelete"}


@pytest.mark.parametrize("name", PODS)
def test_pulumi_waits_for_no_pods_and_can_deploy_right_after_a_destroy(name: str) -> None:
    annotations = a_deployment().one(name, "StatefulSet").inputs["metadata"]["annotations"]
    assert annotations["pulumi.com/skipAwait"] == "true"
    assert annotations["pulumi.com/deletionPropagationPolicy"] == "background"


def test_probes_of_slurm_ask_the_daemon_by_its_own_command() -> None:
    deployment = a_deployment()
    for name, daemon, command in (
        ("hpc-controller", "slurmctld", ["scontrol", "ping"]),
        ("hpc-cpu", "slurmd", ["scontrol", "show", "slurmd"]),
    ):
        container = containers_of(pod_of(deployment, name))[daemon]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["exec"]["command"] == command


def test_a_workers_container_is_restarted_only_long_after_slurm_gave_the_node_up() -> None:
    probe = containers_of(pod_of(a_deployment(), "hpc-cpu"))["slurmd"]["livenessProbe"]
    files = a_deployment().one("hpc-slurm-config").inputs["files"]["slurm.conf"]
    slurmd_timeout = next(int(line.split("=")[1]) for line in files.splitlines() if line.startswith("SlurmdTimeout="))
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 5 * slurmd_timeout


def test_homes_are_a_directory_of_the_shared_claim_on_login_and_worker_nodes() -> None:
    deployment = a_deployment()
    for name, daemon in (("hpc-login", "sshd"), ("hpc-cpu", "slurmd")):
        pod = pod_of(deployment, name)
        mounts = {mount["mountPath"]: mount for mount in containers_of(pod)[daemon]["volumeMounts"]}
        assert mounts["/home"]["subPath"] == "home"
        assert "/shared" not in mounts, "only the preparing container sees the whole claim"
        volume = next(volume for volume in pod["volumes"] if volume["name"] == mounts["/home"]["name"])
        assert volume["persistentVolumeClaim"] == {"claimName": "shared"}
        assert "install -d -m 0755 -o root -g root /shared/home" in containers_of(pod)["prepare"]["command"][-1]


def test_directories_that_jobs_share_are_given_the_mode_of_tmp_and_slurmds_own_are_closed() -> None:
    script = containers_of(pod_of(a_deployment(), "hpc-cpu"))["prepare"]["command"][-1]
    assert "chmod 1777 /tmp" in script
    assert "chmod 0755 /run/slurm /var/spool/slurmd /var/log/slurm" in script


def test_no_pod_with_the_shared_claim_has_a_group_that_the_kubelet_would_give_its_files() -> None:
    deployment = a_deployment()
    assert pod_of(deployment, "hpc-controller")["securityContext"]["fsGroup"] == 64030
    for name in ("hpc-login", "hpc-cpu"):
        assert "fsGroup" not in pod_of(deployment, name)["securityContext"]
