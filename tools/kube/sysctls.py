"""Kernel settings that a Kubernetes node changes, recorded before and restored at the end."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tools.console import UserError
from tools.kube import host_files

ROOT = Path("/proc/sys")

FORWARDING = "net/ipv4/ip_forward"
BRIDGE_CALLS = "net/bridge/bridge-nf-call-iptables"

NEEDED: Mapping[str, str] = {
    FORWARDING: "1",  # pods get out
    BRIDGE_CALLS: "1",  # service addresses and policies apply between pods of one bridge
}
"""Settings that this project needs."""

RAISED: Mapping[str, int] = {
    "net/ipv4/neigh/default/gc_thresh2": 32_768,
    "net/ipv4/neigh/default/gc_thresh3": 65_536,
}
"""Settings that are raised to these values if the machine allows it. All pods share the kernel's table of neighbors,
and on one bridge, everyone may have an entry for everyone else: 200 pods have 40,000. With the kernel's own 1,024, a
step on 100 workers waited up to a minute for connections ("neighbor table overflow")."""

OF_THE_KUBELET = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""Settings that the kubelet changes when it starts (its pkg/util/sysctl; its only other mode is to fail)."""


class Sysctls:
    """Kernel settings of the machine. A file keeps the values that they had before the first start."""

    def __init__(self, memory: Path, root: Path = ROOT) -> None:
        self._memory = memory
        self._root = root

    def remember(self) -> None:
        """Record the settings before the first start. Later calls add those that a newer version changes, too."""
        recorded = self._recorded()
        if added := {name: self._read(name) for name in (*NEEDED, *RAISED, *OF_THE_KUBELET) if name not in recorded}:
            host_files.write(self._memory, json.dumps({**recorded, **added}, indent=2) + "\n")

    def before(self, name: str) -> str | None:
        """Return a setting's value before the first start; None if it did not exist or was not recorded."""
        value = self._recorded().get(name)
        return value if isinstance(value, str) else None

    def set_needed(self) -> None:
        """Set the settings that differ from NEEDED, and raise those of RAISED that are lower and can be set.

        Read-only ones with the right value do no harm.
        """
        for name, least in RAISED.items():
            if (value := self._read(name)) is not None and int(value) < least:
                with suppress(OSError):
                    (self._root / name).write_text(str(least))
        for name, value in NEEDED.items():
            if self._read(name) != value:
                try:
                    (self._root / name).write_text(value)
                except OSError as error:
                    raise UserError(
                        f"{self._root / name} must be {value} and cannot be set ({error}). Set it on the machine's host"
                    ) from error

    def restore(self) -> list[str]:
        """Restore recorded values that differ now; return a line for every one."""
        done = []
        for name in (*NEEDED, *RAISED, *OF_THE_KUBELET):
            value, now = self.before(name), self._read(name)
            if value is not None and now is not None and now != value:
                (self._root / name).write_text(value)
                done.append(f"{name.replace('/', '.')} = {value}")
        return done

    def _recorded(self) -> dict[str, object]:
        return json.loads(self._memory.read_text()) if self._memory.exists() else {}

    def _read(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text().strip()
        except OSError:  # not in this kernel, or not readable
            return None
