"""Kernel settings that a Kubernetes node changes: what they were is kept, and put back at the end."""

import json
from collections.abc import Mapping
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
"""What we set."""

OF_THE_KUBELET = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""What the kubelet sets at its start (pkg/util/sysctl in its source; it can only be told to fail instead)."""


class Sysctls:
    """The settings and the file that remembers what they were."""

    def __init__(self, memory: Path, root: Path = ROOT) -> None:
        self._memory = memory
        self._root = root

    def remember(self) -> None:
        """Keep what the settings are before the first start; later calls keep the first memory."""
        if not self._memory.exists():
            values = {name: self._read(name) for name in (*NEEDED, *OF_THE_KUBELET)}
            host_files.write(self._memory, json.dumps(values, indent=2) + "\n")

    def before(self, name: str) -> str | None:
        """Return what a setting was before the first start; None for one that was not there or is not known."""
        if not self._memory.exists():
            return None
        value = json.loads(self._memory.read_text()).get(name)
        return value if isinstance(value, str) else None

    def set_needed(self) -> None:
        """Set what we need and is not so yet; read-only settings that are right do no harm."""
        for name, value in NEEDED.items():
            if self._read(name) != value:
                try:
                    (self._root / name).write_text(value)
                except OSError as error:
                    raise UserError(
                        f"{self._root / name} must be {value} and cannot be set ({error}): set it on the machine's host"
                    ) from error

    def put_back(self) -> list[str]:
        """Set what was remembered, where it is different now; return what was put back."""
        done = []
        for name in (*NEEDED, *OF_THE_KUBELET):
            value, now = self.before(name), self._read(name)
            if value is not None and now is not None and now != value:
                (self._root / name).write_text(value)
                done.append(f"{name.replace('/', '.')} = {value}")
        return done

    def _read(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text().strip()
        except OSError:  # not in this kernel, or not readable
            return None
