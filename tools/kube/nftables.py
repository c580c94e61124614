"""Packet rules of the kernel, set with nft: this project's tables, and openings for pods in other firewalls.

A packet passes only if no chain of any program drops it. Docker and ufw drop forwarded packets by default, and many
firewalls drop incoming ones: pods would not reach each other, the API server, the nameserver or the outside.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tools.kube.debs import tool
from tools.kube.settings import Settings

_HOOKS = {"forward": ("iifname", "oifname"), "input": ("iifname",)}
"""Firewall hooks that pods' packets pass, and the matches for these packets."""

_VERDICTS = ("drop", "reject")

Object = dict[str, Any]


@dataclass(frozen=True)
class Chain:
    """Chain of nftables, including those of `iptables`, but not of iptables-legacy."""

    family: str
    table: str
    name: str

    def __str__(self) -> str:
        """Return nft's name of the chain."""
        return f"{self.family} {self.table} {self.name}"


def own_tables(settings: Settings) -> list[tuple[str, str]]:
    """Return family and name of every table that this project or its servers make."""
    return [("ip", settings.table), ("ip", f"{settings.table}_policy"), ("ip", "kube-proxy"), ("ip6", "kube-proxy")]


def tables() -> set[tuple[str, str]]:
    """Return family and name of every table of this machine."""
    listed = json.loads(tool("nft").run("--json", "list", "tables"))["nftables"]
    return {(entry["table"]["family"], entry["table"]["name"]) for entry in listed if "table" in entry}


def ruleset() -> list[Object]:
    """Return all tables, chains and rules as nft's JSON has them."""
    listed: list[Object] = json.loads(tool("nft").run("--json", "list", "ruleset"))["nftables"]
    return listed


def apply(commands: Sequence[str], what: str) -> None:
    """Run commands in nft's language, all or none; `what` names the action in an error."""
    if commands:
        tool("nft").run("-f", "-", stdin="\n".join(commands) + "\n", what=what)


def openings(ruleset: list[Object], settings: Settings) -> list[str]:
    """Return the nft commands that let pods' packets through other programs' chains; none if they pass already."""
    ours = set(own_tables(settings))
    open_already = {(chain, match, interfaces) for chain, match, interfaces, _ in _own_rules(ruleset, settings)}
    pods_interfaces = f"{settings.bridge}*"
    commands = []
    for chain, hook, closes in _base_chains(ruleset):
        if closes and (chain.family, chain.table) not in ours:
            commands += [
                f'insert rule {chain} {match} "{pods_interfaces}" accept comment "{settings.name}"'
                for match in _HOOKS[hook]
                if (chain, match, pods_interfaces) not in open_already
            ]
    return commands


def closings(ruleset: list[Object], settings: Settings) -> list[str]:
    """Return the nft commands that remove the rules of `openings`."""
    return [f"delete rule {chain} handle {handle}" for chain, _, _, handle in _own_rules(ruleset, settings)]


def open_for_pods(settings: Settings) -> None:
    """Let pods' packets through other programs' chains."""
    apply(openings(ruleset(), settings), "letting pods through this machine's firewall")


def close_for_pods(settings: Settings) -> None:
    """Remove the rules of `open_for_pods`."""
    apply(closings(ruleset(), settings), "removing our rules from this machine's firewall")


def _base_chains(ruleset: list[Object]) -> Iterator[tuple[Chain, str, bool]]:
    """Yield the chains at the relevant hooks, the hook, and whether they drop anything."""
    for entry in ruleset:
        chain = entry.get("chain", {})
        if chain.get("hook") in _HOOKS and chain["family"] in {"ip", "inet"}:
            found = Chain(chain["family"], chain["table"], chain["name"])
            closes = chain.get("policy") == "drop" or any(
                verdict in statement
                for rule in _rules(ruleset, found)
                for statement in rule["expr"]
                for verdict in _VERDICTS
            )
            yield found, chain["hook"], closes


def _own_rules(ruleset: list[Object], settings: Settings) -> Iterator[tuple[Chain, str, str, int]]:
    """Yield chain, match, interfaces and handle of this project's rules in other programs' chains."""
    for entry in ruleset:
        rule = entry.get("rule", {})
        if rule.get("comment") == settings.name:
            match = next(statement["match"] for statement in rule["expr"] if "match" in statement)
            chain = Chain(rule["family"], rule["table"], rule["chain"])
            yield chain, match["left"]["meta"]["key"], match["right"], rule["handle"]


def _rules(ruleset: list[Object], chain: Chain) -> Iterator[Object]:
    for entry in ruleset:
        rule = entry.get("rule", {})
        if rule and Chain(rule["family"], rule["table"], rule["chain"]) == chain:
            yield rule
