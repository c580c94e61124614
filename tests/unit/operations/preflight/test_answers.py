"""Judgement of answers: of probes in pods, of Leases, of the API server's release, and of admitted pods."""

from datetime import UTC, datetime
from typing import Any

import pytest

from soperator_pulumi.errors import Problem
from soperator_pulumi.operations.preflight.admission import changed
from soperator_pulumi.operations.preflight.api_server import release_findings
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity, of_problem
from soperator_pulumi.operations.preflight.image_pulls import pull_findings
from soperator_pulumi.operations.preflight.machine_clocks import clock_findings
from soperator_pulumi.operations.preflight.machine_probe import answer_findings, parsed
from soperator_pulumi.operations.preflight.named_objects import Reference
from soperator_pulumi.operations.preflight.network_probe import network_findings
from soperator_pulumi.operations.preflight.provided_parts import load_balancer_findings
from soperator_pulumi.operations.preflight.shared_claim import shared_finding
from tests.fakes.small_world import SmallWorld

ANSWER = """\
kernel=6.18.44
effective=00000000010400eb
seccomp=2
no_new_privileges=1
app_armor=unconfined
users= 0 0 4294967295
masks=11
mount_namespace=ok
bind=ok
close=ok
read_only=ok
tmpfs=ok
move_root=ok
new_proc=ok
new_queues=ok
cgroup_version=2
controllers=cpuset cpu io memory pids
cgroup_of_its_own=ok
oom_group=0
ended=ok
"""
"""Answer of a machine on which all works, in the form of machine_probe.sh."""

CONTEXT = {"capabilities": {"add": ["SETUID", "SETGID", "CHOWN", "FOWNER", "KILL", "SYS_CHROOT"]}}


def machine(**changes: str) -> list[Diagnosis]:
    return [*answer_findings("node_sets[0] on machine n1", {**parsed(ANSWER), **changes}, CONTEXT)]


def refusals(found: list[Diagnosis]) -> list[str]:
    return [diagnosis.found for diagnosis in found if diagnosis.severity is Severity.REFUSED]


# The machine


def test_a_machine_on_which_all_works_passes() -> None:
    (found,) = machine()
    assert found.severity is Severity.PASSED


@pytest.mark.parametrize(
    ("changes", "words", "cure"),
    [
        ({"effective": "00000000000000eb"}, "the container has no SYS_CHROOT", "Have the container runtime"),
        ({"users": "0 100000 65536"}, "root of the container is user 100000 of the machine", "hostUsers"),
        ({"bind": "no permission denied."}, "to mount a directory", "SYS_ADMIN to mount"),
        ({"mount_namespace": "no Operation not permitted"}, "a mount namespace of its own", "seccomp profile"),
        ({"new_proc": "no mount: permission denied"}, "to mount a new /proc", "user namespaces"),
        ({"new_queues": "no mount: no such device"}, "message queues", "CONFIG_POSIX_MQUEUE"),
        ({"kernel": "5.10.0-28-amd64"}, "its kernel is 5.10.0-28-amd64", "Choose a newer system image"),
        ({"controllers": "cpu io pids"}, "its cgroups (v2) have no cpuset, memory", "slurm.constrain: none"),
        ({"cgroup_of_its_own": "no Read-only file system"}, "own control group", "slurm.constrain: none"),
        ({"lock_memory": "no Operation not permitted"}, "to raise the limit of locked memory", "lock_memory: false"),
    ],
)
def test_a_fault_of_a_machine_is_named_with_its_cure(changes: dict[str, str], words: str, cure: str) -> None:
    (found,) = machine(**changes)
    assert found.severity is Severity.REFUSED
    assert words in found.found
    assert cure in found.cure


@pytest.mark.parametrize("step", ["bind", "close", "read_only", "tmpfs", "move_root", "new_proc", "new_queues"])
def test_what_the_profile_of_the_runtime_forbids_has_the_profile_as_its_cure(step: str) -> None:
    (found,) = machine(**{step: "no permission denied.", "app_armor": "cri-containerd.apparmor.d (enforce)"})
    assert found.cure.startswith("Set jail.app_armor: unconfined")
    assert "AppArmor: cri-containerd.apparmor.d (enforce)" in found.found


def test_a_label_of_selinux_is_no_profile_of_app_armor() -> None:
    """The probe reads it where AppArmor is off."""
    label = "system_u:system_r:container_t:s0:c12,c34"
    (found,) = machine(bind="no permission denied.", app_armor=label)
    assert "AppArmor" not in found.found
    assert "security module" in found.cure
    (found,) = machine(app_armor=label)
    assert "AppArmor: none" in found.found


def test_a_kubelet_that_groups_kills_is_warned_of_where_a_worker_cannot_take_it_back() -> None:
    (found,) = machine(oom_group="1")
    assert found.severity is Severity.WARNED
    assert "singleProcessOOMKill: true" in found.cure


def test_an_answer_that_breaks_off_is_no_pass() -> None:
    answer = parsed(ANSWER)
    del answer["ended"]
    (found,) = answer_findings("n1", answer, CONTEXT)
    assert found.severity is Severity.WARNED


