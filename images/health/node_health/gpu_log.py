r"""Lines of NVIDIA's driver in the kernel's log: errors of GPUs and switches (Xid, SXid), and lines that end them.

Forms, by drivers 470 to 595: `NVRM: Xid (PCI:0000:9b:00): 79, pid=..., name=..., ...`, without `PCI:` in old drivers,
with ` GPU-I:05` behind the address for a MIG instance; `NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.`, and the
same in three lines; `nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, ...`.

A line counts from its beginning, and by more characters than the 15 of a program's name, which users choose.
"""

import re
from typing import NamedTuple

from node_health.patterns import pattern
from node_health.xids import BY_TEXT, FINDING, NONE, RESET, xid

_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
_XID = pattern(rf"NVRM: Xid \((?:PCI:)?({_ADDRESS})(?:\.\d)?((?: GPU-[IC]+:\d+)*)\): (\d{{1,6}})\b")
_SXID = pattern(rf"nvidia-nvswitch\d+: SXid \(PCI:({_ADDRESS})(?:\.\d)?\): (\d{{1,6}}), (Fatal|Non-fatal)\b")
_SEVERITY = pattern(r"\b(Fatal|Nonfatal)\s+XC\d+\s+i\d+\s+Link\s+-?\d+\s+\(")
_RECOVERY = pattern(r"GPU recovery action changed from 0x\w+ \([\w /]+\) to 0x\w+ \(([\w /]+)\)")
_LOST = pattern(rf"NVRM: GPU ({_ADDRESS}|[0-9a-fA-F]{{2}}:[0-9a-fA-F]{{2}})\.0:\s+GPU has fallen off the bus")
_LOST_BEGINS = pattern(rf"NVRM: The NVIDIA GPU ({_ADDRESS})\.0\b")
_LOST_ENDS = pattern(r"(?:.*\\x0a|.*\n)?NVRM:\s+fallen off the bus and is not responding to commands", re.DOTALL)
_LOADED = "NVRM: loading NVIDIA UNIX "
_DRIVERS = "NVRM:", "nvidia-nvswitch"
"""Parts of all these lines. A node without GPUs has none, and compiles no pattern."""

_FALLEN = 79


class GpuLine(NamedTuple):
    """Meaning of a line."""

    device: str
    """Address of the GPU or switch, `0000:9b:00`; empty for all."""
    words: str
    """Error text in a finding; empty for a line that ends the errors of the device."""
    action: str = NONE

    @property
    def ends(self) -> bool:
        """Return True for a line that ends earlier errors of the device."""
        return not self.words


def address(text: str) -> str:
    """Return a PCI address in the form of the kernel's log, from `00000000:9B:00.0` as well."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:] if domain.startswith('0000') else domain}:{rest.partition('.')[0]}"


def read_line(text: str, begun: str = "") -> GpuLine | None:
    """Return the meaning of a line; None if it has none.

    Args:
        text: The line.
        begun: GPU of the line before, if that began a message of three lines (`begins`). Default: none.
    """
    if not any(part in text for part in _DRIVERS):
        return None
    if found := _XID.match(text):
        return _of_xid(address(found[1]), found[2], int(found[3]), text[found.end() :])
    if found := _SXID.match(text):
        action = RESET if found[3] == "Fatal" else FINDING
        return GpuLine(
            address(found[1]), f"SXid {found[2]} of switch {address(found[1])} ({found[3]}; {action})", action
        )
    if found := _LOST.match(text):
        short = found[1] if found[1].count(":") > 1 else f"0000:{found[1]}"
        return _of_xid(address(short), "", _FALLEN, "")
    if (whole := begins(text) or begun) and _LOST_ENDS.match(text):
        return _of_xid(whole, "", _FALLEN, "")
    return GpuLine("", "") if text.startswith(_LOADED) else None


def begins(text: str) -> str:
    """Return the GPU of a line that may begin the message about a lost GPU; empty for other lines."""
    found = _LOST_BEGINS.match(text) if text.startswith(_DRIVERS) else None
    return address(found[1]) if found else ""


def _of_xid(device: str, instance: str, number: int, rest: str) -> GpuLine | None:
    error = xid(number)
    if error.action != BY_TEXT:
        action = error.action
        return (
            None if action == NONE else GpuLine(device, _words(number, device, instance, error.meaning, action), action)
        )
    if changed := _RECOVERY.search(rest):
        wanted = changed[1]
        return GpuLine(
            device, "" if wanted == "None" else _words(number, device, instance, error.meaning, wanted), RESET
        )
    severity = _SEVERITY.search(rest)
    action = RESET if severity and severity[1] == "Fatal" else FINDING
    return GpuLine(device, _words(number, device, instance, error.meaning, action), action)


def _words(number: int, device: str, instance: str, meaning: str, action: str) -> str:
    return f"Xid {number} of {device}{instance} ({meaning}; {action})"
