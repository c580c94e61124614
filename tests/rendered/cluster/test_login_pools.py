"""Login pools: what they share with the login nodes outside them, and what keeps them apart."""

from typing import Any

import pulumi
import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.errors import SpecError
from soperator_pulumi.testing import Deployment, deploy
from tests.rendered.cluster.clusters import a_deployment, a_node_set, a_spec, containers_of, pod_of, provided
from tests.rendered.cluster.test_network import allowed

GPU = {
    "replicas": 2,
    "node_selector": {"pool": "gpu"},
    "service": "LoadBalancer",
    "allowed_sources": ["10.1.0.0/16"],
    "service_account": {},
    "groups": ["ml"],
    "termination_grace": "10m",
}
AT_A_PORT = {"service": "NodePort", "node_port": 30022, "allowed_sources": ["10.1.0.0/16"]}
LOGIN_RESOURCES = {"hpc-login", "hpc-login-ready", "hpc-login-service", "hpc-network-login"}
GROUPS = [{"name": "ml", "gid": 3000}]
COMPONENT = "app.kubernetes.io/component"


def with_pools(**pools: dict[str, Any]) -> Deployment:
    return a_deployment(groups=GROUPS, login={"allowed_sources": ["10.0.0.0/16"], "pools": pools})


def command_of(deployment: Deployment, stateful_set: str) -> list[str]:
    return [*containers_of(pod_of(deployment, stateful_set))["sshd"]["command"]]


def test_a_pool_has_its_own_pods_service_account_and_budget() -> None:
    deployment = with_pools(gpu=GPU)
    pod = pod_of(deployment, "hpc-login-gpu")
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert pod["serviceAccountName"] == "login-gpu"
    assert pod["terminationGracePeriodSeconds"] == 600
    assert deployment.one("hpc-login-gpu", "StatefulSet").inputs["spec"]["replicas"] == 2
    assert deployment.one("hpc-login-gpu-service").inputs["spec"]["type"] == "LoadBalancer"
    assert deployment.one("hpc-login-gpu-disruption").inputs["spec"]["maxUnavailable"] == 1


def test_pods_of_a_pool_are_selected_by_nothing_of_the_others() -> None:
    deployment = with_pools(gpu=GPU, cpu={})
    components = {"hpc-login": "login", "hpc-login-gpu": "login-gpu", "hpc-login-cpu": "login-cpu"}
    for name, component in components.items():
        stateful_set = deployment.one(name, "StatefulSet").inputs["spec"]
        labels = stateful_set["template"]["metadata"]["labels"]
        policy = deployment.one(f"hpc-network-{component}").inputs["spec"]
        service = deployment.one(f"{name}-service").inputs["spec"]
        assert labels[COMPONENT] == component
        assert labels["app.kubernetes.io/name"] == "sshd"
        assert labels["soperator-pulumi/slurm"] == "true", "the Service of all Slurm pods gives them their names"
        selectors = [stateful_set["selector"]["matchLabels"], policy["podSelector"]["matchLabels"], service["selector"]]
        assert {selector[COMPONENT] for selector in selectors} == {component}


def test_every_pool_admits_its_own_addresses() -> None:
    deployment = with_pools(gpu=GPU)
    assert allowed(deployment, "login-gpu") == {("10.1.0.0/16", "2222")}
    assert allowed(deployment, "login") == {("10.0.0.0/16", "2222")}


