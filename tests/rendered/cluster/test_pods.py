"""Rights, volumes and resources of each role's pods."""

from typing import Any

import pytest

from soperator_pulumi.render import layout
from tests.rendered.cluster.clusters import (
    IMAGES,
    PODS,
    a_deployment,
    a_node_set,
    all_pods,
    capabilities_of,
    containers_of,
    mounts_of,
    pod_of,
    volume_of,
)

OF_JAIL_TOOLS = {"users", "admin", "install", "populate", "jail"}
"""Containers without Debian: a Python of our own is their first process."""


SSHD = {"SYS_CHROOT", "SETUID", "SETGID", "CHOWN", "AUDIT_WRITE"}
SLURMD = {"SETUID", "SETGID", "CHOWN", "FOWNER", "KILL", "DAC_OVERRIDE"}


def test_every_container_has_the_capabilities_that_were_measured_and_no_others() -> None:
    capabilities = {
        f"{pod}/{name}": capabilities_of(container)
        for pod, spec in all_pods(a_deployment(slurm={"constrain": "none"})).items()
        for name, container in containers_of(spec).items()
    }
    copying = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP"}
    assert {name: added for name, added in capabilities.items() if added} == {
        "controller/prepare": {"CHOWN"},
        "controller/users": {"CHOWN", "DAC_OVERRIDE"},
        "cpu/slurmd": SLURMD | {"SYS_ADMIN", "SYS_CHROOT", "SETPCAP", "SYS_NICE"},
        "login/users": {"DAC_READ_SEARCH"},
        "login/sshd": SSHD | {"SYS_ADMIN", "SETPCAP"},
        "admin/admin": copying | {"SETGID", "SETUID", "KILL"},
        "populate/populate": copying,
        "switch/jail": copying,
    }


def test_a_workers_pod_is_the_same_with_and_without_constrained_jobs_so_that_it_bears_a_change_of_the_setting() -> None:
    constrained, free = (pod_of(a_deployment(slurm={"constrain": text}), "hpc-cpu") for text in ("cgroup", "none"))
    assert constrained == free


def test_a_worker_sees_nothing_of_its_machines_files() -> None:
    assert not any("hostPath" in volume for volume in pod_of(a_deployment(), "hpc-cpu")["volumes"])


def test_ports_of_root_are_closed_to_users_on_every_pod_in_which_they_run_something() -> None:
    pods = all_pods(a_deployment())
    closed = {"name": "net.ipv4.ip_unprivileged_port_start", "value": "1024"}
    found = {name for name, pod in pods.items() if closed in pod["securityContext"].get("sysctls", [])}
    assert found == {"login", "cpu", "admin", "controller"}


def start_of(**node_set: object) -> list[str]:
    """Return the command by which slurmd is started."""
    slurmd = containers_of(pod_of(a_deployment(node_sets=[a_node_set(**node_set)]), "hpc-cpu"))["slurmd"]
    return list(slurmd["command"])


def test_a_user_has_a_number_of_processes_on_a_node_that_grows_with_its_processors() -> None:
    assert "processes=4096" in start_of(cpus=4)
    assert "processes=49152" in start_of(cpus=192)
    assert "processes=500" in start_of(max_processes=500)


def test_a_user_has_a_number_of_processes_on_a_login_node() -> None:
    login = {"max_processes": 300}
    for deployment, limit in ((a_deployment(), 2048), (a_deployment(login=login), 300)):
        command = containers_of(pod_of(deployment, "hpc-login"))["sshd"]["command"]
        assert command[3:6] == ["/usr/bin/prlimit", f"--nproc={limit}", "--"]


def test_the_right_to_raise_limits_is_given_up_before_slurmd_starts() -> None:
    locking = containers_of(pod_of(a_deployment(node_sets=[a_node_set(lock_memory=True)]), "hpc-cpu"))["slurmd"]
    plain = containers_of(pod_of(a_deployment(), "hpc-cpu"))["slurmd"]

    assert capabilities_of(locking) - capabilities_of(plain) == {"SYS_RESOURCE"}
    assert "lock_memory" in start_of(lock_memory=True), "start.sh gives it up"


