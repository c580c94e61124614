"""Policies on pods: rights, paths of the machine, images."""

import pytest

from soperator_pulumi.policy import UNKNOWN, pods_of
from soperator_pulumi.policy.pinned_images import PINNED_IMAGES
from soperator_pulumi.policy.pod_rights import HOST_PATHS, PRIVILEGED_PODS, SERVICE_ACCOUNT_TOKENS
from soperator_pulumi.policy.protection import NETWORK_POLICIES
from tests.unit.policy.views import a_pod, a_resource_of_ours, an_object, paths

OURS = {"app.kubernetes.io/part-of": "soperator-pulumi"}
GOOD = {"name": "a", "image": "registry.example/a:1", "securityContext": {"privileged": False}}


def test_pods_are_found_wherever_a_resource_has_them() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [GOOD]}}
    cron = an_object("batch/v1:CronJob", {"spec": {"jobTemplate": {"spec": {"template": template}}}})
    switch = a_resource_of_ours("ActiveTree", template=template)
    custom = an_object("example.com/v1:Thing", {"spec": {"roles": [{"template": template}]}})

    for resource in (cron, switch, custom):
        (pod,) = pods_of(resource)
        assert pod.labels == {"app": "a"}
        assert [container["name"] for _, container in pod.containers()] == ["a"]


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"privileged": True}, "privileged"),
        ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
        ({"capabilities": {"add": ["NET_RAW", "ALL"]}}, "capabilities.add"),
        ({"capabilities": {"add": ["cap_all"]}}, "capabilities.add"),
        ({"capabilities": {"add": ["CAP_SYS_ADMIN"]}}, "capabilities.add[0]"),
        ({"procMount": "Unmasked"}, "procMount"),
        ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type"),
        ({"windowsOptions": {"hostProcess": True}}, "windowsOptions.hostProcess"),
    ],
)
def test_a_privileged_container_is_one_of_any_kind(context: dict[str, object], path: str) -> None:
    bad = {"name": "b", "image": "b:1", "securityContext": context}
    assert paths(PRIVILEGED_PODS, a_pod(GOOD, bad)) == [f"spec.containers[1].securityContext.{path}"]
    assert paths(PRIVILEGED_PODS, a_pod(GOOD, initContainers=[bad])) == [
        f"spec.initContainers[0].securityContext.{path}"
    ]


@pytest.mark.parametrize("namespace", ["hostNetwork", "hostPID", "hostIPC"])
def test_a_host_namespace_is_one_whatever_the_containers(namespace: str) -> None:
    assert paths(PRIVILEGED_PODS, a_pod(GOOD, **{namespace: True})) == [f"spec.{namespace}"]
    assert paths(PRIVILEGED_PODS, a_pod(GOOD, **{namespace: False})) == []


def test_a_powerful_capability_is_for_our_pods_and_where_a_setting_gives_the_reason() -> None:
    tracer = {**GOOD, "securityContext": {"capabilities": {"add": ["SYS_PTRACE", "CHOWN"]}}}
    assert paths(PRIVILEGED_PODS, a_pod(tracer, labels=OURS)) == []
    assert paths(PRIVILEGED_PODS, a_pod(tracer), capabilities={"SYS_PTRACE": "a profiler"}) == []
    unknown = {**GOOD, "securityContext": {"capabilities": {"add": [UNKNOWN]}}}
    assert paths(PRIVILEGED_PODS, a_pod(unknown), unknown=True) == [
        "spec.containers[0].securityContext.capabilities.add[0]"
    ]


def test_a_context_of_the_pod_is_judged_as_that_of_a_container() -> None:
    assert paths(PRIVILEGED_PODS, a_pod(GOOD, securityContext={"windowsOptions": {"hostProcess": True}})) == [
        "spec.securityContext.windowsOptions.hostProcess"
    ]


@pytest.mark.parametrize("containers", [UNKNOWN, [UNKNOWN]])
def test_containers_that_a_preview_does_not_know_hide_nothing(containers: object) -> None:
    pod = an_object("core/v1:Pod", {"spec": {"hostNetwork": True, "containers": containers}})
    assert paths(PRIVILEGED_PODS, pod) == ["spec.hostNetwork"]
    assert len(paths(PRIVILEGED_PODS, pod, unknown=True)) == 1


@pytest.mark.parametrize("spec", [UNKNOWN, {"template": UNKNOWN}])
def test_pods_that_a_preview_does_not_know_are_named(spec: object) -> None:
    workload = an_object("apps/v1:Deployment", {"spec": spec})
    assert len(paths(PRIVILEGED_PODS, workload, unknown=True)) == 1
    assert len(paths(PINNED_IMAGES, workload, unknown=True)) == 1
    assert paths(SERVICE_ACCOUNT_TOKENS, workload) == [], "nothing to correct yet"


BAD = {"name": "b", "securityContext": {"privileged": True}}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hostPID": True}, "hostPID"),
        ({"initContainers": [BAD]}, "initContainers[0].securityContext.privileged"),
        ({"ephemeralContainers": [BAD]}, "ephemeralContainers[0].securityContext.privileged"),
    ],
)
def test_a_patch_is_judged_by_what_it_changes_alone(spec: dict[str, object], path: str) -> None:
    patch = an_object("apps/v1:DeploymentPatch", {"spec": {"template": {"spec": spec}}})
    assert paths(PRIVILEGED_PODS, patch) == [f"spec.template.spec.{path}"]
    assert [paths(policy, patch) for policy in (PINNED_IMAGES, SERVICE_ACCOUNT_TOKENS, NETWORK_POLICIES)] == [[]] * 3


