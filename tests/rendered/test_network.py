"""Who may talk to whom."""

from typing import Any

from soperator_pulumi.testing import Deployment
from tests.rendered.clusters import a_deployment

SRUN = (60001, 63000)


def allowed(deployment: Deployment, component: str) -> set[tuple[str, str]]:
    """From a component's policy: who may reach which port."""
    policy = deployment.one(f"hpc-network-{component}").inputs["spec"]
    rules = set()
    for rule in policy["ingress"]:
        ports = [_port(port) for port in rule.get("ports", [{}])]
        rules |= {(_peer(peer), port) for peer in rule["from"] for port in ports}
    return rules


def _peer(peer: dict[str, Any]) -> str:
    if "ipBlock" in peer:
        return str(peer["ipBlock"]["cidr"])
    return str(peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"])


def _port(port: dict[str, Any]) -> str:
    if not port:
        return "every port"
    return "srun" if (port["port"], port.get("endPort")) == SRUN else str(int(port["port"]))


def test_nothing_reaches_any_pod_of_the_cluster_without_a_rule() -> None:
    policy = a_deployment().one("hpc-network-default-deny").inputs["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert not policy.get("ingress")
    assert policy["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/part-of": "soperator-pulumi",
        "app.kubernetes.io/instance": "hpc",
    }


def test_only_the_clusters_own_pods_reach_slurmctld() -> None:
    assert allowed(a_deployment(), "controller") == {(peer, "6817") for peer in ("controller", "login", "worker")}


def test_slurmctld_reaches_slurmd_and_srun_and_workers_and_logins_reach_workers() -> None:
    assert allowed(a_deployment(), "worker") == {
        ("controller", "6818"),
        ("controller", "srun"),
        ("login", "srun"),
        ("worker", "srun"),
        ("login", "every port"),
        ("worker", "every port"),
    }


def test_nobody_reaches_sshd_until_the_spec_names_sources() -> None:
    assert allowed(a_deployment(), "login") == {(peer, "srun") for peer in ("controller", "login", "worker")}


def test_the_named_sources_reach_sshd_and_nothing_else() -> None:
    rules = allowed(a_deployment(login={"allowed_sources": ["10.0.0.0/8", "192.0.2.7/32"]}), "login")
    assert {rule for rule in rules if "/" in rule[0]} == {("10.0.0.0/8", "2222"), ("192.0.2.7/32", "2222")}


def test_slurmctld_itself_talks_to_the_clusters_pods_and_to_name_servers_only() -> None:
    policy = a_deployment().one("hpc-network-controller-out").inputs["spec"]
    to_pods, to_names = policy["egress"]
    assert {_peer(peer) for peer in to_pods["to"]} == {"controller", "login", "worker"}
    assert {(port["protocol"], port["port"]) for port in to_names["ports"]} == {("TCP", 53), ("UDP", 53)}


def outgoing(deployment: Deployment) -> dict[str, Any]:
    """What may leave the pods of each component of which that is limited."""
    return {
        each.inputs["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each.inputs["spec"]["egress"]
        for each in deployment.resources(":NetworkPolicy")
        if each.inputs["spec"]["policyTypes"] == ["Egress"]
    }


def test_nothing_leaves_the_pods_that_copy_an_image_or_switch_trees() -> None:
    found = outgoing(a_deployment())
    assert found.keys() == {"controller", "jail-populate", "jail-switch"}
    assert found["jail-populate"] == found["jail-switch"] == []


def test_the_job_of_a_tarball_and_the_admin_shell_may_fetch_what_they_need() -> None:
    tarball = {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}
    found = outgoing(a_deployment(jail={"source": {"tarball": tarball}}))

    assert found["jail-populate"] == [{}]
    assert "admin" not in found


def test_the_policy_of_populate_is_changed_and_not_deleted_when_the_kind_of_source_changes() -> None:
    """Pulumi deletes last: one that forbids everything would be in force while the Job of the tarball waits."""
    tarball = {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}
    names = [
        {each.name for each in a_deployment(**described).resources(":NetworkPolicy")}
        for described in ({}, {"jail": {"source": {"tarball": tarball}}})
    ]

    assert names[0] == names[1]


def test_no_policy_is_registered_after_the_pods_that_it_protects() -> None:
    deployment = a_deployment()
    for each in [*deployment.resources(":StatefulSet"), *deployment.resources(":Job")]:
        dependencies = {urn.rpartition("::")[2] for urn in each.request.dependencies}
        assert {policy.name for policy in deployment.resources(":NetworkPolicy")} <= dependencies


def test_every_eviction_of_workers_and_the_controller_is_refused() -> None:
    budgets = {each.name: each.inputs["spec"] for each in a_deployment().resources(":PodDisruptionBudget")}
    assert {name: spec["maxUnavailable"] for name, spec in budgets.items()} == {
        "hpc-controller-disruption": 0,
        "hpc-cpu-disruption": 0,
    }
    assert budgets["hpc-cpu-disruption"]["selector"]["matchLabels"]["soperator-pulumi/node-set"] == "cpu"