@pytest.mark.parametrize("constrain", ["cgroup", "none"])
def test_the_namespace_lets_slurmd_mount_and_says_so(constrain: str) -> None:
    namespace = a_deployment(slurm={"constrain": constrain}).one("hpc-namespace")
    assert namespace.inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_slurmctld_and_munged_do_not_run_as_root() -> None:
    deployment = a_deployment()
    assert containers_of(pod_of(deployment, "hpc-controller"))["slurmctld"]["securityContext"]["runAsUser"] == 64030
    for name in PODS:
        context = containers_of(pod_of(deployment, name))["munged"]["securityContext"]
        assert (context["runAsUser"], context["runAsNonRoot"]) == (64031, True)


def test_every_container_of_slurm_begins_with_an_init_that_reaps() -> None:
    for pod in all_pods(a_deployment()).values():
        for name, container in containers_of(pod).items():
            init = ["/.jail-tools/bin/python3", "-I", "-m"] if name in OF_JAIL_TOOLS else ["/usr/bin/tini", "-g", "--"]
            assert container["command"][:3] == init, name


def test_only_munged_sees_the_munge_key() -> None:
    for pod in all_pods(a_deployment()).values():
        for container in containers_of(pod).values():
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert (mounted & {"munge-secret", "munge-key"} != set()) == (container["name"] == "munged")


def test_only_daemons_of_slurm_and_sshd_reach_munged() -> None:
    reaching = {
        name
        for pod in all_pods(a_deployment()).values()
        for name, container in containers_of(pod).items()
        if "/run/munge" in mounts_of(container)
    }
    assert reaching == {"munged", "slurmctld", "slurmd", "sshd"}


def test_only_sshd_sees_the_host_key() -> None:
    for pod in all_pods(a_deployment()).values():
        for container in containers_of(pod).values():
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
        resource.get("limits", {}).keys() == {"cpu", "memory"} and resource["requests"] == resource["limits"]
        for resource in resources
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
        **{role: f"mirror.example/{role}:2" for role in IMAGES},
        "pull_policy": "Always",
        "pull_secrets": ["registry"],
    }
    deployment = a_deployment(images=images)
    roles = {"cpu": "worker", "admin": "login"}
    others = {"munged": "munge", "populate": "jail", **dict.fromkeys(OF_JAIL_TOOLS - {"populate"}, "jail_tools")}
    for name, pod in all_pods(deployment).items():
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        for container in containers_of(pod).values():
            expected = others.get(container["name"], roles.get(name, name))
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


@pytest.mark.parametrize(
    ("pod", "daemon"),
    [("hpc-controller", "slurmctld"), ("hpc-accounting", "slurmdbd"), ("hpc-accounting-database", "mariadb")],
)
def test_probes_of_slurmctld_slurmdbd_and_mariadb_start_no_program_but_look_at_the_port_of_the_watch(
    pod: str, daemon: str
) -> None:
    container = containers_of(pod_of(a_deployment(accounting={}), pod))[daemon]
    for probe in ("readinessProbe", "startupProbe"):
        assert container[probe]["tcpSocket"] == {"port": layout.ANSWERS_PORT}
    assert {"name": "ANSWERS_PORT", "value": str(layout.ANSWERS_PORT)} in container["env"]
    assert "livenessProbe" not in container, "the watch ends it: users may reach the port, and keep probes out"


@pytest.mark.parametrize(
    "pod", ["hpc-controller", "hpc-accounting", "hpc-accounting-database", "hpc-rest", "hpc-login"]
)
def test_no_probe_of_the_control_plane_starts_a_program_once_its_containers_have_started(pod: str) -> None:
    containers = containers_of(pod_of(a_deployment(accounting={}, rest={}), pod)).values()
    probes = [container.get(probe) or {} for container in containers for probe in ("livenessProbe", "readinessProbe")]
    assert any(probes)
    assert not [probe for probe in probes if "exec" in probe]


def test_no_probe_starts_a_program_in_the_container_of_slurmd_once_it_has_started() -> None:
    """Its liveness is for the watch in the container, which tells who floods a port from a slurmd that hangs."""
    container = containers_of(pod_of(a_deployment(), "hpc-cpu"))["slurmd"]
    assert container["startupProbe"]["exec"]["command"][0] == "/usr/lib/soperator/started.sh"
    assert container["readinessProbe"]["tcpSocket"] == {"port": layout.ANSWERS_PORT}
    assert "livenessProbe" not in container


def test_no_probe_of_a_worker_starts_a_program_once_its_containers_have_started() -> None:
    """One costs four programs and a dozen threads, which jobs feel."""
    probes = {
        f"{name}/{probe}"
        for name, container in containers_of(pod_of(a_deployment(), "hpc-cpu")).items()
        for probe in ("livenessProbe", "readinessProbe")
        if "exec" in container.get(probe, {})
    }
    assert probes == set()