def test_a_patch_with_a_path_of_the_machine_is_one() -> None:
    volumes = {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}
    assert paths(HOST_PATHS, an_object("apps/v1:DaemonSetPatch", {"spec": {"template": {"spec": volumes}}})) != []
    assert paths(HOST_PATHS, an_object("core/v1:PersistentVolumePatch", {"spec": {"local": {"path": "/"}}})) != []


def test_an_image_of_a_volume_is_pinned_too() -> None:
    pod = a_pod(GOOD, volumes=[{"name": "m", "image": {"reference": "models"}}])
    assert paths(PINNED_IMAGES, pod) == ["spec.volumes[0].image.reference"]


def test_a_projected_token_is_one() -> None:
    volumes = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
    without = {"automountServiceAccountToken": False, "volumes": volumes}
    assert paths(SERVICE_ACCOUNT_TOKENS, a_pod(GOOD, **without)) == [
        "spec.volumes[0].projected.sources[0].serviceAccountToken"
    ]
    assert paths(SERVICE_ACCOUNT_TOKENS, a_pod(GOOD, **without, serviceAccount="own")) == []


def test_rights_that_a_preview_does_not_know_are_named() -> None:
    unknown = a_pod({**GOOD, "securityContext": UNKNOWN}, UNKNOWN, hostPID=UNKNOWN)  # type: ignore[arg-type]
    assert paths(PRIVILEGED_PODS, unknown) == []
    assert paths(PRIVILEGED_PODS, unknown, unknown=True) == [
        "spec.containers[1]",
        "spec.hostPID",
        "spec.containers[0].securityContext.privileged",
        "spec.containers[0].securityContext.allowPrivilegeEscalation",
    ]


def test_a_path_of_the_machine_is_allowed_with_its_reason_alone() -> None:
    volumes = [{"name": str(path), "hostPath": {"path": path}} for path in ("/sys/fs/cgroup", "/mnt/nvme", UNKNOWN)]
    given = {"volumes": [*volumes, {"name": "m", "emptyDir": {}}]}
    pod = a_pod(GOOD, labels=OURS, **given)
    assert paths(HOST_PATHS, a_pod(GOOD, **given))[0] == "spec.volumes[0].hostPath.path", "the default is for our pods"
    assert paths(HOST_PATHS, pod) == ["spec.volumes[1].hostPath.path"]
    assert paths(HOST_PATHS, pod, unknown=True) == ["spec.volumes[2].hostPath"]
    assert paths(HOST_PATHS, pod, allowed={"/mnt/nvme": "scratch", "/sys/fs/cgroup": "jobs"}) == []
    assert paths(HOST_PATHS, pod, allowed={"/mnt/nvme": "scratch"}) == ["spec.volumes[0].hostPath.path"]


def test_a_persistent_volume_of_the_machine_is_a_path_too() -> None:
    volume = an_object("core/v1:PersistentVolume", {"spec": {"local": {"path": "/mnt/disk"}}})
    assert paths(HOST_PATHS, volume) == ["spec.local.path"]


@pytest.mark.parametrize(
    ("spec", "mounts"),
    [
        ({}, True),
        ({"automountServiceAccountToken": True}, True),
        ({"serviceAccountName": "default"}, True),
        ({"automountServiceAccountToken": False}, False),
        ({"serviceAccountName": "own"}, False),
        ({"serviceAccount": "own"}, False),
        ({"serviceAccountName": UNKNOWN}, False),
        ({"automountServiceAccountToken": UNKNOWN}, False),
    ],
)
def test_a_pod_without_an_account_of_its_own_mounts_no_token(spec: dict[str, object], mounts: bool) -> None:
    expected = ["spec.automountServiceAccountToken"] if mounts else []
    assert paths(SERVICE_ACCOUNT_TOKENS, a_pod(GOOD, **spec)) == expected


@pytest.mark.parametrize(
    ("image", "pinned"),
    [
        ("registry.example/a:1.2", True),
        ("registry.example:5000/a:1.2", True),
        ("a@sha256:" + "0" * 64, True),
        ("a:latest@sha256:" + "0" * 64, True),
        ("a", False),
        ("a@x", False),
        ("a:1@sha256:0", False),
        ("registry.example:5000/a", False),
        ("a:latest", False),
        ("a:stable", False),
        ("", False),
        (None, False),
    ],
)
def test_an_image_is_pinned_by_a_version_or_a_digest(image: str | None, pinned: bool) -> None:
    assert paths(PINNED_IMAGES, a_pod({"name": "a", "image": image})) == (
        [] if pinned else ["spec.containers[0].image"]
    )


@pytest.mark.parametrize(
    ("image", "registry", "allowed"),
    [
        ("registry.example/research/a:1", "registry.example", True),
        ("registry.example/research/a:1", "registry.example/research", True),
        ("registry.example/research-2/a:1", "registry.example/research", False),
        ("registry.example.com/a:1", "registry.example", False),
        ("debian:13", "docker.io", True),
        ("library/debian:13", "docker.io", True),
        ("localhost/a:1", "docker.io", False),
        ("localhost:5000/a:1", "localhost:5000", True),
    ],
)
def test_an_image_is_from_an_allowed_registry(image: str, registry: str, allowed: bool) -> None:
    found = paths(PINNED_IMAGES, a_pod({"name": "a", "image": image}), registries=[registry])
    assert found == ([] if allowed else ["spec.containers[0].image"])