def test_cgroups_are_not_judged_where_slurm_constrains_nothing() -> None:
    answer = {**parsed(ANSWER), "controllers": "", "cgroup_of_its_own": "no Read-only file system"}
    (found,) = answer_findings("n1", answer, CONTEXT, constrains=False)
    assert found.severity is Severity.PASSED


# The network

FREE: dict[str, Any] = {
    "names": {"full": "10.0.0.1", "short": "10.0.0.1"},
    "open": {"first": True, "second": True, "third": False},
}
LIMITED: dict[str, Any] = {"names": FREE["names"], "open": {"first": True, "second": False, "link_local": False}}


def network(free: dict[str, bool] | None = None, limited: dict[str, bool] | None = None, **names: str) -> list[str]:
    first = {"names": {**FREE["names"], **names}, "open": {**FREE["open"], **(free or {})}}
    second = {**LIMITED, "open": {**LIMITED["open"], **(limited or {})}}
    return refusals([*network_findings(first, second, across=True)])


def test_a_network_that_enforces_policies_passes() -> None:
    assert network() == []


@pytest.mark.parametrize(
    ("free", "limited", "words"),
    [
        ({"first": False, "second": False}, {"first": False}, "a pod does not reach another one"),
        ({"third": True}, {}, "closes for ingress is open"),
        ({"second": False}, {}, "of a range of ports (endPort)"),
        ({}, {"first": False}, "does not reach what the policy opens"),
        ({}, {"second": True}, "closes for egress is open"),
        ({}, {"link_local": True}, "the metadata service (169.254.169.254) is open"),
    ],
)
def test_a_fault_of_the_network_is_named_alone(free: dict[str, bool], limited: dict[str, bool], words: str) -> None:
    (found,) = network(free, limited)
    assert words in found


def test_names_that_are_not_resolved_are_refused() -> None:
    assert len(network(full="", short="")) == 2
    (found,) = network(short="")
    assert found.startswith("search domains of dnsConfig")


def test_a_silent_probe_is_no_pass() -> None:
    (found,) = network_findings(None, LIMITED, across=True)
    assert found.severity is Severity.WARNED


# Images


def pod(**state: Any) -> dict[str, Any]:
    return {
        "spec": {"containers": [{"name": "image-0", "image": "registry.example.com/worker:1"}]},
        "status": {"containerStatuses": [{"name": "image-0", "imageID": "", "state": state}]},
    }


def test_an_image_that_ran_or_has_another_program_was_pulled() -> None:
    for ended in ({"exitCode": 0}, {"exitCode": 128, "reason": "StartError", "message": "no such file or directory"}):
        (found,) = pull_findings("machine n1", pod(terminated=ended))
        assert found.severity is Severity.PASSED


def test_an_image_that_is_not_pulled_is_named_with_the_registrys_words() -> None:
    waiting = {"reason": "ErrImagePull", "message": "pull access denied, repository does not exist."}
    (found,) = pull_findings("machine n1", pod(waiting=waiting))
    assert refusals([found]) == [
        "registry.example.com/worker:1 is not pulled: pull access denied, repository does not exist"
    ]


def test_an_image_of_another_architecture_is_named() -> None:
    ended = {"exitCode": 255, "message": "exec /usr/bin/tini: exec format error"}
    (found,) = pull_findings("machine n1", pod(terminated=ended))
    assert refusals([found]) == ["registry.example.com/worker:1 is of another architecture"]


def test_an_image_that_is_still_pulled_is_a_warning() -> None:
    (found,) = pull_findings("machine n1", pod(waiting={"reason": "ContainerCreating"}))
    assert found.severity is Severity.WARNED


# Storage

REFERENCE = Reference(path="jail.storage.storage_class", kind="StorageClass", name="rwo")
GOOD = {"read": True, "error": ""}


def test_a_volume_of_two_machines_passes_and_one_of_one_machine_is_a_warning() -> None:
    assert shared_finding(REFERENCE, [GOOD, GOOD], "", across=True).severity is Severity.PASSED
    assert shared_finding(REFERENCE, [GOOD, GOOD], "", across=False).severity is Severity.WARNED


@pytest.mark.parametrize(
    ("answers", "reason", "words"),
    [
        ([GOOD, None], "Multi-Attach error", "do not both run: Multi-Attach error"),
        ([GOOD, {"read": False, "error": ""}], "", "does not see what another one has written"),
        ([GOOD, {"read": False, "error": "[Errno 13] Permission denied"}], "", "root of a pod cannot write"),
    ],
)
def test_a_volume_that_pods_do_not_share_is_refused(answers: Any, reason: str, words: str) -> None:
    found = shared_finding(REFERENCE, answers, reason, across=True)
    assert found.severity is Severity.REFUSED
    assert words in found.found


# Clocks

NOW = datetime(2026, 11, 23, 2, 0, tzinfo=UTC)