def policies_of(deployment: Deployment, labels: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the NetworkPolicies that select pods with these labels, by their names in Pulumi."""
    found = {policy.name: policy.inputs["spec"] for policy in deployment.resources(":NetworkPolicy")}
    return {name: spec for name, spec in found.items() if spec["podSelector"]["matchLabels"].items() <= labels.items()}


def test_sessions_of_a_pool_have_the_connections_of_login_nodes_until_they_end() -> None:
    labels = with_pools(gpu=GPU).one("hpc-login-gpu", "StatefulSet").inputs["spec"]["template"]["metadata"]["labels"]

    removed = policies_of(with_pools(), labels)

    assert {name for name, spec in removed.items() if "Egress" in spec["policyTypes"]} == {"hpc-network-sessions"}
    assert removed["hpc-network-sessions"] == with_pools(gpu=GPU).one("hpc-network-sessions").inputs["spec"]
    for component in ("controller", "worker"):
        name = f"hpc-network-{component}"
        assert with_pools().one(name).inputs == with_pools(gpu=GPU).one(name).inputs


def test_the_connections_of_a_login_node_are_closed_before_its_own_policy_leaves_them_open() -> None:
    deployment = with_pools(gpu=GPU)
    for name in ("hpc-network-login", "hpc-network-login-gpu"):
        assert deployment.one("hpc-network-sessions") in deployment.waits_for(deployment.one(name))


def test_sshd_of_a_pool_admits_its_groups_alone() -> None:
    deployment = with_pools(gpu=GPU)
    assert command_of(deployment, "hpc-login-gpu")[-2:] == ["-o", "AllowGroups=ml"]
    assert "-o" not in command_of(deployment, "hpc-login")


def test_pods_of_pools_are_waited_for_when_files_of_users_and_of_sshd_change() -> None:
    deployment = with_pools(gpu=GPU)
    for config_map in ("users", "ssh-keys", "sshd-config"):
        readers = {reader["component"] for reader in deployment.one(f"hpc-{config_map}").inputs["readers"]}
        assert {"login", "login-gpu"} <= readers


def test_new_jobs_enter_a_tree_after_the_pods_of_every_pool_can() -> None:
    deployment = with_pools(gpu=GPU)
    waited_for = deployment.waits_for(deployment.one("hpc-active-tree"))
    assert deployment.one("hpc-login-gpu-ready") in waited_for


def test_a_pool_gives_its_endpoint() -> None:
    def program() -> None:
        cluster = SlurmCluster("hpc", a_spec(login={"pools": {"gpu": {}}}))
        pulumi.export("endpoints", cluster.login_pool_endpoints)

    def outputs(type_: str, name: str, inputs: Any) -> Any:
        if name == "hpc-login-gpu-service":
            return {"spec": {**inputs["spec"], "clusterIP": "10.96.0.9"}}
        return provided(type_, name, inputs)

    assert deploy(program, outputs=outputs).exports["endpoints"] == {"gpu": "10.96.0.9:22"}


def test_programs_in_other_languages_get_a_map_of_endpoints_without_pools_too() -> None:
    def program() -> None:
        pulumi.export("outputs", SlurmCluster("hpc", a_spec()).outputs)

    assert deploy(program, outputs=provided).exports["outputs"]["loginPoolEndpoints"] == {}


def test_a_cluster_without_pools_has_the_login_nodes_of_before() -> None:
    """Other names would replace the resources of recorded states."""
    names = {resource.name for resource in a_deployment().recorded if "login" in resource.name}
    assert names == LOGIN_RESOURCES


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"login": {"pools": {"gpu": {"groups": ["mll"]}}}}, r'login\.pools\.gpu\.groups\[0\]: "mll" is not in the gr'),
        ({"login": {"groups": ["mll"]}}, r'login\.groups\[0\]: "mll" is not in the groups of the cluster'),
        ({"login": {"pools": {"gpu": {"service": "NodePort"}}}}, r"login\.pools\.gpu\.allowed_sources: empty"),
        ({"login": {"pools": {"gpu-0": {}}}}, "no number after a '-'"),
        ({"login": {"pools": {"gpu": {"pools": {}}}}}, r"login\.pools\.gpu\.pools"),
        (
            {"login": {"pools": {"gpu": {}}}, "node_sets": [a_node_set(name="login-gpu")]},
            r'node_sets\[0\]\.name: got "login-gpu", a name of login\.pools\.gpu and its pods',
        ),
        (
            {"login": {"pools": {"gpu": {}}}, "node_sets": [a_node_set(name="login-gpu-1")]},
            r'node_sets\[0\]\.name: got "login-gpu-1", a name of login\.pools\.gpu and its pods',
        ),
        (
            {"login": {"service_account": {"name": "a"}, "pools": {"gpu": {"service_account": {"name": "a"}}}}},
            r'login\.pools\.gpu\.service_account\.name: "a" is also created for login',
        ),
        (
            {
                "login": {"pools": {"gpu": {"pod_resources": {"limits": {"memory": "1Gi"}}}}},
                "jail": {"submounts": [{"path": "/fast", "memory_gib": 2, "roles": ["login"]}]},
            },
            r"but a pod of login\.pools\.gpu has 1 GiB",
        ),
        (
            {"login": {**AT_A_PORT, "pools": {"gpu": AT_A_PORT}}},
            r"login\.pools\.gpu\.node_port: got 30022, which login has as well",
        ),
    ],
)
def test_a_pool_that_could_not_work_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        a_deployment(**changes)
