"""The kernel's packet rules, through the nft program."""

import json
from collections.abc import Sequence
from typing import Any

from tools.kube.debs import tool


def tables() -> set[tuple[str, str]]:
    """Return family and name of every table."""
    listed = json.loads(tool("nft").run("--json", "list", "tables"))["nftables"]
    return {(entry["table"]["family"], entry["table"]["name"]) for entry in listed if "table" in entry}


def ruleset() -> list[dict[str, Any]]:
    """Return all tables, chains and rules as nft's JSON has them."""
    listed: list[dict[str, Any]] = json.loads(tool("nft").run("--json", "list", "ruleset"))["nftables"]
    return listed


def apply(commands: Sequence[str], what: str) -> None:
    """Run commands of nft's language, all of them or none; `what` says in an error what was being done."""
    if commands:
        tool("nft").run("-f", "-", stdin="\n".join(commands) + "\n", what=what)
