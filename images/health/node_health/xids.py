"""Errors of NVIDIA's driver by number (Xid): meaning, cause, and the action that ends them.

From NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog"), by its
immediate resolution: RESTART_APP and IGNORE need no action on the node, RESET_GPU a reset, RESTART_BM and RESTART_VM a
reboot, CHECK_MECHANICALS a person at the machine. Numbers that the catalog calls unused, and those that it has without
a resolution, are findings.
"""

from collections.abc import Mapping
from typing import NamedTuple

NONE, FINDING, RESET, REBOOT, REPLACE = "none", "finding", "reset", "reboot", "replace"

BY_TEXT = "by its text"
"""Action of errors whose lines state the severity: `Fatal`, `Nonfatal`, or the action that the driver asks for."""


class Xid(NamedTuple):
    """An error."""

    meaning: str
    cause: str
    """`program`, `driver`, `hardware`, or `any`."""
    action: str
    """`none`, `finding`, `reset`, `reboot`, `replace`, or BY_TEXT."""

    @property
    def drains(self) -> bool:
        """Return True for an error whose number alone takes the GPU out of service."""
        return self.action in {RESET, REBOOT, REPLACE}


def _engines(meaning: str, *codes: int) -> dict[int, Xid]:
    return dict.fromkeys(codes, Xid(meaning, "program", NONE))


_UNUSED = Xid("unused", "any", FINDING)

XIDS: Mapping[int, Xid] = {
    **dict.fromkeys(range(1, 173), _UNUSED),
    8: Xid("GPU stopped processing", "program", NONE),
    13: Xid("graphics engine exception", "program", NONE),
    14: Xid("unused", "any", NONE),
    31: Xid("memory page fault", "program", NONE),
    **_engines("invalid push buffer stream", 11, 25, 32),
    **_engines("copy engine exception", 39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)),
    **_engines("video engine exception", 60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139),
    37: Xid("driver firmware error", "driver", NONE),
    38: Xid("driver firmware error", "driver", NONE),
    43: Xid("GPU stopped processing", "program", NONE),
    44: Xid("fault during a context switch", "program", NONE),
    45: Xid("cleanup after another error", "program", NONE),
    46: Xid("GPU stopped processing", "hardware", RESET),
    48: Xid("double bit ECC error", "hardware", RESET),
    54: Xid("no auxiliary power", "hardware", REPLACE),
    62: Xid("micro-controller halt", "hardware", RESET),
    63: Xid("memory remapped", "hardware", FINDING),
    64: Xid("memory remapping failed", "hardware", RESET),
    66: Xid("illegal access by the driver", "driver", NONE),
    67: Xid("illegal access by the driver", "driver", NONE),
    69: Xid("graphics engine class error", "program", NONE),
    74: Xid("NVLink error", "hardware", RESET),
    78: Xid("vGPU start error", "driver", FINDING),
    79: Xid("fallen off the bus", "hardware", REBOOT),
    80: Xid("corrupted data sent to the GPU", "program", NONE),
    92: Xid("many single bit ECC errors", "hardware", FINDING),
    93: Xid("infoROM wear limit", "hardware", FINDING),
    94: Xid("contained memory error", "hardware", FINDING),
    95: Xid("uncontained memory error", "hardware", RESET),
    **dict.fromkeys((106, 107), Xid("test message", "driver", NONE)),
    108: Xid("unused", "any", NONE),
    109: Xid("context switch time-out", "any", RESET),
    110: Xid("security fault", "driver", RESET),
    119: Xid("GSP RPC time-out", "driver", RESET),
    120: Xid("GSP error", "driver", RESET),
    121: Xid("C2C error", "hardware", FINDING),
    136: Xid("NVLink training failed", "hardware", RESET),
    137: Xid("NVLink privilege error", "program", NONE),
    140: Xid("unrecovered ECC error", "hardware", RESET),
    141: Xid("CUDA fast path error", "program", NONE),
    142: Xid("video engine exception", "any", FINDING),
    143: Xid("GPU initialization failed", "hardware", RESET),
    144: Xid("NVLink SAW error", "hardware", BY_TEXT),
    145: Xid("NVLink RLW error", "hardware", BY_TEXT),
    146: Xid("NVLink TLW error", "hardware", BY_TEXT),
    147: Xid("NVLink TREX error", "hardware", BY_TEXT),
    148: Xid("NVLink NVLPW_CTRL error", "hardware", BY_TEXT),
    149: Xid("NVLink NETIR error", "hardware", BY_TEXT),
    150: Xid("NVLink MSE error", "hardware", BY_TEXT),
    151: Xid("key rotation error", "driver", REBOOT),
    152: Xid("DLA SMMU error", "program", NONE),
    153: Xid("DLA time-out", "program", NONE),
    154: Xid("recovery action changed", "any", BY_TEXT),
    155: Xid("NVLink error defined by software", "driver", RESET),
    156: Xid("resource retired", "hardware", RESET),
    157: Xid("resource retirement failed", "hardware", FINDING),
    158: Xid("fatal time-out", "hardware", RESET),
    159: Xid("CHI non-data error", "hardware", FINDING),
    160: Xid("channel retired", "hardware", FINDING),
    161: Xid("channel retirement failed", "hardware", FINDING),
    162: Xid("power smoothing is back", "hardware", NONE),
    163: Xid("power smoothing is off", "hardware", FINDING),
    164: Xid("power smoothing nears its end", "hardware", FINDING),
    165: Xid("power smoothing is worn out", "hardware", FINDING),
    166: Xid("confidential traffic before its set-up", "driver", FINDING),
    167: Xid("fatal PCIe time-out", "hardware", RESET),
    168: Xid("errors in the write protected region", "hardware", RESET),
    169: Xid("micro-controller halt", "hardware", RESET),
    170: Xid("interrupt in confidential mode", "driver", FINDING),
    171: Xid("details of a DRAM error", "hardware", FINDING),
    172: Xid("details of an SRAM error", "hardware", FINDING),
}
"""All errors. 167 to 169 have no resolution in the catalog yet: a reset, as of 79, 95 and 62, is a judgement."""

UNKNOWN = Xid("not in the catalog", "any", FINDING)
"""An error whose number a newer driver introduced."""


def xid(number: int) -> Xid:
    """Return the error with this number, or UNKNOWN if the catalog lacks it."""
    return XIDS.get(number, UNKNOWN)
