"""Other programs' firewalls let pods' packets through while the cluster runs."""

from typing import Any

from tools.kube import nftables
from tools.kube.settings import Settings

SETTINGS = Settings()


def chain(table: str, name: str, hook: str | None, policy: str = "accept", family: str = "ip") -> dict[str, Any]:
    at_a_hook = {"type": "filter", "hook": hook, "prio": 0, "policy": policy} if hook else {}
    return {"chain": {"family": family, "table": table, "name": name, "handle": 1, **at_a_hook}}


def rule(table: str, chain_name: str, *statements: dict[str, Any], family: str = "ip", **more: Any) -> dict[str, Any]:
    return {"rule": {"family": family, "table": table, "chain": chain_name, "handle": 7, "expr": statements, **more}}


def ours(match: str, interfaces: str = f"{SETTINGS.bridge}*") -> dict[str, Any]:
    comparison = {"op": "==", "left": {"meta": {"key": match}}, "right": interfaces}
    return rule("filter", "FORWARD", {"match": comparison}, {"accept": None}, comment=SETTINGS.name)


DOCKER = [chain("filter", "FORWARD", "forward", "drop"), chain("filter", "DOCKER-USER", None)]


def test_a_chain_that_drops_what_is_forwarded_lets_pods_through_in_both_directions() -> None:
    assert nftables.openings(DOCKER, SETTINGS) == [
        'insert rule ip filter FORWARD iifname "soperator0*" accept comment "soperator-pulumi"',
        'insert rule ip filter FORWARD oifname "soperator0*" accept comment "soperator-pulumi"',
    ]


def test_what_is_open_already_stays_as_it_is() -> None:
    assert nftables.openings([*DOCKER, ours("iifname"), ours("oifname")], SETTINGS) == []


def test_an_opening_for_the_bridge_alone_does_not_count_for_the_links_of_further_machines() -> None:
    alone = [ours("iifname", SETTINGS.bridge), ours("oifname", SETTINGS.bridge)]
    assert nftables.openings([*DOCKER, *alone], SETTINGS) == nftables.openings(DOCKER, SETTINGS)


def test_a_chain_that_ends_with_a_reject_closes_too() -> None:
    firewalld = [
        chain("firewalld", "filter_INPUT", "input", family="inet"),
        rule("firewalld", "filter_INPUT", {"reject": {"type": "icmpx"}}, family="inet"),
    ]
    assert nftables.openings(firewalld, SETTINGS) == [
        'insert rule inet firewalld filter_INPUT iifname "soperator0*" accept comment "soperator-pulumi"'
    ]


def test_chains_that_drop_nothing_and_chains_of_ours_are_left_alone() -> None:
    ruleset = [
        chain("filter", "FORWARD", "forward"),
        chain("filter", "OUTPUT", "output", "drop"),
        chain(f"{SETTINGS.table}_policy", "forward", "forward"),
        rule(f"{SETTINGS.table}_policy", "forward", {"drop": None}),
        chain("kube-proxy", "filter-forward", "forward"),
        rule("kube-proxy", "filter-forward", {"reject": None}),
    ]
    assert nftables.openings(ruleset, SETTINGS) == []


def test_only_our_own_rules_are_removed() -> None:
    ruleset = [*DOCKER, rule("filter", "FORWARD", {"accept": None}, comment="docker"), ours("iifname")]
    assert nftables.closings(ruleset, SETTINGS) == ["delete rule ip filter FORWARD handle 7"]
