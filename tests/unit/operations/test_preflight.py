"""Needs of a SlurmCluster that a Kubernetes cluster does not meet, all at once."""

import base64
from typing import Any

import pytest

from soperator_pulumi.cluster.secrets import host_key
from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.operations.preflight import PrerequisitesInputs, api_servers, closed_api_servers, problems
from tests.fakes.small_world import API_SERVICE, API_SLICE, SmallWorld

OWNER = "project.dev.hpc"
LABEL = "soperator-pulumi/owner"
OURS = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/instance": "hpc", LABEL: OWNER}
THEIRS = {**OURS, "app.kubernetes.io/instance": "other", LABEL: "project.prod.other"}
HOST_KEY = host_key(bytes(32)).private_key.encode()


def found(
    world: SmallWorld, *references: dict[str, str], before: dict[str, Any] | None = None, **overrides: Any
) -> list[str]:
    wanted: dict[str, Any] = {
        "namespace": "hpc",
        "create_namespace": True,
        "owner": OWNER,
        "owner_label": LABEL,
        "part_of": {"app.kubernetes.io/part-of": "soperator-pulumi"},
        "references": references,
        **overrides,
    }
    asked = PrerequisitesInputs.model_validate(wanted)
    _, not_known = closed_api_servers(world, asked.api_servers)
    recorded = None if before is None else PrerequisitesInputs.model_validate({**wanted, **before})
    return [str(problem) for problem in [*problems(world, asked, recorded), *not_known]]


def an_object(labels: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "labels": labels or {}}, **body}


def a_secret(**data: bytes) -> dict[str, Any]:
    return an_object(data={key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()})


def reference(path: str, kind: str, name: str, key: str = "", holds: str = "") -> dict[str, str]:
    return {"path": path, "kind": kind, "name": name, "key": key, "holds": holds}


NAMESPACE = "/api/v1/namespaces/hpc"


def test_an_empty_cluster_lacks_nothing_for_a_cluster_that_names_nothing() -> None:
    assert found(SmallWorld()) == []


def test_a_namespace_that_pulumi_would_delete_under_the_cluster_does_not_leave_the_program() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    created = {"create_namespace": True, "keep_namespace": False}
    (problem,) = found(world, before=created, create_namespace=False)
    assert problem.startswith(
        'create_namespace: got false, but "hpc" was created by this stack with storage.keep: false'
    )
    assert found(world, before={**created, "keep_namespace": True}, create_namespace=False) == []
    assert found(world, before=created, keep_namespace=False) == []


def test_a_namespace_of_this_stack_is_used_again() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    world.objects[f"{NAMESPACE}/persistentvolumeclaims/shared"] = an_object(OURS)
    assert found(world) == []


def test_a_namespace_of_someone_else_is_not_taken_over() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object()
    assert found(world) == [
        (
            'namespace: "hpc" exists already and was not made by this stack. '
            "Set create_namespace: false to use it as it is, or choose another one."
        )
    ]


def test_a_namespace_that_is_to_exist_must() -> None:
    assert found(SmallWorld(), create_namespace=False) == [
        (
            'namespace: "hpc" does not exist, and create_namespace is false. Create it, or set create_namespace: true. '
            "If the cluster's program creates it, name the Namespace in the cluster's depends_on."
        )
    ]


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_whose_pods_may_not_mount_is_reported_before_the_pods_are_refused(level: str) -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object({"pod-security.kubernetes.io/enforce": level})
    (problem,) = found(world, create_namespace=False)
    assert problem.startswith(f'namespace: "hpc" enforces the Pod Security level "{level}", which forbids')
    assert problem.endswith("needs the label pod-security.kubernetes.io/enforce=privileged.")


def test_a_namespace_of_ours_gets_the_level_that_it_needs() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object({**OURS, "pod-security.kubernetes.io/enforce": "baseline"})
    assert found(world) == []


def test_a_namespace_that_is_going_is_not_used() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = {"metadata": {"labels": OURS, "deletionTimestamp": "now"}}
    assert found(world) == ['namespace: "hpc" is being deleted. Wait until it is gone, or choose another one.']


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/apis/apps/v1/namespaces/hpc/statefulsets/controller", "runs in it"),
        ("/api/v1/namespaces/hpc/persistentvolumeclaims/shared", "has left its volumes in it"),
    ],
)
def test_a_namespace_holds_one_slurm_cluster(path: str, what: str) -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object()
    world.objects[path] = an_object(THEIRS)
    assert found(world, create_namespace=False) == [
        (
            f'namespace: got "hpc", but the SlurmCluster "other" (project.prod.other) {what}. '
            "A namespace holds one SlurmCluster: choose another namespace."
        )
    ]


