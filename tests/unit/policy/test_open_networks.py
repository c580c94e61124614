"""Policies on networks: addresses that are admitted, and that are reached."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView, exposure
from soperator_pulumi.policy.address_space import Network, is_everything
from soperator_pulumi.policy.exposure import JOINT_INGRESS, OPEN_EGRESS, PUBLIC_LOGINS, USER_NAMESPACES
from soperator_pulumi.policy.object_relations import selects
from soperator_pulumi.policy.protection import DISRUPTION_BUDGETS, NETWORK_POLICIES
from soperator_pulumi.policy.public_routes import ENCRYPTED_REST
from tests.unit.policy.views import a_pod, a_resource_of_ours, an_object, as_stateful_set, below, paths

ELB = "kubernetes.io/elb.autocreate"
UPCLOUD = "service.beta.kubernetes.io/upcloud-load-balancer-config"
PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]


def network_policy(**spec: Any) -> ResourceView:
    return an_object("networking.k8s.io/v1:NetworkPolicy", {"metadata": {"namespace": "shop"}, "spec": spec})


def block(cidr: Any, *closed: Any) -> dict[str, Any]:
    return {"ipBlock": {"cidr": cidr, "except": [*closed]}}


def balancer(ranges: Any) -> ResourceView:
    return an_object("core/v1:Service", {"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ranges}})


@pytest.mark.parametrize(
    ("ranges", "path"),
    [
        (None, ["spec.loadBalancerSourceRanges"]),
        ([], ["spec.loadBalancerSourceRanges"]),
        (["10.0.0.0/8", "0.0.0.0/0"], ["spec.loadBalancerSourceRanges[1]"]),
        (["::/0"], ["spec.loadBalancerSourceRanges[0]"]),
        (["0.0.0.0/1"], ["spec.loadBalancerSourceRanges[0]"]),
        (["0.0.0.0/2", "64.0.0.0/3", "128.0.0.0/3"], ["spec.loadBalancerSourceRanges"]),
        (["2000::/4", "3000::/4"], ["spec.loadBalancerSourceRanges[0]", "spec.loadBalancerSourceRanges[1]"]),
        (["10.0.0.0/8"], []),
        (UNKNOWN, []),
    ],
)
def test_a_load_balancer_admits_named_addresses(ranges: object, path: list[str]) -> None:
    assert paths(PUBLIC_LOGINS, balancer(ranges)) == path
    unknown = ["spec.loadBalancerSourceRanges"] if ranges is UNKNOWN else []
    assert paths(PUBLIC_LOGINS, balancer(ranges), unknown=True) == unknown


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({}, ["spec.ingress[0].from"]),
        ({"from": [{"podSelector": {}}, block("0.0.0.0/0")]}, ["spec.ingress[0].from[1].ipBlock.cidr"]),
        ({"from": [block("0.0.0.0/2"), block("128.0.0.0/2")]}, ["spec.ingress"]),
        ({"from": [block("10.0.0.0/8")]}, []),
        (UNKNOWN, []),
    ],
)
def test_a_network_policy_admits_named_addresses(rule: object, path: list[str]) -> None:
    assert paths(PUBLIC_LOGINS, network_policy(ingress=[rule])) == path


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({}, ["spec.egress[0].to"]),
        ({"ports": [{"port": 443}]}, ["spec.egress[0].to"]),
        ({"ports": [{"port": 53}, {"port": 5353}]}, []),
        ({"ports": [{"port": 53, "endPort": 65535}]}, ["spec.egress[0].to"]),
        ({"to": [block("0.0.0.0/0")]}, ["spec.egress[0].to[0].ipBlock"]),
        ({"to": [block("0.0.0.0/0", *PRIVATE[:-1])]}, ["spec.egress[0].to[0].ipBlock"]),
        ({"to": [block("0.0.0.0/0", *PRIVATE)]}, []),
        ({"to": [block("128.0.0.0/2", "169.254.0.0/16"), block("0.0.0.0/2")]}, ["spec.egress"]),
        ({"to": [block("0.0.0.0/0", *PRIVATE), *map(block, PRIVATE[:-1])]}, ["spec.egress"]),
        ({"to": [block("0.0.0.0/0", *PRIVATE), block("10.0.0.0/8")]}, ["spec.egress"]),
        ({"to": [block("0.0.0.0/0", *PRIVATE), block("10.20.0.0/16")]}, []),
        ({"to": [block("::/0", "fc00::/7", "fe80::/10")]}, []),
        ({"to": [block("::/0", "fe80::/10")]}, ["spec.egress[0].to[0].ipBlock"]),
        ({"to": [block("10.20.0.0/16")]}, []),
        ({"to": [block("169.254.169.254/32")]}, ["spec.egress[0].to[0].ipBlock"]),
        ({"to": [block("160.0.0.0/4", "169.254.0.0/16")]}, []),
        ({"to": [{"namespaceSelector": {}}]}, []),
        ({"to": [block(UNKNOWN)]}, []),
        ({"to": [block("no address")]}, []),
    ],
)
def test_egress_reaches_named_addresses(rule: dict[str, Any], path: list[str]) -> None:
    assert paths(OPEN_EGRESS, network_policy(egress=[rule])) == path


def accounting(*ports: Any) -> ResourceView:
    """The NetworkPolicy of slurmdbd, whose database is at any address."""
    spec = {
        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "accounting"}},
        "egress": [{"ports": [*ports]}],
    }
    return below("SlurmCluster", replace(network_policy(**spec), name="hpc-network-accounting"))


def test_slurmdbd_reaches_a_database_elsewhere_by_one_port() -> None:
    assert paths(OPEN_EGRESS, accounting({"port": 3306})) == []
    assert paths(OPEN_EGRESS, replace(accounting({"port": 3306}), name="other")) == ["spec.egress[0].to"]
    more: list[list[Any]] = [[], [{}], [{"port": 3306, "endPort": 65535}], [{"port": 3306}, {"port": 443}]]
    for ports in more:
        assert paths(OPEN_EGRESS, accounting(*ports)) == ["spec.egress[0].to"]


def test_network_policies_of_the_same_pods_open_their_ranges_together() -> None:
    internet, private = {"to": [block("0.0.0.0/0", *PRIVATE)]}, {"to": [block("10.0.0.0/8")]}
    web, other = {"podSelector": {"matchLabels": {"app": "web"}}}, {"podSelector": {"matchLabels": {"app": "other"}}}
    one = network_policy(**web, egress=[internet])
    assert paths(OPEN_EGRESS, one, network_policy(**web, egress=[private])) == ["spec.egress", "spec.egress"]
    assert paths(OPEN_EGRESS, one, network_policy(podSelector={}, egress=[private])) == ["spec.egress"]
    assert paths(OPEN_EGRESS, one, network_policy(**other, egress=[private])) == []
    everything = network_policy(**web, egress=[{"to": [block("0.0.0.0/0")]}])
    assert paths(OPEN_EGRESS, one, everything) == ["spec.egress[0].to[0].ipBlock"], "what is open anyway is named once"


def test_network_policies_of_different_labels_add_up_for_a_pod_with_both() -> None:
    by_app, by_tier = ({"podSelector": {"matchLabels": labels}} for labels in ({"app": "a"}, {"tier": "b"}))
    out = [network_policy(**by_app, egress=[{"to": [block("0.0.0.0/0", *PRIVATE)]}])]
    out.append(network_policy(**by_tier, egress=[{"to": [block("10.0.0.0/8")]}]))
    sources = [network_policy(**by_app, ingress=[{"from": [block("0.0.0.0/2")]}])]
    sources.append(network_policy(**by_tier, ingress=[{"from": [block("64.0.0.0/2")]}]))
    both, one = a_pod({"name": "a"}, labels={"app": "a", "tier": "b"}), a_pod({"name": "a"}, labels={"app": "a"})
    elsewhere = replace(both, props={**both.props, "metadata": {**both.props["metadata"], "namespace": "other"}})

    assert paths(OPEN_EGRESS, *out, both) == ["spec.egress", "spec.egress"]
    assert paths(JOINT_INGRESS, *sources, as_stateful_set(both)) == ["spec.ingress", "spec.ingress"]
    assert paths(OPEN_EGRESS, *out, one, elsewhere) == []
    assert paths(JOINT_INGRESS, *sources, one, elsewhere) == []


def test_network_policies_of_the_same_pods_are_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def is_counted(networks: Sequence[Network]) -> bool:
        judged.append(len(networks))
        return is_everything(networks)

    monkeypatch.setattr(exposure, "is_everything", is_counted)
    out = [network_policy(podSelector={}, egress=[{"to": [block(f"10.{index}.0.0/16")]}]) for index in range(20)]
    pods = [a_pod({"name": "a"}, labels={"app": str(index)}) for index in range(20)]

    assert paths(OPEN_EGRESS, *out, *pods) == []
    assert judged.count(20) == 1


@pytest.mark.parametrize("selector", [UNKNOWN, {"matchLabels": UNKNOWN}])
def test_a_network_policy_that_may_select_the_same_pods_is_named_in_a_preview(selector: Any) -> None:
    known = network_policy(podSelector={"matchLabels": {"app": "a"}}, ingress=[{"from": [block("0.0.0.0/2")]}])
    unknown = network_policy(podSelector=selector, ingress=[{"from": [block("64.0.0.0/2")]}])
    harmless = network_policy(podSelector=selector, ingress=[{"from": [block("10.0.0.0/8")]}])

    assert paths(JOINT_INGRESS, known, unknown) == []
    assert paths(JOINT_INGRESS, known, unknown, unknown=True) == ["spec.podSelector"]
    assert paths(JOINT_INGRESS, known, harmless, unknown=True) == []


@pytest.mark.parametrize(
    ("peer", "admits_all"),
    [
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {}}, "podSelector": {}}, True),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}},
            True,
        ),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
        ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "prometheus"}}}, False),
        ({"podSelector": {}}, False),
        ({"namespaceSelector": UNKNOWN}, False),
    ],
)
def test_a_network_policy_admits_named_namespaces(peer: dict[str, Any], admits_all: bool) -> None:
    found = paths(PUBLIC_LOGINS, network_policy(ingress=[{"from": [peer]}]))
    assert found == (["spec.ingress[0].from[0].namespaceSelector"] if admits_all else [])


@pytest.mark.parametrize(
    ("annotations", "internal"),
    [
        ({"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"}, True),
        ({"networking.gke.io/load-balancer-type": "Internal"}, True),
        ({"service.beta.kubernetes.io/azure-load-balancer-internal": "false"}, False),
        ({"service.beta.kubernetes.io/aws-load-balancer-internal": "0.0.0.0/0"}, True),
        ({"load-balancer.hetzner.cloud/disable-public-network": "true"}, True),
        ({"load-balancer.hetzner.cloud/use-private-ip": "true"}, False),
        ({"service.beta.kubernetes.io/do-loadbalancer-network": "INTERNAL"}, True),
        ({"service.beta.kubernetes.io/do-loadbalancer-network": "EXTERNAL"}, False),
        ({"service.beta.kubernetes.io/scw-loadbalancer-private": "true"}, True),
        ({"service.beta.kubernetes.io/cce-load-balancer-internal-vpc": "true"}, True),
        ({"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid": "subnet-abc"}, True),
        ({"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid": ""}, False),
        ({"yandex.cloud/load-balancer-type": "internal"}, True),
        ({"oci-network-load-balancer.oraclecloud.com/internal": "true"}, False),
        (
            {
                "oci.oraclecloud.com/load-balancer-type": "nlb",
                "oci-network-load-balancer.oraclecloud.com/internal": "true",
            },
            True,
        ),
        (
            {
                "service.beta.kubernetes.io/aws-load-balancer-internal": "true",
                "service.beta.kubernetes.io/aws-load-balancer-scheme": "internet-facing",
            },
            False,
        ),
        ({ELB: '{"type":"inner","name":"login"}'}, True),
        ({ELB: '{\n  "name": "login",\n  "type": "Inner"\n}\n'}, True),
        ({ELB: '{"type":"public","name":"inner","eip_type":"5_bgp"}'}, False),
        ({ELB: '{"name":"inner"}'}, False),
        ({ELB: '[{"type":"inner"},{"type":"public"}]'}, False),
        ({ELB: "type: inner"}, False),
        ({ELB: "[" * 100_000}, False),
        ({ELB: UNKNOWN}, False),
        ({ELB: '{"type":"inner"}', "kubernetes.io/elb.id": "5083f225"}, False),
        ({ELB: '{"type":"inner"}', "kubernetes.io/elb.class": "union"}, True),
        ({"kubernetes.io/elb.class": "union"}, False),
        ({UPCLOUD: '{"networks":[{"name":"a","type":"private","family":"IPv4"}]}'}, True),
        ({UPCLOUD: '{"networks":[{"type":"private"},{"type":"private"}],"frontends":[]}'}, True),
        ({UPCLOUD: '{"networks":[{"type":"private"},{"type":"public"}]}'}, False),
        ({UPCLOUD: '{"networks":[{"type":"private"},{}]}'}, False),
        ({UPCLOUD: '{"networks":[]}'}, False),
        ({UPCLOUD: '{"frontends":[{"name":"private","mode":"tcp"}]}'}, False),
        ({"lb.stackit.cloud/internal-lb": "true"}, True),
        ({"lb.stackit.cloud/internal-lb": "false"}, False),
        ({"service.beta.kubernetes.io/volcengine-loadbalancer-address-type": "PRIVATE"}, True),
        ({"service.beta.kubernetes.io/volcengine-loadbalancer-address-type": "PUBLIC"}, False),
        ({"service.beta.kubernetes.io/alicloud-loadbalancer-address-type": "intranet"}, True),
    ],
)
def test_a_load_balancer_inside_a_network_needs_no_ranges(annotations: dict[str, str], internal: bool) -> None:
    props = {**balancer(None).props, "metadata": {"annotations": annotations}}
    found = paths(PUBLIC_LOGINS, an_object("core/v1:Service", props))
    assert found == ([] if internal else ["spec.loadBalancerSourceRanges"])


@pytest.mark.parametrize(("class_", "found"), [("tailscale", []), ("other", ["spec.loadBalancerSourceRanges"])])
def test_a_load_balancer_of_a_private_network_needs_no_ranges(class_: str, found: list[str]) -> None:
    service = an_object("core/v1:Service", {"spec": {**balancer(None).props["spec"], "loadBalancerClass": class_}})
    assert paths(PUBLIC_LOGINS, service) == found


@pytest.mark.parametrize(
    ("cidr", "opens"),
    [
        ("fd00:ec2::254/128", True),
        ("fd20:ce::254/128", True),
        ("100.100.100.200/32", True),
        ("100.64.0.0/10", False),
        ("fd12:3456::/48", False),
    ],
)
def test_a_metadata_service_that_a_rule_names_is_opened_and_one_in_a_private_range_is_not(
    cidr: str, opens: bool
) -> None:
    rule = {"to": [{"ipBlock": {"cidr": cidr}}]}
    found = paths(OPEN_EGRESS, network_policy(egress=[rule]))
    assert found == (["spec.egress[0].to[0].ipBlock"] if opens else [])


def test_a_range_in_an_annotation_is_one() -> None:
    key = "service.beta.kubernetes.io/load-balancer-source-ranges"
    for ranges, found in (
        ("10.0.0.0/8, 10.9.0.0/16", []),
        ("10.0.0.0/8,0.0.0.0/0", [f'metadata.annotations["{key}"]']),
    ):
        props = {"metadata": {"annotations": {key: ranges}}, "spec": {"type": "LoadBalancer"}}
        assert paths(PUBLIC_LOGINS, an_object("core/v1:Service", props)) == found


def test_a_service_with_external_addresses_admits_every_address() -> None:
    service = an_object("core/v1:Service", {"spec": {"type": "NodePort", "externalIPs": ["203.0.113.1"]}})
    assert paths(PUBLIC_LOGINS, service) == ["spec.externalIPs"]


def test_a_patch_of_a_network_is_judged_and_protects_nothing() -> None:
    spec: dict[str, Any] = {"ingress": [{}], "egress": [{}]}
    patch = an_object("networking.k8s.io/v1:NetworkPolicyPatch", {"metadata": {"namespace": "shop"}, "spec": spec})
    assert paths(PUBLIC_LOGINS, patch) == ["spec.ingress[0].from"]
    assert paths(OPEN_EGRESS, patch) == ["spec.egress[0].to"]
    assert paths(NETWORK_POLICIES, a_pod({"name": "a"}), patch) == ["spec", "spec"]
    balancer_patch = an_object("core/v1:ServicePatch", {"spec": {"type": "LoadBalancer"}})
    assert paths(PUBLIC_LOGINS, balancer_patch) == ["spec.loadBalancerSourceRanges"]


def test_a_service_and_a_network_policy_that_a_preview_does_not_know_are_named() -> None:
    unknown = an_object("networking.k8s.io/v1:NetworkPolicy", {"spec": UNKNOWN})
    assert paths(PUBLIC_LOGINS, unknown, unknown=True) == ["spec.ingress"]
    assert paths(OPEN_EGRESS, unknown, unknown=True) == ["spec.egress"]
    assert paths(PUBLIC_LOGINS, network_policy(ingress=[{"from": [block(UNKNOWN)]}]), unknown=True) == [
        "spec.ingress[0].from[0].ipBlock.cidr"
    ]
    service = an_object("core/v1:Service", {"spec": {"type": UNKNOWN}})
    assert paths(PUBLIC_LOGINS, service, unknown=True) == ["spec.type"]


WORKER = {"app.kubernetes.io/part-of": "soperator-pulumi", "app.kubernetes.io/component": "worker"}


def workers(replicas: int) -> ResourceView:
    """The StatefulSet of a node set."""
    whole = as_stateful_set(a_pod({"name": "a"}, labels=WORKER))
    metadata = {"name": "cpu", "namespace": "shop"}
    return below(
        "NodeSet", replace(whole, props={"metadata": metadata, "spec": {**whole.props["spec"], "replicas": replicas}})
    )


@pytest.mark.parametrize(
    ("spec", "keeps"),
    [
        ({"maxUnavailable": 0, "selector": {"matchLabels": WORKER}}, True),
        ({"maxUnavailable": 0, "selector": {}}, True),
        ({"maxUnavailable": 0}, False),
        ({"maxUnavailable": "100%", "selector": {}}, False),
        ({"minAvailable": 0.0, "selector": {}}, False),
        ({"minAvailable": "00%", "selector": {}}, False),
        ({"maxUnavailable": 3, "selector": {}}, True),
        ({"maxUnavailable": 4.0, "selector": {}}, False),
        ({"maxUnavailable": 500, "selector": {}}, False),
        ({"maxUnavailable": "75%", "selector": {}}, True),
        ({"maxUnavailable": "76%", "selector": {}}, False),
    ],
)
def test_a_budget_selects_the_pods_of_workers_and_keeps_one(spec: dict[str, Any], keeps: bool) -> None:
    budget = an_object("policy/v1:PodDisruptionBudget", {"metadata": {"namespace": "shop"}, "spec": spec})
    assert paths(DISRUPTION_BUDGETS, workers(4), budget) == ([] if keeps else ["spec.template.spec"])


def test_a_patch_that_has_a_budget_select_other_pods_takes_it_from_ours() -> None:
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": WORKER}}
    metadata = {"name": "cpu", "namespace": "shop"}
    budget = an_object("policy/v1:PodDisruptionBudget", {"metadata": metadata, "spec": spec})
    other = {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    assert paths(DISRUPTION_BUDGETS, workers(4), budget) == []
    patched = [budget, an_object("policy/v1:PodDisruptionBudgetPatch", other)]
    assert paths(DISRUPTION_BUDGETS, workers(4), *patched) == ["spec.template.spec"]


def test_a_patch_that_relabels_pods_takes_them_from_their_budget() -> None:
    budget = {"metadata": {"namespace": "shop"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": WORKER}}}
    relabelled = {"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/component": "web"}}}}}
    patch = an_object("apps/v1:StatefulSetPatch", {"metadata": {"name": "cpu", "namespace": "shop"}, **relabelled})
    pods = [workers(4), an_object("policy/v1:PodDisruptionBudget", budget)]
    assert paths(DISRUPTION_BUDGETS, *pods, patch) == ["spec.template.spec"]


def test_a_patch_of_a_budget_leaves_a_pod() -> None:
    patch = "policy/v1:PodDisruptionBudgetPatch"
    assert paths(DISRUPTION_BUDGETS, an_object(patch, {"spec": {"maxUnavailable": "100%"}})) == ["spec"]
    assert paths(DISRUPTION_BUDGETS, an_object(patch, {"spec": {"maxUnavailable": 1}})) == []


def test_addresses_that_a_preview_does_not_know_are_named() -> None:
    unknown = network_policy(egress=[UNKNOWN, {"to": [block("0.0.0.0/0", UNKNOWN)]}])
    assert paths(OPEN_EGRESS, unknown, unknown=True) == ["spec.egress[0]"], "one finding for all rules"


@pytest.mark.parametrize(
    ("text", "violates"),
    [
        ("required spank.so jail=/jail user_namespaces\n", True),
        ("# user_namespaces\nrequired spank.so jail=/jail\n", False),
    ],
)
def test_user_namespaces_are_a_word_of_plugstack_conf(text: str, violates: bool) -> None:
    files = {"plugstack.conf": text, "slurm.conf": "user_namespaces"}
    found = paths(USER_NAMESPACES, a_resource_of_ours("ConfigFiles", files=files))
    assert found == (['files["plugstack.conf"]'] if violates else [])


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        ({}, {"a": "1"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": UNKNOWN}}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {"a": "1"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Odd"}]}, {"a": "1"}, False),
        (UNKNOWN, {}, True),
        ({"matchLabels": {"a": "1"}}, UNKNOWN, True),
    ],
)
def test_a_selector_selects_as_in_kubernetes(selector: Any, labels: Any, selected: bool) -> None:
    assert selects(selector, labels) is selected


def test_a_patch_that_has_a_network_policy_select_other_pods_leaves_ours_open() -> None:
    metadata = {"name": "web", "namespace": "shop"}
    directions = {"policyTypes": ["Ingress", "Egress"]}
    whole = an_object(
        "networking.k8s.io/v1:NetworkPolicy",
        {"metadata": metadata, "spec": {"podSelector": {"matchLabels": {"app": "a"}}, **directions}},
    )
    pod = a_pod({"name": "a"}, labels={"app": "a"})

    def patch(**spec: Any) -> ResourceView:
        return an_object("networking.k8s.io/v1:NetworkPolicyPatch", {"metadata": metadata, "spec": spec})

    assert paths(NETWORK_POLICIES, pod, whole) == []
    assert paths(NETWORK_POLICIES, pod, whole, patch(podSelector={"matchLabels": {"app": "b"}})) == ["spec", "spec"]
    assert paths(NETWORK_POLICIES, pod, whole, patch(policyTypes=["Ingress"])) == ["spec"]
    assert paths(NETWORK_POLICIES, pod, whole, patch(podSelector={"matchExpressions": []})) == [], "all pods"


def test_a_network_policy_protects_the_pods_of_its_namespace_in_its_directions() -> None:
    pod = a_pod({"name": "a"}, labels={"app": "a"})
    selector = {"podSelector": {"matchLabels": {"app": "a"}}}
    both = network_policy(**selector, policyTypes=["Ingress", "Egress"])
    ingress = network_policy(**selector)
    egress = network_policy(**selector, egress=[{"to": [block("10.0.0.0/8")]}])
    elsewhere = an_object(both.type.removeprefix("kubernetes:"), {**both.props, "metadata": {"namespace": "other"}})
    not_known = an_object(both.type.removeprefix("kubernetes:"), {**both.props, "metadata": {"namespace": UNKNOWN}})

    assert paths(NETWORK_POLICIES, pod) == ["spec", "spec"]
    assert paths(NETWORK_POLICIES, pod, both) == []
    assert paths(NETWORK_POLICIES, pod, ingress) == ["spec"]
    assert paths(NETWORK_POLICIES, pod, egress) == [], "with rules for egress, it is about egress"
    assert paths(NETWORK_POLICIES, pod, elsewhere) == ["spec", "spec"]
    assert paths(NETWORK_POLICIES, pod, not_known) == []
    assert paths(NETWORK_POLICIES, pod, ingress, directions=["Ingress"]) == []
    assert paths(NETWORK_POLICIES, a_pod({"name": "a"}, labels=UNKNOWN), both, unknown=True) == ["spec.metadata.labels"]


@pytest.mark.parametrize(
    ("ranges", "annotations"),
    [
        (None, {"example.com/load-balancer-source-ranges": "10.0.0.0/8"}),
        (["everybody"], {}),
        (None, {"service.beta.kubernetes.io/load-balancer-source-ranges": ""}),
    ],
)
def test_what_no_load_balancer_takes_for_a_range_is_none(ranges: Any, annotations: dict[str, str]) -> None:
    props = {**balancer(ranges).props, "metadata": {"annotations": annotations}}
    assert paths(PUBLIC_LOGINS, an_object("core/v1:Service", props)) == ["spec.loadBalancerSourceRanges"]


@pytest.mark.parametrize("ranges", [["0.0.0.0/0"], []])
def test_a_patch_that_opens_the_ranges_of_a_load_balancer_is_judged(ranges: list[str]) -> None:
    spec = {"loadBalancerSourceRanges": ranges}
    (found,) = paths(PUBLIC_LOGINS, an_object("core/v1:ServicePatch", {"spec": spec}))
    assert found.startswith("spec.loadBalancerSourceRanges")


def test_a_patch_without_ranges_leaves_them_as_they_are() -> None:
    assert paths(PUBLIC_LOGINS, an_object("core/v1:ServicePatch", {"spec": {"externalName": "a"}})) == []


def test_many_holes_are_counted_in_linear_time() -> None:
    """With one part after another taken out, they took minutes."""
    holes = [f"{first}.{second}.{third}.0/25" for first in (20, 21) for second in range(256) for third in range(16)]
    (found,) = paths(OPEN_EGRESS, network_policy(egress=[{"to": [block("0.0.0.0/0", *holes)]}]))
    assert found == "spec.egress[0].to[0].ipBlock"


def test_a_hole_may_be_wider_than_a_private_range_or_in_parts() -> None:
    holes = ["10.0.0.0/9", "10.128.0.0/9", "100.64.0.0/10", "172.0.0.0/8", "192.168.0.0/16", "169.254.0.0/15"]
    assert paths(OPEN_EGRESS, network_policy(egress=[{"to": [block("0.0.0.0/0", *holes)]}])) == []
    (found,) = paths(OPEN_EGRESS, network_policy(egress=[{"to": [block("0.0.0.0/0", *holes[1:])]}]))
    assert found == "spec.egress[0].to[0].ipBlock"


def test_volumes_of_the_rest_api_that_a_preview_does_not_know_are_named() -> None:
    where = "spec.template.spec.volumes"
    props = {"spec": {"template": {"spec": {"volumes": UNKNOWN}}}}
    rest = below("RestApi", an_object("apps/v1:StatefulSet", props, "hpc-rest"))
    assert paths(ENCRYPTED_REST, rest) == []
    assert paths(ENCRYPTED_REST, rest, unknown=True) == [where]
