"""Properties of everything that a cluster registers, whatever the spec."""

import json

import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.cluster import InvalidClusterError
from soperator_pulumi.lifecycle import OWNER_LABEL
from soperator_pulumi.spec.node_set import RESERVED
from soperator_pulumi.testing import Deployment, Recorded, Secret, deploy
from tests.rendered.cluster.clusters import (
    PODS,
    a_deployment,
    a_spec,
    all_pods,
    capabilities_of,
    containers_of,
    mounts_of,
    pod_of,
    provided,
)

SPECS = {
    "defaults": a_spec(),
    "own namespace, nothing kept": a_spec(namespace="research", storage={"keep": False}),
    "existing everything": a_spec(
        create_namespace=False,
        secrets={"munge_key": {"secret": "munge"}, "ssh_host_key": {"secret": "host"}},
        storage={"state": {"existing_claim": "state"}},
        jail={"storage": {"existing_claim": "jail-of-old"}},
    ),
    "a jail from a tarball, with submounts": a_spec(
        jail={
            "source": {"tarball": {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}},
            "submounts": [
                {"path": "/data", "existing_claim": "data", "read_only": True},
                {"path": "/mnt/local", "host_path": "/mnt/disks", "roles": ["worker"]},
                {"path": "/scratch", "scratch_gib": 10},
                {"path": "/dev/shm", "memory_gib": 2, "roles": ["worker"]},
            ],
        },
    ),
    "cgroups, two node sets": a_spec(
        slurm={"constrain": "cgroup"},
        node_sets=[
            {"name": "cpu", "cpus": 4, "memory_gib": 8},
            {"name": "big", "cpus": 64, "memory_gib": 512, "partitions": ["big"]},
        ],
    ),
    "labels and annotations": a_spec(labels={"team": "hpc"}, annotations={"example.com/cost": "42"}),
}


@pytest.fixture(params=SPECS, ids=str, scope="module")
def deployment(request: pytest.FixtureRequest) -> Deployment:
    return deploy(lambda: SlurmCluster("hpc", SPECS[request.param]), outputs=provided)


def kubernetes_objects(deployment: Deployment) -> list[Recorded]:
    return [resource for resource in deployment.recorded if resource.type.startswith("kubernetes:")]


def test_the_parent_chain_of_every_resource_ends_at_the_cluster(deployment: Deployment) -> None:
    parents = {
        resource.name: resource.parent
        for resource in deployment.recorded
        if resource.type.startswith("soperator-pulumi:")
    }
    for resource in deployment.recorded:
        if resource.name == "hpc":
            continue
        parent = resource.parent
        while parent != "hpc":
            parent = parents[parent]


def test_no_two_resources_of_a_type_have_the_same_name(deployment: Deployment) -> None:
    names = [(resource.type, resource.name) for resource in deployment.recorded]
    assert len(names) == len(set(names))


def test_every_name_begins_with_that_of_the_component(deployment: Deployment) -> None:
    assert all(resource.name == "hpc" or resource.name.startswith("hpc-") for resource in deployment.recorded)


def test_two_clusters_fit_into_one_program() -> None:
    def program() -> None:
        SlurmCluster("east", a_spec())
        SlurmCluster("west", a_spec())

    names = [(resource.type, resource.name) for resource in deploy(program, outputs=provided).recorded]
    assert len(names) == len(set(names))


def test_two_clusters_of_one_name_do_not_fit_into_one_program() -> None:
    def program() -> None:
        SlurmCluster("east", a_spec(name="hpc"))
        SlurmCluster("west", a_spec(name="hpc", namespace="west"))

    with pytest.raises(InvalidClusterError, match="also the name of SlurmCluster 'east'"):
        deploy(program, outputs=provided)


def test_every_object_stands_in_the_namespace(deployment: Deployment) -> None:
    expected = deployment.one("hpc-prerequisites").inputs["namespace"]
    for kubernetes_object in kubernetes_objects(deployment):
        if not kubernetes_object.type.endswith(":Namespace"):
            assert kubernetes_object.inputs["metadata"]["namespace"] == expected, kubernetes_object.name


