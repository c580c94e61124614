"""Lines of NVIDIA's driver in the kernel's log: their forms, and rounds until an error is over."""

from pathlib import Path

import pytest

from health_testing.made_rounds import Node
from health_testing.smi_outputs import query
from node_health.gpu_log import address, begins, read_line
from node_health.kernel_log import KernelLog
from node_health.xids import BY_TEXT, UNKNOWN, XIDS, xid

PREFIX = "NVRM: Xid (PCI:0000:9b:00): "
LINK = "XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"

MEANINGS = {
    f"{PREFIX}79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.": ("0000:9b:00", "reboot"),
    f"{PREFIX}119, pid=7, name=x, Timeout after 6s of waiting for RPC response from GPU4 GSP!": ("0000:9b:00", "reset"),
    f"{PREFIX}31, pid=7, name=oob, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1": None,
    f"{PREFIX}43, pid=7, name=t, channel 0x0000000a": None,
    f"{PREFIX}45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149": None,
    f"{PREFIX}63, pid=7, name=x, Row Remapper: New row (0x1) marked for remapping": ("0000:9b:00", "finding"),
    f"{PREFIX}999, something new": ("0000:9b:00", "finding"),
    "NVRM: Xid (0000:03:00): 48, Ch 00000001": ("0000:03:00", "reset"),
    "NVRM: Xid (PCI:0000:b7:00 GPU-I:05): 94, pid=7, name=x, Contained: CE User Channel": ("0000:b7:00", "finding"),
    "NVRM: Xid (PCI:0000:b7:00 GPU-I:05 GPU-CI:0): 95, Uncontained": ("0000:b7:00", "reset"),
    f"NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   {LINK}": ("0009:01:00", "reset"),
    f"NVRM: Xid (PCI:0009:01:00): 149, NETIR_BER_EVENT Nonfatal {LINK}": ("0009:01:00", "finding"),
    f"{PREFIX}145, pid=7, name=ray::WorkerDict, RLW_RXPIPE Nonfatal {LINK}": ("0000:9b:00", "finding"),
    f"{PREFIX}145, pid=7, name=, SAW Fatal XC0, RLW_RXPIPE Nonfatal {LINK}": ("0000:9b:00", "finding"),
    f"{PREFIX}146, TLW_RX/TLW_RX_PIPE0 Fatal {LINK}": ("0000:9b:00", "reset"),
    "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.": ("0000:29:00", "reboot"),
    "NVRM: GPU 18:00.0: GPU has fallen off the bus.": ("0000:18:00", "reboot"),
    "NVRM: The NVIDIA GPU 0000:18:00.0\\x0aNVRM: (PCI ID: 10de:2901) installed in this system has\\x0a"
    "NVRM: fallen off the bus and is not responding to commands.": ("0000:18:00", "reboot"),
    "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up": ("0000:a9:00", "reset"),
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress": ("0000:05:00", "finding"),
    "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030}": None,
    f"{PREFIX}154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)": ("0000:9b:00", "reset"),
    "NVRM: GPU at PCI:0000:00:06: GPU-00000000-0000-0000-0000-000000000000": None,
    "NVRM: GPU Board Serial Number: 1650000000000": None,
    "NVRM: Persistence mode is deprecated and will be removed in a future release.": None,
    "NVRM: Xid (PCI:[4711]: segfault at 0 ip 0000555d4e0c1131 0000:9b:00): 79": None,
    "NVRM: Xid (0000[4711]: segfault at 0 ip 0000555d4e0c1131 0000:9b:00): 79": None,
    "a.out[7]: NVRM: Xid (PCI:0000:9b:00): 79, GPU": None,
    "": None,
}


@pytest.mark.parametrize("line", MEANINGS)
def test_lines_of_the_driver_have_their_meaning(line: str) -> None:
    found = read_line(line)

    assert (found and (found.device, found.action)) == MEANINGS[line]
    assert found is None or (not found.ends and found.words.isprintable())


def test_a_lost_gpu_in_three_records_is_one_error() -> None:
    lines = ("NVRM: The NVIDIA GPU 0000:18:00.0", "NVRM: (PCI ID: 10de:2901) installed in this system has")
    assert begins(lines[0]) == "0000:18:00"
    assert begins(lines[1]) == ""

    log = KernelLog({}, "one")
    lost = "NVRM: fallen off the bus and is not responding to commands."
    log.add(iter(f"3,{number},9,-;{line}\n" for number, line in enumerate((lines[0], lost))))
    assert log.failures(1)["xid"] == ["Xid 79 of 0000:18:00 (fallen off the bus; reboot)"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [("00000000:9B:00.0", "0000:9b:00"), ("00000009:01:00.0", "0009:01:00"), ("0000:03:00", "0000:03:00")],
)
def test_an_address_of_nvidia_smi_is_that_of_the_log(given: str, shown: str) -> None:
    assert address(given) == shown


def test_every_error_of_the_catalog_is_in_the_table() -> None:
    assert [*sorted(XIDS)] == [*range(1, 173)]
    assert {error.action for error in XIDS.values()} == {"none", "finding", "reset", "reboot", "replace", BY_TEXT}
    assert {number for number, error in XIDS.items() if error.action == BY_TEXT} == {*range(144, 151), 154}
    assert xid(4711) is UNKNOWN


XID = "NVRM: Xid (PCI:0000:02:00): 119, pid=7, name=x, Timeout"
RECOVERED = "NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
ASKED = "NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"


