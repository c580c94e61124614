"""Readings of a node in one round, which the checks judge. A missing reading is None.

No class is a dataclass: every node starts a round once a minute, and `dataclasses` takes a quarter of its time to load.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from node_health.check_settings import NodeSettings
from node_health.smi import Gpu


class VolumeUse(NamedTuple):
    """Use of a volume's file system, in percent. If `problem` is not empty, the path failed."""

    shared: bool
    space: float = 0
    inodes: float = 0
    problem: str = ""

    @property
    def is_full(self) -> bool:
        """Return True if the file system takes no file for lack of space, which jobs may have used."""
        return max(self.space, self.inodes) > 99


class Port(NamedTuple):
    """A port of an InfiniBand or RoCE adapter."""

    active: bool
    state: str
    """State of the port: `ACTIVE`, `DOWN`, `INIT`."""
    rate_gbps: float
    counters: dict[str, float]


class Readings:
    """Readings of one round."""

    busy = False
    """A job runs on the node."""
    has_smi = False
    """nvidia-smi is in the container."""
    smi_problem: str | None = None
    """Failure of nvidia-smi; empty if it answered, None if it was not asked."""
    smi_warnings: Sequence[str] = ()
    """Lines of nvidia-smi before and after its answer."""
    gpus: tuple[Gpu, ...] | None = None
    best_widths: Mapping[str, float] = MappingProxyType({})
    """Most lanes of GPUs in earlier rounds, by name."""
    links: dict[str, dict[int, bool]] | None = None
    """Links of GPUs on boards, and their state."""
    bridges: dict[str, dict[int, bool]] | None = None
    """Links of cards, which may have a bridge."""
    best_links: Mapping[str, float] = MappingProxyType({})
    """Most active links of GPUs in earlier rounds."""
    link_errors: dict[str, float] | None = None
    """Errors of links in the last hour."""
    peers: list[str] | None = None
    """Pairs of GPUs without access to each other."""
    replays: dict[str, float] | None = None
    """PCIe replays of GPUs in the last hour."""
    ports: dict[str, Port] | None = None
    lost_ports: list[str] | None = None
    """Ports that were active since the pod's start and are no longer."""
    slow_ports: list[str] | None = None
    """Ports with a lower rate than before."""
    port_errors: dict[str, float] | None = None
    """Errors of ports in the last hour, by `<adapter>/<port> <counter>`."""
    available_mib: float | None = None
    memory_errors: dict[str, float] | None = None
    """Uncorrectable errors of the machine's memory by controller."""
    corrected_memory_errors: dict[str, float] | None = None
    """Corrected ones in the last hour."""
    volumes: dict[str, VolumeUse] | None = None
    jail_problem: str | None = None
    process_ids: float | None = None
    """Used process ids of the pod or the machine that no user of the pod has, in percent."""
    users_process_ids: Mapping[int, float] = MappingProxyType({})
    """Used process ids of every user of the pod by uid, or the share of the user's own limit, in percent."""
    clock_error_seconds: float | None = None
    kernel: dict[str, list[str]] | None = None
    """Lines of the kernel's log by signature."""
    slurmd_problem: str | None = None
    program_problem: str | None = None

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