def test_every_missing_object_is_named_by_the_path_that_names_it() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    missing = [
        reference("secrets.munge_key", "Secret", "munge", "munge.key", "munge key"),
        reference("storage.homes.existing_claim", "PersistentVolumeClaim", "homes", holds="ReadWriteMany"),
        reference("storage.state.storage_class", "StorageClass", "fast"),
        reference("login.priority_class", "PriorityClass", "high"),
    ]
    assert found(world, *missing) == [
        'secrets.munge_key: got "munge", but there is no Secret of that name in the namespace "hpc". Create it first.',
        (
            'storage.homes.existing_claim: got "homes", but there is no PersistentVolumeClaim of that name in the '
            'namespace "hpc". Create it first.'
        ),
        'storage.state.storage_class: got "fast", but there is no StorageClass of that name. Create it first.',
        'login.priority_class: got "high", but there is no PriorityClass of that name. Create it first.',
    ]


def test_an_object_that_must_be_in_a_namespace_not_yet_made_needs_the_namespace_first() -> None:
    (problem,) = found(SmallWorld(), reference("secrets.munge_key", "Secret", "munge", "munge.key", "munge key"))
    assert problem.endswith("Create the namespace and it first, and set create_namespace: false.")


@pytest.mark.parametrize(
    ("secret", "holds", "expected"),
    [
        (a_secret(other=b"x" * 128), "munge key", 'the Secret "own" has no key "the.key". Its keys: other.'),
        (a_secret(the_key=b"short"), "munge key", "holds 5 bytes; a munge key has 32 to 1024."),
        (a_secret(the_key=b"x" * 128), "munge key", ""),
        (a_secret(the_key=b"no key at all"), "ssh host key", "is not an ed25519 private key in OpenSSH's format"),
        (a_secret(the_key=HOST_KEY), "ssh host key", ""),
    ],
)
def test_a_secret_must_hold_what_it_is_named_for(secret: dict[str, Any], holds: str, expected: str) -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    world.objects[f"{NAMESPACE}/secrets/own"] = secret
    problem = "".join(found(world, reference("secrets.x", "Secret", "own", "the.key", holds)))
    assert (expected in problem) if expected else (problem == "")


def test_no_message_shows_what_a_secret_holds() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    world.objects[f"{NAMESPACE}/secrets/own"] = a_secret(the_key=b"hunter2")
    for holds in ("munge key", "ssh host key"):
        assert "hunter2" not in "".join(found(world, reference("secrets.x", "Secret", "own", "the.key", holds)))


def test_a_claim_must_allow_the_access_that_is_needed() -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    world.objects[f"{NAMESPACE}/persistentvolumeclaims/homes"] = an_object(spec={"accessModes": ["ReadWriteOnce"]})
    claim = reference("storage.homes.existing_claim", "PersistentVolumeClaim", "homes", holds="ReadWriteMany")
    assert found(world, claim) == [
        'storage.homes.existing_claim: got "homes", a claim with ReadWriteOnce; it needs ReadWriteMany.'
    ]


def test_without_a_storage_class_the_cluster_needs_a_default_one() -> None:
    world = SmallWorld()
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    world.objects[f"{classes}/slow"] = {"metadata": {"name": "slow"}}
    unnamed = reference("storage.homes.storage_class", "StorageClass", "")
    assert found(world, unnamed) == [
        (
            "storage.homes.storage_class: not given, and the Kubernetes cluster has no default StorageClass. "
            "Choose one; there are: slow."
        )
    ]
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    world.objects[f"{classes}/fast"] = {"metadata": {"name": "fast", "annotations": default}}
    assert found(world, unnamed) == []