class Logged(Node):
    """A node with eight H100, whose kernel logs lines."""

    def __init__(self, root: Path, uptime: int = 100) -> None:
        """Make the node."""
        super().__init__(root, gpu_query={}, gpu_xid={"failures": 1})
        self.smi(query("h100-550"))
        self.write("proc/uptime", f"{uptime}.00 1\n")
        self.lines: list[str] = []

    def log(self, line: str, seconds: int = 99) -> None:
        """Have the kernel log a line."""
        self.lines.append(f"3,{100 + len(self.lines)},{seconds}000000,-;{line}\n")
        self.write("dev/kmsg", "".join(self.lines))

    def new_pod(self) -> None:
        """Begin again without what rounds before have kept."""
        self.memory = {}


@pytest.fixture
def node(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


def drained(node: Node) -> bool:
    return "DRAIN" in node.slurm.state


def test_an_error_drains_at_once_by_the_index_of_its_gpu_and_stays_until_something_ends_it(node: Logged) -> None:
    node.log(XID)
    for _ in range(6):
        node.round()

    assert drained(node)
    words = "found Xid 119 of GPU 1 at 0000:02:00 (GSP RPC time-out; reset)"
    assert node.slurm.reason == f"health gpu_xid: {words}, allowed none"


@pytest.mark.parametrize("line", [RECOVERED, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15"])
def test_an_error_is_over_when_the_driver_states_it_or_is_loaded_again(node: Logged, line: str) -> None:
    node.log(XID)
    node.log(ASKED)
    node.round()
    assert drained(node)
    node.log(line)
    for _ in range(3):
        node.round()

    assert not drained(node)
    node.log(XID)
    node.round()
    assert drained(node), "a later error counts again"


@pytest.mark.parametrize("later", [63, 94, 172])
def test_an_error_that_needs_no_act_leaves_the_reset_that_the_driver_asks_for(node: Logged, later: int) -> None:
    node.log(ASKED)
    node.log(XID.replace("119", str(later)))
    for _ in range(4):
        node.round()

    assert drained(node)
    node.log(ASKED.replace("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)"))
    node.round()
    kept = [place for signature, _, place in node.memory["kernel"]["found"] if signature == "xid"]
    assert kept == ["Xid 154 of 0000:02:00 (recovery action changed; Node Reboot Required)"]


def test_an_error_of_another_gpu_stays(node: Logged) -> None:
    node.log(XID.replace("0000:02:00", "0000:03:00"))
    node.log(RECOVERED)
    for _ in range(4):
        node.round()

    assert drained(node)


def test_an_error_is_over_when_a_later_round_finds_no_recovery_needed(node: Logged) -> None:
    node.smi(query("h100-580"))
    node.log(XID)
    node.round()
    assert drained(node)
    for _ in range(3):
        node.round()
    assert not drained(node)

    node.smi(query("h100-580", changes={"<gpu_recovery_action>None<": "<gpu_recovery_action>Reset<"}, of=1))
    node.log(XID)
    for _ in range(6):
        node.round()
    assert drained(node)


def test_an_error_of_a_switch_is_over_when_all_gpus_and_their_fabric_are_well(node: Logged) -> None:
    node.smi(query("h100-580", changes={"<state>Completed<": "<state>In Progress<"}, of=5))
    node.log("nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up")
    for _ in range(4):
        node.round()
    assert drained(node)
    node.smi(query("h100-580"))
    for _ in range(3):
        node.round()
    assert not drained(node)


def test_an_admins_undrain_holds_and_a_new_error_drains_again(node: Logged) -> None:
    node.log(XID)
    node.round()
    node.slurm.state = "IDLE"
    for _ in range(5):
        node.round()
    assert not drained(node)

    node.log(XID)
    node.round()
    assert drained(node)


@pytest.mark.parametrize(("hours", "is_drained"), [(0, True), (2, False)])
def test_a_new_pod_on_a_node_in_service_takes_no_old_error_from_the_log(
    tmp_path: Path, hours: int, is_drained: bool
) -> None:
    node = Logged(tmp_path, uptime=100 + 3600 * hours)
    node.log(XID)
    for _ in range(3):
        node.round()

    assert drained(node) is is_drained


def test_a_new_pod_keeps_the_drain_of_an_error_that_is_not_over(tmp_path: Path) -> None:
    node = Logged(tmp_path, uptime=100 + 2 * 3600)
    node.log(XID)
    node.slurm.state, node.slurm.reason = "IDLE+DRAIN", "health gpu_xid: found Xid 119 of 0000:02:00, allowed none"
    for _ in range(6):
        node.round()

    assert drained(node)


def test_an_error_that_the_version_before_has_kept_stays_and_ends_as_any_other(node: Logged) -> None:
    kept = {"boot": "one", "sequence": 50, "found": [["xid", 98.0, "Xid 119 of 0000:02:00"]]}
    node.memory = {"boot": "one", "asked": True, "held": "health gpu_xid: found Xid 119 of 0000:02:00, allowed none"}
    node.memory["kernel"] = kept
    node.slurm.state, node.slurm.reason = "IDLE+DRAIN", node.memory["held"]
    node.write("dev/kmsg", "")
    for _ in range(4):
        node.round()
    assert drained(node)
    node.log(RECOVERED)
    for _ in range(3):
        node.round()
    assert not drained(node)