def clocks(renewed: str) -> list[Diagnosis]:
    lease = {"metadata": {"name": "n1"}, "spec": {"renewTime": renewed}}
    gone = {"metadata": {"name": "gone"}, "spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}
    return [*clock_findings([lease, gone], [{"metadata": {"name": "n1"}}], NOW)]


@pytest.mark.parametrize(
    ("renewed", "severity"),
    [
        ("2026-11-23T01:59:52.000000Z", Severity.PASSED),
        ("2026-11-23T01:58:00.000000Z", Severity.WARNED),
        ("2026-11-23T02:02:00.000000Z", Severity.WARNED),
        ("2026-11-23T02:06:00.000000Z", Severity.REFUSED),
        ("2026-11-23T01:54:00.000000Z", Severity.REFUSED),
    ],
)
def test_a_clock_that_munge_would_not_take_is_refused(renewed: str, severity: Severity) -> None:
    (found,) = clocks(renewed)
    assert found.severity is severity


def test_a_clock_is_named_with_its_difference() -> None:
    (found,) = clocks("2026-11-23T02:06:00.000000Z")
    assert (found.path, found.found) == ("machine n1", "its clock is 360 s ahead of the API server's")


# The release


def release(minor: str, *objects: dict[str, Any]) -> Diagnosis:
    api = SmallWorld()
    api.objects["/version"] = {"metadata": {}, "gitVersion": f"v1.{minor}.1", "minor": minor}
    (found,) = release_findings(api, objects)
    return found


SIDECAR = {"kind": "StatefulSet", "spec": {"initContainers": [{"name": "munged", "restartPolicy": "Always"}]}}
APP_ARMOR = {"kind": "StatefulSet", "spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}}


def test_a_release_without_native_sidecars_is_refused() -> None:
    found = release("28", SIDECAR)
    assert (found.severity, found.needed) == (Severity.REFUSED, "Kubernetes 1.29 or newer")
    assert found.found == "the API server is v1.28.1, without native sidecars"


def test_a_feature_is_needed_only_where_it_is_used() -> None:
    assert release("29+", SIDECAR).severity is Severity.PASSED
    assert release("29", SIDECAR, APP_ARMOR).needed == "Kubernetes 1.30 or newer"


# Load balancers


@pytest.mark.parametrize(("ingress", "severity"), [([], Severity.WARNED), ([{"ip": "192.0.2.1"}], Severity.PASSED)])
def test_a_load_balancer_that_no_one_serves_is_a_warning(ingress: list[dict[str, str]], severity: Severity) -> None:
    api, wanted = SmallWorld(), {"metadata": {"name": "login"}, "spec": {"type": "LoadBalancer"}}
    other = {
        "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": ingress}},
    }
    api.objects["/api/v1/services/web"] = other
    (found,) = load_balancer_findings(api, [wanted])
    assert found.severity is severity
    assert [*load_balancer_findings(api, [{**wanted, "spec": {"type": "NodePort"}}])] == []


# Admitted pods


def test_defaults_quantities_and_additions_of_the_server_are_no_change() -> None:
    wanted = {
        "containers": [{"name": "a", "resources": {"limits": {"memory": "1024Mi", "cpu": "0.5"}}, "args": ["x"]}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    got = {
        "containers": [
            {"name": "a", "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}, "args": ["x"], "tty": False}
        ],
        "tolerations": [{"key": "not-ready", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}],
        "schedulerName": "default-scheduler",
    }
    assert [*changed(wanted, got)] == []


def test_two_mounts_of_one_volume_are_no_change() -> None:
    mounts = [{"name": "jail", "mountPath": "/jail"}, {"name": "jail", "mountPath": "/home", "subPath": "home"}]
    assert [*changed({"volumeMounts": mounts}, {"volumeMounts": [*mounts, {"name": "ca", "mountPath": "/ca"}]})] == []
    assert [*changed({"volumeMounts": mounts}, {"volumeMounts": mounts[:1]})] == ["volumeMounts"]


def test_an_injected_container_and_a_dropped_right_are_changes() -> None:
    wanted = {"containers": [{"name": "slurmd", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}
    got = {"containers": [{"name": "slurmd", "securityContext": {"capabilities": {}}}, {"name": "istio-proxy"}]}
    assert [*changed(wanted, got)] == [
        "containers[slurmd].securityContext.capabilities.add",
        "containers[istio-proxy] (added)",
    ]


@pytest.mark.parametrize(
    ("text", "found", "cure"),
    [
        ("The claim is missing. Create it. Or name another.", "The claim is missing", "Create it. Or name another."),
        ('got "v1. final", needs a number. Remove it.', 'got "v1. final", needs a number', "Remove it."),
        ('got "v1. final".', 'got "v1. final"', ""),
    ],
)
def test_a_problem_s_first_sentence_is_the_fact_and_a_quoted_value_stays_whole(
    text: str, found: str, cure: str
) -> None:
    diagnosis = of_problem("prerequisites", Problem("jail", text))
    assert (diagnosis.found, diagnosis.cure) == (found, cure)