def test_the_jail_is_seen_as_a_whole_and_homes_at_home_on_login_and_worker_nodes() -> None:
    deployment = a_deployment()
    for name, daemon in (("hpc-login", "sshd"), ("hpc-cpu", "slurmd")):
        pod = pod_of(deployment, name)
        mounts = mounts_of(containers_of(pod)[daemon])
        assert mounts["/home"]["subPath"] == "home"
        assert "subPath" not in mounts["/jail"]
        for path in ("/home", "/jail"):
            assert volume_of(pod, mounts[path]) == {"persistentVolumeClaim": {"claimName": "jail"}}


def test_slurmctld_sees_nothing_of_the_jail() -> None:
    pod = pod_of(a_deployment(), "hpc-controller")
    assert "jail" not in {mount["name"] for mount in containers_of(pod)["slurmctld"]["volumeMounts"]}


def test_slurmds_own_directories_are_closed() -> None:
    script = containers_of(pod_of(a_deployment(), "hpc-cpu"))["prepare"]["command"][-1]
    assert "chmod 0755 /run/slurm /var/spool/slurmd /var/log/slurm" in script


def test_sshd_finds_the_views_of_trees_in_a_directory_that_only_root_can_change() -> None:
    prepare = containers_of(pod_of(a_deployment(), "hpc-login"))["prepare"]
    assert "chmod 0755 /run/jail" in prepare["command"][-1]
    assert "/run/jail" in mounts_of(prepare)


def test_no_pod_has_a_group_that_the_kubelet_would_give_the_jails_files() -> None:
    for pod in all_pods(a_deployment()).values():
        assert "fsGroup" not in pod["securityContext"]


def test_slurmctlds_state_is_a_directory_of_its_volume_that_is_given_to_slurm_alone() -> None:
    containers = containers_of(pod_of(a_deployment(), "hpc-controller"))
    for name in ("prepare", "slurmctld"):
        assert mounts_of(containers[name])["/var/spool/slurmctld"]["subPath"] == "slurmctld"
    script = containers["prepare"]["command"][-1]
    assert "chmod 0700 /var/spool/slurmctld" in script
    assert "chown 64030:64030 /var/spool/slurmctld" in script


def test_nothing_in_a_workers_volumes_can_be_executed_before_slurmd_starts() -> None:
    submounts = [
        {"path": "/data", "existing_claim": "data", "read_only": True},
        {"path": "/mnt/local", "host_path": "/mnt/disks", "roles": ["worker"]},
    ]
    slurmd = containers_of(pod_of(a_deployment(jail={"submounts": submounts}), "hpc-cpu"))["slurmd"]
    volumes = {word.removeprefix("volume=") for word in slurmd["command"] if word.startswith("volume=")}
    assert {volume.removesuffix(":ro") for volume in volumes} == mounts_of(slurmd).keys()
    for volume in volumes:
        read_only = mounts_of(slurmd)[volume.removesuffix(":ro")].get("readOnly", False)
        assert volume.endswith(":ro") == read_only, volume


def test_no_file_of_kubernetes_is_among_the_devices_that_jobs_and_sessions_see() -> None:
    for name, daemon in (("hpc-login", "sshd"), ("hpc-cpu", "slurmd")):
        container = containers_of(pod_of(a_deployment(), name))[daemon]
        assert container["terminationMessagePath"] == "/run/termination-log"


@pytest.mark.parametrize(
    ("jail", "profile"),
    [
        ({}, {"type": "Unconfined"}),
        ({"app_armor": "localhost/slurm"}, {"type": "Localhost", "localhostProfile": "slurm"}),
    ],
)
def test_containers_that_mount_have_an_app_armor_profile_that_lets_them_and_no_others(
    jail: dict[str, str], profile: dict[str, str]
) -> None:
    profiles = {
        name: container["securityContext"]["appArmorProfile"]
        for pod in all_pods(a_deployment(jail=jail)).values()
        for name, container in containers_of(pod).items()
        if "appArmorProfile" in container["securityContext"]
    }
    assert profiles == {"slurmd": profile, "sshd": profile}


def test_no_container_names_an_app_armor_profile_where_the_spec_leaves_it_to_the_runtime() -> None:
    daemon = containers_of(pod_of(a_deployment(jail={"app_armor": "runtime"}), "hpc-cpu"))["slurmd"]
    assert "appArmorProfile" not in daemon["securityContext"]
