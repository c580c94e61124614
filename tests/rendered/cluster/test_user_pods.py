"""Pods in which users work: their labels, spread, host names, cloud identity, and the sizes of their directories."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.node_set import JOB_TOKEN_DIR
from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import a_deployment, a_node_set, containers_of, mounts_of, pod_of, volume_of

ROLE = "arn:aws:iam::111122223333:role/hpc"
LABELS = {"azure.workload.identity/use": "true"}
SETTINGS = {
    "labels": LABELS,
    "annotations": {"example.org/cost": "42"},
    "topology_spread": [{"topology_key": "topology.kubernetes.io/zone", "when_unsatisfiable": "DoNotSchedule"}],
    "host_aliases": [{"ip": "2001:DB8::7", "hostnames": ["licences.example.org", "licences"]}],
    "service_account": {"annotations": {"eks.amazonaws.com/role-arn": ROLE}},
}
TOKEN = {"audience": "sts.amazonaws.com", "expiration_seconds": 600}


def deployed(role: str, **settings: Any) -> Deployment:
    """Deploy a cluster of which one role has these settings."""
    return a_deployment(**({"login": settings} if role == "login" else {"node_sets": [a_node_set(**settings)]}))


@pytest.fixture(params=["login", "cpu"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_labels_and_annotations_are_added_to_those_of_the_pods(role: str) -> None:
    template = deployed(role, **SETTINGS).one(f"hpc-{role}", "StatefulSet").inputs["spec"]["template"]
    assert template["metadata"]["labels"].items() > LABELS.items()
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "hpc"
    assert template["metadata"]["annotations"] == SETTINGS["annotations"]


def test_the_annotation_of_networks_is_given_once() -> None:
    key = "k8s.v1.cni.cncf.io/networks"
    with pytest.raises(SpecError, match=rf"node_sets\[0\]\.annotations\.{key}: networks sets it as well"):
        deployed("cpu", networks=["rail-0"], annotations={key: "rail-1"})


def test_a_spread_counts_the_pods_of_the_role_alone(role: str) -> None:
    deployment = deployed(role, **SETTINGS)
    selector = deployment.one(f"hpc-{role}", "StatefulSet").inputs["spec"]["selector"]
    assert pod_of(deployment, f"hpc-{role}")["topologySpreadConstraints"] == [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
    ]


def test_host_aliases_are_in_the_hosts_file_of_the_pods(role: str) -> None:
    aliases = pod_of(deployed(role, **SETTINGS), f"hpc-{role}")["hostAliases"]
    assert aliases == [{"ip": "2001:db8::7", "hostnames": ["licences.example.org", "licences"]}]


def test_pods_have_a_service_account_of_their_own_and_no_token_of_the_api(role: str) -> None:
    deployment = deployed(role, **SETTINGS)
    pod, account = pod_of(deployment, f"hpc-{role}"), deployment.one(f"hpc-{role}-account", "ServiceAccount").inputs
    assert pod["serviceAccountName"] == account["metadata"]["name"] == role
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": ROLE}
    assert not pod["automountServiceAccountToken"]
    assert not account["automountServiceAccountToken"]
    assert not any("projected" in volume for volume in pod["volumes"])


def test_a_service_account_that_exists_is_named_and_not_created(role: str) -> None:
    deployment = deployed(role, service_account={"name": "s3-reader", "create": False})
    assert pod_of(deployment, f"hpc-{role}")["serviceAccountName"] == "s3-reader"
    assert not deployment.resources(":ServiceAccount")
    wanted = deployment.one("hpc-prerequisites", "Prerequisites").inputs["references"]
    path = "login" if role == "login" else "node_sets[0]"
    assert ("ServiceAccount", "s3-reader", f"{path}.service_account") in {
        (item["kind"], item["name"], item["path"]) for item in wanted
    }


def test_without_a_setting_pods_have_nothing_of_it(role: str) -> None:
    pod = pod_of(a_deployment(), f"hpc-{role}")
    assert not {"serviceAccountName", "hostAliases", "topologySpreadConstraints"} & pod.keys()


def test_a_token_of_jobs_is_for_one_audience_and_among_their_files() -> None:
    pod = pod_of(deployed("cpu", **SETTINGS, job_token=TOKEN), "hpc-cpu")
    daemon = containers_of(pod)["slurmd"]
    mount = mounts_of(daemon)[JOB_TOKEN_DIR]
    assert mount["readOnly"]
    assert volume_of(pod, mount)["projected"] == {
        "defaultMode": 0o444,
        "sources": [
            {"serviceAccountToken": {"audience": "sts.amazonaws.com", "expirationSeconds": 600, "path": "token"}}
        ],
    }
    assert f"volume={JOB_TOKEN_DIR}:ro" in daemon["command"]
    others = [container for name, container in containers_of(pod).items() if name != "slurmd"]
    assert not any(JOB_TOKEN_DIR in mounts_of(container) for container in others)


def test_no_directory_on_the_disk_of_a_machine_is_without_a_size(role: str) -> None:
    volumes = pod_of(a_deployment(), f"hpc-{role}")["volumes"]
    assert all(volume["emptyDir"].get("sizeLimit") for volume in volumes if "emptyDir" in volume)


def test_the_spool_of_slurmd_grows_with_the_jobs_that_a_node_can_have() -> None:
    pod = pod_of(a_deployment(node_sets=[a_node_set(cpus=192)]), "hpc-cpu")
    spool = volume_of(pod, mounts_of(containers_of(pod)["slurmd"])["/var/spool/slurmd"])
    assert spool == {"emptyDir": {"sizeLimit": "2560Mi"}}
