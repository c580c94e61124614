"""Connections that are open between pods."""

from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.testing import Deployment
from tests.rendered.cluster.clusters import API_SERVERS, a_deployment

SRUN = (60001, 63000)


def allowed(deployment: Deployment, component: str) -> set[tuple[str, str]]:
    """From a component's policy: who may reach which port."""
    policy = deployment.one(f"hpc-network-{component}").inputs["spec"]
    rules = set()
    for rule in policy["ingress"]:
        ports = [_port(port) for port in rule.get("ports", [{}])]
        rules |= {(peer_of(peer), port) for peer in rule["from"] for port in ports}
    return rules


def peer_of(peer: dict[str, Any]) -> str:
    """Return the name of a policy's peer: an address, a namespace, or pods."""
    if "ipBlock" in peer:
        return str(peer["ipBlock"]["cidr"])
    if "namespaceSelector" in peer:
        return f"namespace {peer['namespaceSelector']['matchLabels']['kubernetes.io/metadata.name']}"
    labels = peer["podSelector"]["matchLabels"]
    return "sessions" if labels.get("app.kubernetes.io/name") == "sshd" else str(labels["app.kubernetes.io/component"])


def _port(port: dict[str, Any]) -> str:
    if not port:
        return "every port"
    return "srun" if (port["port"], port.get("endPort")) == SRUN else str(int(port["port"]))


