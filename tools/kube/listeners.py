"""Listening sockets of this machine and their programs, from /proc."""

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_LISTEN = "0A"
_UNCONNECTED = "07"
"""State of a UDP socket that accepts packets from any sender."""

_TABLES: Mapping[str, str] = {"tcp": _LISTEN, "tcp6": _LISTEN, "udp": _UNCONNECTED, "udp6": _UNCONNECTED}


@dataclass(frozen=True)
class Listener:
    """A listening socket."""

    protocol: str
    """Protocol: tcp or udp."""

    address: IPv4Address | IPv6Address
    port: int
    inode: int

    def takes(self, address: str, port: int) -> bool:
        """Return True if the socket conflicts with a listener on `address` and `port`."""
        if self.port != port:
            return False
        wanted = ip_address(address)
        if self.address.is_unspecified:  # :: takes IPv4, too, by default
            return True
        mapped = self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None
        return wanted in {self.address, mapped}


def listeners(proc: Path = Path("/proc")) -> list[Listener]:
    """Return all listening TCP and UDP sockets of this network namespace."""
    found = []
    for table, state in _TABLES.items():
        file = proc / "net" / table
        if file.exists():
            found += list(parse(table, file.read_text(), state))
    return found


def parse(table: str, text: str, state: str) -> Iterator[Listener]:
    """Yield the sockets of `state` in the text of a /proc/net table."""
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == state:
            address, port = fields[1].split(":")
            yield Listener(table.removesuffix("6"), _address(address), int(port, 16), int(fields[9]))


def _address(text: str) -> IPv4Address | IPv6Address:
    """Decode an address as the kernel prints it: 32-bit words in the machine's byte order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return ip_address(packed)


def holders(inodes: Collection[int], proc: Path = Path("/proc")) -> dict[int, int]:
    """Return the processes of sockets, by the socket's inode."""
    names = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, int] = {}
    for folder in proc.glob("[0-9]*/fd"):
        try:
            for descriptor in folder.iterdir():
                inode = names.get(str(descriptor.readlink()))
                if inode is not None:
                    found[inode] = int(folder.parent.name)
        except OSError:  # the process has ended, or is not ours to inspect
            continue
    return found


def program(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the name by which users know a process."""
    try:
        return (proc / str(pid) / "comm").read_text().strip()
    except OSError:
        return "a program that has just ended"
