"""Pods' network on this machine: bridge, NAT, and rules that block outside packets."""

import json
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from tools.console import UserError
from tools.kube import host_files, nftables
from tools.kube.debs import Tool, tool
from tools.kube.settings import Settings

DEFAULT_MTU = 1500
_INTERFACES = Path("/sys/class/net")


def table(settings: Settings, *, not_routed: Sequence[str] = ()) -> str:
    """Return the embedded cluster's nft table as a script that replaces it in one step.

    Packets of pods leave the machine under its own address. Outside packets reach neither pods nor the node's address,
    though the kernel would take them on any interface; those of the cluster's other machines come by interfaces whose
    names begin with the bridge's. Interfaces in `not_routed` get no packets from each other: a
    machine that did not forward before it had pods does not become a router.
    """
    name = f"ip {settings.table}"
    bridge = settings.bridge
    guard = ""
    if not_routed:
        listed = ", ".join(f'"{interface}"' for interface in not_routed)
        guard = f"""\
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname {{ {listed} }} oifname {{ {listed} }} counter drop
  }}
"""
    return f"""\
table {name} {{}}
delete table {name}
table {name} {{
  chain prerouting {{
    type filter hook prerouting priority raw; policy accept;
    iifname != "lo" iifname != "{bridge}*" ip daddr {{ {settings.pods}, {settings.services} }} counter drop
  }}
{guard}  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {settings.pods} ip daddr != {settings.pods} oifname != "{bridge}" masquerade
  }}
}}
"""


def is_up(settings: Settings) -> bool:
    """Return True if the bridge exists and belongs to this cluster."""
    return owner(settings) == str(settings.state)


def owner(settings: Settings) -> str | None:
    """Return the state folder of the bridge's cluster; None if there is no bridge, or no cluster owns it."""
    alias = _INTERFACES / settings.bridge / "ifalias"
    return (alias.read_text().strip() if alias.exists() else "") or None


def up(settings: Settings, *, routed_before: bool) -> None:
    """Create the bridge and the table, if missing or different."""
    ip = tool("ip")
    if not (_INTERFACES / settings.bridge).exists():
        ip.run("link", "add", settings.bridge, "type", "bridge")
    if not is_up(settings):
        ip.run("link", "set", settings.bridge, "alias", str(settings.state))
    if (_INTERFACES / settings.bridge / "address").read_text().strip() != hardware_address(settings):
        ip.run("link", "set", settings.bridge, "address", hardware_address(settings))
    shown = json.loads(ip.run("-json", "-4", "address", "show", "dev", settings.bridge))
    addresses = [address.get("local") for link in shown for address in link.get("addr_info", [])]
    if settings.address not in addresses or "UP" not in shown[0]["flags"]:
        ip.run("address", "replace", f"{settings.address}/{settings.node_pods.prefixlen}", "dev", settings.bridge)
        ip.run("link", "set", settings.bridge, "up")
    script = table(settings, not_routed=() if routed_before else hardware(settings))
    changed = host_files.write(settings.config / "network.nft", script)
    if changed or ("ip", settings.table) not in nftables.tables():
        nftables.apply([script], "making our nft table")

    if not settings.is_first:
        _use_uplink(settings)


def connect(settings: Settings, pid: int) -> None:
    """Connect the first machine to a further one, whose network namespace the process `pid` holds."""
    if (_INTERFACES / settings.loose_end).exists():
        disconnect(settings)
    if not (_INTERFACES / settings.link).exists():
        size = ("mtu", str(mtu()))
        there = ("peer", "name", settings.uplink, *size, "netns", str(pid))
        tool("ip").run("link", "add", settings.link, *size, "type", "veth", *there)
    route_to(settings)


def unplug(settings: Settings) -> None:
    """Leave packets from the first machine to a further one unanswered, as after a power loss.

    Without a route to it, senders would learn of its end at once, or packets would leave this machine. The route leads
    into a pair of interfaces whose other end is down.
    """
    disconnect(settings)
    ip = tool("ip")
    ip.run("link", "add", settings.link, "type", "veth", "peer", "name", settings.loose_end)
    ip.run("link", "set", settings.link, "arp", "off")
    route_to(settings)


def disconnect(settings: Settings) -> bool:
    """Remove the connection to a further machine; return True if there was one."""
    if not (_INTERFACES / settings.link).exists():
        return False
    _delete_link(tool("ip"), settings.link)
    return True


def route_to(settings: Settings) -> None:
    """Route packets from the first machine to a further one, and to its pods, by their link."""
    ip = tool("ip")
    ip.run("link", "set", settings.link, "up")
    where = ("via", settings.address, "dev", settings.link, "onlink", "src", settings.first_address)
    ip.run("route", "replace", str(settings.node_pods), *where)


def _use_uplink(settings: Settings) -> None:
    """Route all packets that are not for this machine to the first one."""
    ip = tool("ip")
    for link in ("lo", settings.uplink):
        ip.run("link", "set", link, "up")
    where = ("via", settings.first_address, "dev", settings.uplink, "onlink", "src", settings.address)
    ip.run("route", "replace", "default", *where)


def hardware_address(settings: Settings) -> str:
    """Return the bridge's hardware address, which is locally administered.

    A bridge without its own address uses the lowest one of its ports. Whenever pods came or went, the other pods would
    send to the former address, and lose their gateway for up to a minute.
    """
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x42, *ip_address(settings.address).packed))


def down(settings: Settings) -> list[str]:
    """Remove the bridge, its ports and this project's nft tables, unless they are another cluster's, and say so."""
    removed: list[str] = []
    if owner(settings) not in {None, str(settings.state)}:
        return removed
    if (_INTERFACES / settings.bridge).exists():
        ip = tool("ip")
        ports = [path.name for path in (_INTERFACES / settings.bridge / "brif").iterdir()]
        for link in [*ports, settings.bridge]:
            _delete_link(ip, link)
        removed.append(f"bridge {settings.bridge} and {len(ports)} links of pods")
    present = nftables.tables()
    ours = [f"table {family} {name}" for family, name in nftables.own_tables(settings) if (family, name) in present]
    nftables.apply([f"delete {table}" for table in ours], "removing our nft tables")
    return removed + [f"nft {table}" for table in ours]


def _delete_link(ip: Tool, link: str) -> None:
    """Delete an interface, unless the kernel already has: one end of a pod's pair disappears with the pod's network."""
    try:
        ip.run("link", "delete", link)
    except UserError:
        if (_INTERFACES / link).exists():
            raise


def mtu() -> int:
    """Return the MTU of the default route's interface, as larger packets of pods would be dropped."""
    for route in json.loads(tool("ip").run("-json", "-4", "route", "show", "default") or "[]"):
        return int((_INTERFACES / route["dev"] / "mtu").read_text())
    return DEFAULT_MTU


def hardware(settings: Settings, interfaces: Path = _INTERFACES) -> list[str]:
    """Return the machine's own interfaces, without bridges, tunnels and the like, and without the cluster's own.

    In the lab, links to further machines are hardware.
    """
    return sorted(
        path.name
        for path in interfaces.iterdir()
        if (path / "device").exists() and not path.name.startswith(settings.bridge)
    )
