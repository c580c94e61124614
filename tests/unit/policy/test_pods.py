"""Policies on pods: rights, paths of the machine, images."""

from dataclasses import replace

import pytest

from soperator_pulumi.policy import UNKNOWN, pods_of
from soperator_pulumi.policy.pinned_images import PINNED_IMAGES
from soperator_pulumi.policy.pod_rights import HOST_PATHS, PRIVILEGED_PODS, SERVICE_ACCOUNT_TOKENS
from soperator_pulumi.policy.protection import NETWORK_POLICIES
from tests.unit.policy.views import RUN, a_pod, a_resource_of_ours, an_object, as_stateful_set, below, paths

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
        ({"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions.type"),
        ({"seLinuxOptions": {"role": "sysadm_r"}}, "seLinuxOptions.role"),
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


def with_capabilities(*names: str) -> dict[str, object]:
    return {**GOOD, "securityContext": {"capabilities": {"add": [*names]}}}


ADDED = "spec.template.spec.containers[0].securityContext.capabilities.add[0]"


@pytest.mark.parametrize(
    ("part", "capability", "found"),
    [
        ("NodeSet", "SYS_ADMIN", []),
        ("LoginNodes", "SYS_ADMIN", []),
        ("LoginNodes", "DAC_READ_SEARCH", []),
        ("NodeSet", "SYS_MODULE", [ADDED]),
        ("Controller", "SYS_ADMIN", [ADDED]),
    ],
)
def test_pods_of_a_cluster_have_the_powerful_capabilities_that_their_part_needs(
    part: str, capability: str, found: list[str]
) -> None:
    pods = as_stateful_set(a_pod(with_capabilities(capability)))
    assert paths(PRIVILEGED_PODS, below(part, pods)) == found


# Kubernetes' baseline forbids all but those that runtimes give. These reach the machine or other pods.
@pytest.mark.parametrize(
    "capability",
    [
        *("BPF", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "PERFMON"),
        *("SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME", "SYSLOG"),
    ],
)
def test_a_capability_that_reaches_the_machine_or_other_pods_needs_a_reason(capability: str) -> None:
    pods = as_stateful_set(a_pod(with_capabilities(capability)))
    assert paths(PRIVILEGED_PODS, pods) == [ADDED]
    assert paths(PRIVILEGED_PODS, pods, capabilities={capability: "a reason"}) == []


def test_a_stranger_s_pod_is_not_taken_for_ours_by_a_label_or_by_its_parent() -> None:
    pods = as_stateful_set(a_pod(with_capabilities("SYS_ADMIN"), labels=OURS))
    named_as_the_part = below("NodeSet", pods)
    assert paths(PRIVILEGED_PODS, named_as_the_part) == []
    assert paths(PRIVILEGED_PODS, pods) == [ADDED]
    assert paths(PRIVILEGED_PODS, replace(named_as_the_part, name="another")) == [ADDED]
    assert paths(PRIVILEGED_PODS, replace(named_as_the_part, type="kubernetes:apps/v1:Deployment")) == [ADDED]
    assert paths(PRIVILEGED_PODS, below("SlurmCluster", pods)) == [ADDED]


def test_a_powerful_capability_is_for_strangers_where_a_setting_gives_the_reason() -> None:
    tracer = with_capabilities("SYS_PTRACE", "CHOWN")
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
    pod = below("NodeSet", as_stateful_set(a_pod(GOOD, **given)))
    at = "spec.template.spec"
    assert paths(HOST_PATHS, pod) == [f"{at}.volumes[{index}].hostPath.path" for index in (0, 1)]
    assert paths(HOST_PATHS, pod, unknown=True) == [f"{at}.volumes[2].hostPath"]
    assert paths(HOST_PATHS, pod, allowed={"/mnt/nvme": "scratch", "/sys/fs/cgroup": "jobs"}) == []
    assert paths(HOST_PATHS, pod, allowed={"/mnt/nvme": "scratch"}) == [f"{at}.volumes[0].hostPath.path"]


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
        ("a:latest-alpine", False),
        ("debian:bookworm-slim", False),
        ("debian:12-slim", True),
        ("registry.example:5000/a:", False),
        ("REGISTRY.EXAMPLE/a:1", True),
        ("a@SHA256:" + "0" * 64, False),
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
        ("debian:13", "docker.io/library", True),
        ("someone/debian:13", "docker.io/library", False),
        ("REGISTRY.EXAMPLE/a:1", "docker.io", False),
        ("registry.example:443/a:1", "registry.example", False),
        ("registry.example/a@sha256:" + "0" * 64, "registry.example", True),
        ("localhost/a:1", "docker.io", False),
        ("localhost:5000/a:1", "localhost:5000", True),
    ],
)
def test_an_image_is_from_an_allowed_registry(image: str, registry: str, allowed: bool) -> None:
    found = paths(PINNED_IMAGES, a_pod({"name": "a", "image": image}), registries=[registry])
    assert found == ([] if allowed else ["spec.containers[0].image"])


