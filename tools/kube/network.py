"""The pods' network on this machine: bridge, forwarding and NAT."""

import json
from pathlib import Path

from tools.kube.debs import tool
from tools.kube.settings import Settings

DEFAULT_MTU = 1500


def table(settings: Settings) -> str:
    """Return our nft table as a script that replaces it in one step: pods leave the machine under its own address."""
    name = f"ip {settings.table}_nat"
    return f"""\
table {name} {{}}
delete table {name}
table {name} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {settings.pods} ip daddr != {settings.pods} oifname != "{settings.bridge}" masquerade
  }}
}}
"""


def tables(settings: Settings) -> list[tuple[str, str]]:
    """Return family and name of every nft table that we or our servers make."""
    return [
        ("ip", f"{settings.table}_nat"),
        ("ip", f"{settings.table}_policy"),
        ("ip", "kube-proxy"),
        ("ip6", "kube-proxy"),
    ]


def up(settings: Settings) -> None:
    """Make the bridge with the node's address, and the NAT; what is there already is left."""
    ip = tool("ip")
    if not (Path("/sys/class/net") / settings.bridge).exists():
        ip.run("link", "add", settings.bridge, "type", "bridge")
    ip.run("address", "replace", f"{settings.address}/{settings.node_pods.prefixlen}", "dev", settings.bridge)
    ip.run("link", "set", settings.bridge, "up")
    tool("nft").run("-f", "-", stdin=table(settings), what="making the NAT table")


def is_up(settings: Settings) -> bool:
    """Tell whether the bridge is there and up with its address."""
    flags = Path("/sys/class/net") / settings.bridge / "flags"
    return flags.exists() and bool(int(flags.read_text(), 16) & 1)


def down(settings: Settings) -> list[str]:
    """Remove bridge, its ports and our nft tables; return what was removed."""
    removed = []
    ip = tool("ip")
    if (Path("/sys/class/net") / settings.bridge).exists():
        ports = json.loads(ip.run("-json", "link", "show", "master", settings.bridge) or "[]")
        for port in ports:
            ip.run("link", "delete", port["ifname"])
        ip.run("link", "delete", settings.bridge)
        removed.append(f"bridge {settings.bridge} with {len(ports)} ports")
    nft = tool("nft")
    present = {
        (entry["table"]["family"], entry["table"]["name"])
        for entry in json.loads(nft.run("--json", "list", "tables"))["nftables"]
        if "table" in entry
    }
    for family, name in tables(settings):
        if (family, name) in present:
            nft.run("delete", "table", family, name)
            removed.append(f"nft table {family} {name}")
    return removed


def mtu() -> int:
    """Return the MTU of the interface with the default route: larger packets of pods would not get out."""
    routes = json.loads(tool("ip").run("-json", "-4", "route", "show", "default") or "[]")
    for route in routes:
        return int((Path("/sys/class/net") / route["dev"] / "mtu").read_text())
    return DEFAULT_MTU