def test_every_object_says_whose_it_is(deployment: Deployment) -> None:
    for kubernetes_object in kubernetes_objects(deployment):
        labels = kubernetes_object.inputs["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == "soperator-pulumi", kubernetes_object.name
        assert labels["app.kubernetes.io/instance"] == "hpc", kubernetes_object.name
        assert labels[OWNER_LABEL] == "project.test.hpc", kubernetes_object.name


def test_config_maps_carry_the_same_labels_as_other_objects(deployment: Deployment) -> None:
    for resource in deployment.resources(":ConfigFiles"):
        assert resource.inputs["labels"][OWNER_LABEL] == "project.test.hpc"
        assert resource.inputs["labels"]["app.kubernetes.io/instance"] == "hpc"


def test_every_object_names_its_application_and_its_manager(deployment: Deployment) -> None:
    for kubernetes_object in kubernetes_objects(deployment):
        labels = kubernetes_object.inputs["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"], kubernetes_object.name
        assert labels["app.kubernetes.io/managed-by"] == "pulumi", kubernetes_object.name
    for files in (*deployment.resources(":ConfigFiles"), *deployment.resources(":SecretFiles")):
        assert files.inputs["labels"]["app.kubernetes.io/name"] == "slurm"
        assert files.inputs["labels"]["app.kubernetes.io/managed-by"] == "pulumi"


def test_pods_and_selectors_have_none_of_the_labels_of_objects_alone(deployment: Deployment) -> None:
    """Another label of a pod template recreates the pods, and a selector cannot change."""
    for kubernetes_object in kubernetes_objects(deployment):
        spec = dict(kubernetes_object.inputs.get("spec", {}))
        if "jobTemplate" in spec:
            spec["jobTemplate"] = spec["jobTemplate"]["spec"]
        assert "app.kubernetes.io/managed-by" not in json.dumps(spec, default=str), kubernetes_object.name


def test_labels_and_annotations_of_the_spec_reach_objects_and_pods() -> None:
    deployment = deploy(lambda: SlurmCluster("hpc", SPECS["labels and annotations"]), outputs=provided)
    for kubernetes_object in kubernetes_objects(deployment):
        metadata = kubernetes_object.inputs["metadata"]
        assert metadata["labels"]["team"] == "hpc", kubernetes_object.name
        assert metadata["annotations"]["example.com/cost"] == "42", kubernetes_object.name
    for name in PODS:
        template = deployment.one(name, "StatefulSet").inputs["spec"]["template"]
        assert template["metadata"]["labels"]["team"] == "hpc"
        assert template["metadata"]["annotations"]["example.com/cost"] == "42"


def test_no_object_has_an_empty_map_that_kubernetes_would_forget(deployment: Deployment) -> None:
    for kubernetes_object in kubernetes_objects(deployment):
        assert kubernetes_object.inputs["metadata"].get("annotations") != {}, kubernetes_object.name


def test_the_prerequisites_are_checked_before_anything_else_is_registered(deployment: Deployment) -> None:
    assert [resource.name for resource in deployment.recorded[:2]] == ["hpc", "hpc-prerequisites"]
    for resource in deployment.recorded[2:]:
        if not resource.type.startswith("soperator-pulumi:"):
            assert "hpc-prerequisites" in {waited.name for waited in deployment.waits_for(resource)}, resource.name


def test_pods_list_few_of_the_resources_that_they_wait_for(deployment: Deployment) -> None:
    """Pulumi records and compares the listed URNs of each resource, in every run."""
    for pods in deployment.resources(":StatefulSet"):
        assert len(deployment.waits_for(pods)) > 8, pods.name
        assert len(pods.request.dependencies) <= 20, pods.name
    assert len(deployment.one("hpc-cpu", "StatefulSet").request.dependencies) <= 6


def test_secrets_are_marked_as_secret(deployment: Deployment) -> None:
    for resource in deployment.resources(":Secret"):
        data = resource.inputs["data"]
        assert isinstance(data, Secret) or all(isinstance(value, Secret) for value in data.values()), resource.name


def test_nothing_but_secrets_holds_a_secret_value(deployment: Deployment) -> None:
    def holds_secret(value: object) -> bool:
        if isinstance(value, dict):
            return any(holds_secret(item) for item in value.values())
        if isinstance(value, list):
            return any(holds_secret(item) for item in value)
        return isinstance(value, Secret)

    for resource in deployment.recorded:
        if not resource.type.endswith(":Secret"):
            assert not holds_secret(dict(resource.inputs)), resource.name


def test_no_container_is_privileged_or_can_become_so(deployment: Deployment) -> None:
    for pod in all_pods(deployment).values():
        for name, container in containers_of(pod).items():
            context = container["securityContext"]
            assert context["privileged"] is False
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is (name != "admin"), name
            assert context["capabilities"]["drop"] == ["ALL"]
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_only_what_moves_jobs_and_sessions_into_the_jail_may_mount(deployment: Deployment) -> None:
    mounting = {
        name
        for pod in all_pods(deployment).values()
        for name, container in containers_of(pod).items()
        if "SYS_ADMIN" in capabilities_of(container)
    }
    assert mounting == {"slurmd", "sshd"}, "jail-login takes it from sshd before it starts it"


def test_no_pod_holds_a_token_or_a_name_of_kubernetes(deployment: Deployment) -> None:
    for pod in all_pods(deployment).values():
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & pod.keys()


def test_every_mount_has_its_volume_and_a_path_of_its_own(deployment: Deployment) -> None:
    for pod in all_pods(deployment).values():
        volumes = [volume["name"] for volume in pod["volumes"]]
        assert len(volumes) == len(set(volumes))
        for container in containers_of(pod).values():
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
            assert len(mounts_of(container)) == len(container["volumeMounts"]), "two volumes at one path"


def test_only_the_pods_of_slurm_are_found_by_the_name_of_a_node(deployment: Deployment) -> None:
    service = deployment.one("hpc-nodes", "Service").inputs["spec"]["selector"]
    templates = {
        resource.inputs["metadata"]["name"]: resource.inputs["spec"]["template"]["metadata"]["labels"]
        for resource in [*deployment.resources(":StatefulSet"), *deployment.resources(":Job")]
    }
    slurm = templates.keys() - {"admin", deployment.resources(":Job")[0].inputs["metadata"]["name"]}
    templates["switch"] = deployment.one("hpc-active-tree").inputs["template"]["metadata"]["labels"]
    found = {name for name, labels in templates.items() if service.items() <= labels.items()}
    assert found == slurm


@pytest.mark.parametrize("name", PODS)
def test_every_pod_finds_the_others_by_their_short_names(deployment: Deployment, name: str) -> None:
    namespace = deployment.one("hpc-prerequisites").inputs["namespace"]
    assert pod_of(deployment, name)["dnsConfig"] == {"searches": [f"nodes.{namespace}.svc.cluster.local"]}
    assert deployment.one(name, "StatefulSet").inputs["spec"]["serviceName"] == "nodes"
    assert deployment.one("hpc-nodes", "Service").inputs["metadata"]["name"] == "nodes"


def test_pods_search_the_domain_of_their_kubernetes_cluster() -> None:
    pod = pod_of(a_deployment(cluster_domain="k8s.example"), "hpc-cpu")
    assert pod["dnsConfig"] == {"searches": ["nodes.hpc.svc.k8s.example"]}


def test_no_node_set_may_have_the_name_of_a_stateful_set_of_the_clusters_own() -> None:
    whole = a_deployment(accounting={}, rest={}, metrics={})
    own = {resource.inputs["metadata"]["name"] for resource in whole.resources(":StatefulSet")} - {"cpu"}
    assert {"accounting", "database", "metrics", "rest"} <= own
    assert own <= RESERVED.keys()