@pytest.mark.parametrize(("modes", "problems"), [(["ReadOnlyMany"], 0), (["ReadWriteMany"], 0), (["ReadWriteOnce"], 1)])
def test_a_claim_may_be_allowed_several_kinds_of_access(modes: list[str], problems: int) -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    world.objects[f"{NAMESPACE}/persistentvolumeclaims/data"] = an_object(spec={"accessModes": modes})
    claim = reference(
        "jail.submounts[0].existing_claim", "PersistentVolumeClaim", "data", holds="ReadOnlyMany|ReadWriteMany"
    )
    reported = found(world, claim)
    assert len(reported) == problems
    assert all("it needs ReadOnlyMany or ReadWriteMany." in problem for problem in reported)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"spec": {}}, ""),
        ({"spec": {"claimRef": {"namespace": "hpc", "name": "jail"}}, "status": {"phase": "Bound"}}, ""),
        (
            {"spec": {"claimRef": {"namespace": "other", "name": "jail"}}},
            'got "nfs", a volume of the claim other/jail. Choose one that is free.',
        ),
        (
            {"spec": {"claimRef": {"namespace": "hpc", "name": "jail"}}, "status": {"phase": "Released"}},
            "a volume whose claim was deleted",
        ),
        (None, "there is no PersistentVolume of that name. Create it first."),
    ],
    ids=["free", "ours", "theirs", "released", "absent"],
)
def test_a_volume_made_beforehand_must_be_free_for_its_claim(volume: dict[str, Any] | None, expected: str) -> None:
    world = SmallWorld()
    world.objects[NAMESPACE] = an_object(OURS)
    if volume is not None:
        world.objects["/api/v1/persistentvolumes/nfs"] = volume
    problem = "".join(found(world, reference("jail.storage.static_volume", "PersistentVolume", "nfs", holds="jail")))
    assert (expected in problem) if expected else (problem == "")


def test_the_kubernetes_api_is_closed_at_its_services_addresses_and_at_those_behind_it() -> None:
    assert api_servers(SmallWorld()) == ["10.96.0.1/32", "192.0.2.8/32", "192.0.2.9/32", "fd00:96::1/128"]


def test_a_kubernetes_whose_first_addresses_are_ipv6_needs_slurm_to_use_them() -> None:
    world = SmallWorld()
    world.objects[API_SERVICE]["spec"] = {"clusterIP": "fd00:96::1", "clusterIPs": ["fd00:96::1", "10.96.0.1"]}
    (problem,) = found(world)
    assert problem.startswith('network.ipv6: false, but the Service "kubernetes" has fd00:96::1')
    assert problem.endswith("Set network.ipv6: true.")
    assert found(world, ipv6=True) == []


def test_names_behind_the_kubernetes_api_are_no_addresses() -> None:
    world = SmallWorld()
    world.objects[API_SLICE]["addressType"] = "FQDN"
    world.objects[API_SLICE]["endpoints"] = [{"addresses": ["api.example.com"]}]
    assert api_servers(world) == ["10.96.0.1/32", "fd00:96::1/128"]


def test_an_api_that_is_not_found_is_a_problem_unless_its_addresses_are_given() -> None:
    world = SmallWorld()
    del world.objects[API_SERVICE], world.objects[API_SLICE]
    (problem,) = found(world)
    assert problem.startswith("network.api_servers: not given, and ")
    assert problem.endswith("List its addresses here, in CIDR notation.")
    assert found(world, api_servers=[]) == found(world, api_servers=["192.0.2.0/24"]) == []


def test_an_api_that_may_not_be_asked_for_its_addresses_is_a_problem_among_others() -> None:
    class Forbidding(SmallWorld):
        def find(self, path: str, *arguments: Any, **keywords: Any) -> list[dict[str, Any]]:
            if path.endswith("endpointslices"):
                raise KubernetesError("GET endpointslices: forbidden.")
            return super().find(path, *arguments, **keywords)

    missing = reference("login.priority_class", "PriorityClass", "high")
    reported = found(Forbidding(), missing)
    assert [text.partition(":")[0] for text in reported] == ["login.priority_class", "network.api_servers"]
    assert "endpointslices: forbidden. List its addresses here" in reported[1]


POD_MONITOR = reference(
    "metrics.pod_monitor", "CustomResourceDefinition", "podmonitors.monitoring.coreos.com", holds="v1"
)


def test_a_kind_of_an_operator_that_is_not_there_is_refused_with_both_cures() -> None:
    (problem,) = found(SmallWorld(), POD_MONITOR)
    assert problem == (
        "metrics.pod_monitor: needs Prometheus' operator, but the API server knows no "
        "podmonitors.monitoring.coreos.com (v1). Install it (platform.kube_prometheus_stack does), or set "
        "metrics.pod_monitor: false. If the program itself installs it in another way, before the cluster, give the "
        "cluster platform: {kube_prometheus_stack: true}."
    )


@pytest.mark.parametrize(("served", "count"), [("podmonitors", 0), ("servicemonitors", 1)])
def test_a_kind_is_there_when_the_api_server_serves_it(served: str, count: int) -> None:
    world = SmallWorld()
    world.objects["/apis/monitoring.coreos.com/v1"] = {"resources": [{"name": served}]}
    assert len(found(world, POD_MONITOR)) == count