def test_nothing_reaches_any_pod_of_the_cluster_without_a_rule() -> None:
    policy = a_deployment().one("hpc-network-default-deny-ingress").inputs["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert not policy.get("ingress")
    assert policy["podSelector"]["matchLabels"] == {
        "app.kubernetes.io/part-of": "soperator-pulumi",
        "app.kubernetes.io/instance": "hpc",
    }


def test_only_the_clusters_own_pods_reach_slurmctld() -> None:
    assert allowed(a_deployment(), "controller") == {(peer, "6817") for peer in ("controller", "sessions", "worker")}


def test_slurmctld_reaches_slurmd_and_srun_and_workers_and_logins_reach_workers() -> None:
    assert allowed(a_deployment(), "worker") == {
        ("controller", "6818"),
        ("controller", "srun"),
        ("sessions", "srun"),
        ("worker", "srun"),
        ("sessions", "every port"),
        ("worker", "every port"),
    }


def test_slurmctld_and_slurmd_reach_srun_of_sessions() -> None:
    assert allowed(a_deployment(), "sessions") == {(peer, "srun") for peer in ("controller", "sessions", "worker")}


def test_no_one_reaches_sshd_until_the_spec_names_sources() -> None:
    assert allowed(a_deployment(), "login") == set()


def test_the_named_sources_reach_sshd_and_nothing_else() -> None:
    rules = allowed(a_deployment(login={"allowed_sources": ["10.0.0.0/8", "192.0.2.7/32"]}), "login")
    assert {rule for rule in rules if "/" in rule[0]} == {("10.0.0.0/8", "2222"), ("192.0.2.7/32", "2222")}


OURS = ("controller", "sessions", "worker")


def test_no_one_reaches_the_rest_api_until_the_spec_opens_it() -> None:
    assert allowed(a_deployment(rest={}), "rest") == set()


def test_the_named_sources_and_namespaces_reach_the_rest_api_and_nothing_else() -> None:
    opened = {"allowed_sources": ["10.0.0.0/8", "192.0.2.7/32"], "allowed_namespaces": ["portal"]}

    assert allowed(a_deployment(rest=opened), "rest") == {
        ("10.0.0.0/8", "6820"),
        ("192.0.2.7/32", "6820"),
        ("namespace portal", "6820"),
    }


def test_slurmrestd_joins_those_who_reach_slurmctld_and_slurmdbd() -> None:
    deployment = a_deployment(accounting={}, rest={})

    assert ("rest", "6817") in allowed(deployment, "controller")
    assert allowed(deployment, "accounting") == {(peer, "6819") for peer in (*OURS, "rest")}


def test_only_the_clusters_own_pods_reach_slurmdbd() -> None:
    assert allowed(a_deployment(accounting={}), "accounting") == {(peer, "6819") for peer in OURS}


def test_only_slurmdbd_and_dumps_reach_the_database() -> None:
    found = allowed(a_deployment(accounting={}, rest={}), "database")

    assert found == {("accounting", "3306"), (layout.DUMP_COMPONENT, "3306")}


def test_slurmrestd_talks_to_slurm_s_daemons_and_to_name_servers_only() -> None:
    *to_daemons, names = outgoing(a_deployment(accounting={}, rest={}))["rest"]
    found = {(peer_of(peer), _port(port)) for rule in to_daemons for peer in rule["to"] for port in rule["ports"]}

    assert found == {("controller", "6817"), ("accounting", "6819")}
    assert {port["port"] for port in names["ports"]} == {53, 5353}


def test_slurmctld_itself_talks_to_the_clusters_pods_and_to_name_servers_only() -> None:
    policy = a_deployment().one("hpc-network-controller").inputs["spec"]
    to_pods, to_names = policy["egress"]
    assert {peer_of(peer) for peer in to_pods["to"]} == {"controller", "sessions", "worker"}
    found = {(port["protocol"], port["port"]) for port in to_names["ports"]}
    assert found == {(protocol, port) for protocol in ("TCP", "UDP") for port in (53, 5353)}


def outgoing(deployment: Deployment) -> dict[str, Any]:
    """Return the egress rules of the policies that have some, by the names of the policies."""
    policies = deployment.resources(":NetworkPolicy")
    limited = [policy.inputs for policy in policies if "Egress" in policy.inputs["spec"]["policyTypes"]]
    return {inputs["metadata"]["name"]: inputs["spec"]["egress"] for inputs in limited}


def test_nothing_leaves_the_pods_that_copy_an_image_or_switch_trees() -> None:
    found = outgoing(a_deployment())
    assert found.keys() == {"controller", "sessions", "worker", "admin", "jail-populate", "jail-switch"}
    assert found["jail-populate"] == found["jail-switch"] == []


def test_the_job_of_a_tarball_may_fetch_it() -> None:
    tarball = {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}
    assert outgoing(a_deployment(jail={"source": {"tarball": tarball}}))["jail-populate"] == [{}]


CLOSED = {"169.254.0.0/16", "168.63.129.16/32", "192.0.0.192/32", "100.100.100.200/32"}
LEFT = [(1, 2378), (2382, 6442), (6444, 10247), (10260, 65535)]


def test_jobs_and_sessions_reach_slurms_pods_name_servers_and_all_else_without_machines_ports() -> None:
    found = outgoing(a_deployment())
    assert found["worker"] == found["sessions"]

    among_ours, names, opened = found["sessions"]
    assert {peer_of(peer) for peer in among_ours["to"]} == {"controller", "sessions", "worker"}
    assert "ports" not in among_ours
    assert {(port["protocol"], port["port"]) for port in names["ports"]} >= {("TCP", 53), ("UDP", 53)}
    assert "to" not in names
    all_4, all_6, cluster = opened["to"]
    assert (all_4["ipBlock"]["cidr"], set(all_4["ipBlock"]["except"])) == ("0.0.0.0/0", {*CLOSED, *API_SERVERS})
    assert all_6["ipBlock"]["cidr"] == "::/0"
    assert {"fe80::/10", "fd00:ec2::/32"} <= set(all_6["ipBlock"]["except"])
    assert cluster == {"namespaceSelector": {}}
    *tcp, udp = opened["ports"]
    assert [(port["port"], port["endPort"]) for port in tcp] == LEFT
    assert udp == {"protocol": "UDP", "port": 1, "endPort": 65535}


def test_the_admin_shell_reaches_what_sessions_do_but_for_slurms_pods() -> None:
    found = outgoing(a_deployment())
    assert found["admin"] == found["sessions"][1:]


def test_egress_is_narrowed_to_what_the_spec_names() -> None:
    (_, _, opened) = outgoing(a_deployment(network={"egress": ["198.51.100.0/24"], "closed_ports": [22]}))["worker"]
    assert opened["to"] == [{"ipBlock": {"cidr": "198.51.100.0/24"}}]
    assert [(port["port"], port["endPort"]) for port in opened["ports"][:2]] == [(1, 21), (23, 65535)]


def test_without_any_egress_there_is_no_rule_which_would_allow_everything() -> None:
    found = outgoing(a_deployment(network={"egress": []}))
    assert [len(found[text]) for text in ("sessions", "worker", "admin")] == [2, 2, 1]


def test_without_closed_ports_no_range_of_ports_is_needed() -> None:
    assert "ports" not in outgoing(a_deployment(network={"closed_ports": []}))["worker"][2]


def test_the_policy_of_populate_is_changed_and_not_deleted_when_the_kind_of_source_changes() -> None:
    """Pulumi deletes last: one that forbids everything would be in force while the Job of the tarball waits."""
    tarball = {"url": "https://example.org/root.tar.zst", "sha256": "0" * 64}
    names = [
        {resource.name for resource in a_deployment(**described).resources(":NetworkPolicy")}
        for described in ({}, {"jail": {"source": {"tarball": tarball}}})
    ]

    assert names[0] == names[1]


def test_no_policy_is_registered_after_the_pods_that_it_protects() -> None:
    deployment = a_deployment()
    for resource in [*deployment.resources(":StatefulSet"), *deployment.resources(":Job")]:
        before = {waited.name for waited in deployment.waits_for(resource)}
        assert {policy.name for policy in deployment.resources(":NetworkPolicy")} <= before


def test_every_eviction_of_workers_and_the_controller_is_refused() -> None:
    budgets = {resource.name: resource.inputs["spec"] for resource in a_deployment().resources(":PodDisruptionBudget")}
    assert {name: spec["maxUnavailable"] for name, spec in budgets.items()} == {
        "hpc-controller-disruption": 0,
        "hpc-cpu-disruption": 0,
    }
    assert budgets["hpc-cpu-disruption"]["selector"]["matchLabels"]["soperator-pulumi/node-set"] == "cpu"


def test_a_preview_asks_for_ipv6_unless_slurm_uses_it() -> None:
    default, enabled = (
        deployment.one("hpc-prerequisites", "Prerequisites").inputs
        for deployment in (a_deployment(), a_deployment(network={"ipv6": True}))
    )
    assert "ipv6" not in default, "a state of an earlier version has none, and stays as it is"
    assert enabled["ipv6"] is True