def test_a_port_of_the_machine_and_its_sysctls_are_rights() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81.0}, {"hostPort": UNKNOWN}]
    sysctls = {"sysctls": [{"name": "net.ipv4.tcp_syncookies"}, {"name": "kernel.core_pattern"}]}
    pod = a_pod({**GOOD, "ports": ports}, securityContext=sysctls)
    assert paths(PRIVILEGED_PODS, pod) == ["spec.securityContext.sysctls[1]", "spec.containers[0].ports[1].hostPort"]
    assert paths(PRIVILEGED_PODS, pod, unknown=True) == ["spec.containers[0].ports[2].hostPort"]


def test_an_annotation_takes_no_profile_from_a_container() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/a"
    metadata = {"annotations": {key: "unconfined", "note": "unconfined"}}
    pod = an_object("core/v1:Pod", {"metadata": metadata, "spec": {"containers": [GOOD]}})
    assert paths(PRIVILEGED_PODS, pod) == [f'metadata.annotations["{key}"]']


def test_a_part_that_looks_like_pods_hides_none_below_it() -> None:
    decoy = {"volumes": [{"name": "v"}], "podTemplate": {"spec": {"containers": [BAD]}}}
    found = paths(PRIVILEGED_PODS, an_object("example.com/v1:Thing", {"spec": decoy}))
    assert found == ["spec.podTemplate.spec.containers[0].securityContext.privileged"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}}, "podSecurityContext.seccompProfile.type"),
        ({"securityContext": {"privileged": True}}, "securityContext.privileged"),
        ({"sidecars": [BAD]}, "sidecars[0].securityContext.privileged"),
        ({"template": {"container": BAD}}, "template.container.securityContext.privileged"),
        ({"containers": [GOOD], "extraContainers": [BAD]}, "extraContainers[0].securityContext.privileged"),
    ],
)
def test_a_custom_resource_or_a_chart_has_rights_under_keys_of_its_own(spec: dict[str, object], path: str) -> None:
    assert paths(PRIVILEGED_PODS, an_object("example.com/v1:Thing", {"spec": spec})) == [f"spec.{path}"]
    assert paths(PRIVILEGED_PODS, an_object("helm.sh/v3:Release", {"values": spec})) == [f"values.{path}"]


def test_an_image_of_a_custom_resource_is_pinned_and_one_in_a_chart_s_values_is_the_chart_s() -> None:
    database = an_object("k8s.example.com/v1:MariaDB", {"spec": {"image": "mariadb:latest"}})
    assert paths(PINNED_IMAGES, database) == ["spec.image"]
    assert paths(PINNED_IMAGES, an_object("helm.sh/v3:Release", {"values": {"image": "mariadb"}})) == []


@pytest.mark.parametrize(
    ("parts", "pinned"),
    [
        ({"repository": "nvcr.example/mellanox", "version": "v26.4.1"}, True),
        ({"repository": "nvcr.example/mellanox", "version": "latest"}, False),
        ({"repository": "nvcr.example/mellanox"}, False),
        ({"version": "v26.4.1"}, True),
    ],
)
def test_an_image_in_three_keys_is_pinned_by_its_version(parts: dict[str, str], *, pinned: bool) -> None:
    policy = an_object("mellanox.com/v1alpha1:NicClusterPolicy", {"spec": {"multus": {"image": "multus-cni", **parts}}})
    assert paths(PINNED_IMAGES, policy) == ([] if pinned else ["spec.multus.image"])


def test_a_patch_of_a_pods_own_context_alone_is_judged() -> None:
    context = {"seccompProfile": {"type": "Unconfined"}}
    patch = an_object("apps/v1:DeploymentPatch", {"spec": {"template": {"spec": {"securityContext": context}}}})
    assert paths(PRIVILEGED_PODS, patch) == ["spec.template.spec.securityContext.seccompProfile.type"]


def test_a_tag_that_may_be_a_secret_is_not_repeated() -> None:
    pod = a_pod({"name": "a", "image": "registry.example/a:hunter"})
    (found,) = PINNED_IMAGES.check(pod, RUN, PINNED_IMAGES.settings())
    assert found.text.startswith("got a tag without a digit")


def test_capabilities_and_volumes_that_a_preview_does_not_know_are_named() -> None:
    context = {"capabilities": {"add": UNKNOWN}}
    pod = a_pod({**GOOD, "securityContext": context}, volumes=UNKNOWN)
    assert paths(PRIVILEGED_PODS, pod, unknown=True) == ["spec.containers[0].securityContext.capabilities.add"]
    assert paths(HOST_PATHS, pod, unknown=True) == ["spec.volumes"]
