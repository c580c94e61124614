"""Quick checks of nodes as data: their subjects, limits, actions and sources.

Sources by their short names: "NVIDIA" is NVIDIA's GPU Debug Guidelines, its manual of nvidia-smi and its Xid catalog;
"Azure NHC" is the AzureHPC Node Health Checks; "GCM" is Meta's GPU Cluster Monitoring; "NVSentinel" is NVIDIA's.
"Judgement" is this project's. A check that reads a shared volume, or that an outage of slurmctld can fail, is only
logged: otherwise it would drain all nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar


class HealthAction(StrEnum):
    """Consequence of a failed check."""

    LOG = "log"
    """A line in slurmd's log, and in the node's result."""
    DRAIN = "drain"
    """The node is drained, too."""
    DRAIN_AND_REPLACE = "drain_and_replace"
    """The node is drained, with a reason that requests another machine."""


class UndrainRule(StrEnum):
    """Rule that ends a drain by a check."""

    AUTO = "auto"
    """The node undrains itself when the same check passes."""
    VERIFY = "verify"
    """A long check of the same hardware undrains the node when it passes (docs/long-checks.md). If the cluster has
    none, the node stays drained until an administrator undrains it."""
    NEVER = "never"
    """The node stays drained until an administrator undrains it."""


class NodeUse(StrEnum):
    """Use of a node during which a check counts."""

    IDLE = "idle"
    """No step of a job runs."""
    BUSY = "busy"
    """A step of a job runs."""


class HealthCheck(StrEnum):
    """A quick check."""

    GPU_TOOL = "gpu_tool"
    """nvidia-smi is in the worker's container. Otherwise no check of GPUs has a reading."""
    GPU_QUERY = "gpu_query"
    """nvidia-smi answers within 40 s about every GPU: none is lost or reports that it needs a reset."""
    GPU_WARNINGS = "gpu_warnings"
    """Warnings of nvidia-smi, such as about a corrupted infoROM, and single values that are an error text."""
    GPU_PERSISTENCE = "gpu_persistence"
    """Persistence mode. Without it, every call of nvidia-smi and every job first load the driver."""
    GPU_COUNT = "gpu_count"
    """Number of GPUs that the driver sees."""
    GPU_MODEL = "gpu_model"
    """Product name of the GPUs, which has all parts of the node set's `gpus.type`."""
    GPU_XID = "gpu_xid"
    """Errors of NVIDIA's driver after which a GPU needs a reset, a reboot or a replacement (Xid, SXid), from the
    kernel's log, until that has happened."""
    GPU_XID_NOTED = "gpu_xid_noted"
    """Errors of NVIDIA's driver in the last hour that need no action, such as remapped memory (Xid, SXid)."""
    GPU_RECOVERY = "gpu_recovery"
    """Action that the driver requests: a reset, a reboot."""
    GPU_ECC_UNCORRECTED = "gpu_ecc_uncorrected"
    """Uncorrectable ECC errors of a GPU and its MIG instances since its driver was loaded: in SRAM, and in DRAM that
    the GPU cannot remap."""
    GPU_ECC_CONTAINED = "gpu_ecc_contained"
    """Uncorrectable errors in a GPU's DRAM that it contains and remaps (Ampere and newer): `gpu_remap_pending` and
    `gpu_remap_failed` decide about the node."""
    GPU_ECC_CORRECTED = "gpu_ecc_corrected"
    """Corrected ECC errors of a GPU since its driver was loaded."""
    GPU_REMAP_FAILED = "gpu_remap_failed"
    """Memory of a GPU that can no longer be repaired: rows, or SRAM with more errors than its threshold."""
    GPU_REMAP_PENDING = "gpu_remap_pending"
    """Rows or pages of a GPU's memory that a reset takes out of use, and TPCs and channels that it repairs."""
    GPU_SLOWDOWN = "gpu_slowdown"
    """Clocks that the hardware lowers because of heat or power: power brake, thermal slowdown, hardware slowdown."""
    GPU_TEMPERATURE = "gpu_temperature"
    """Degrees left until the GPU's own highest operating temperature, which the GPU reports itself."""
    GPU_MEMORY_TEMPERATURE = "gpu_memory_temperature"
    """Degrees left until the highest operating temperature of the GPU's memory."""
    GPU_PCIE_WIDTH = "gpu_pcie_width"
    """Lanes of a GPU's PCIe link while it is in use: as many as the GPU had before, and as most others of its model
    have."""
    GPU_PCIE_GENERATION = "gpu_pcie_generation"
    """Generation of the PCIe link of a GPU at full clocks. An idle GPU lowers it to save power."""
    GPU_PCIE_REPLAYS = "gpu_pcie_replays"
    """PCIe packets of a GPU sent again in the last hour."""
    GPU_PROCESSES = "gpu_processes"
    """Processes on GPUs of a node that has no job."""
    GPU_MEMORY_USED = "gpu_memory_used"
    """Memory of a GPU in use on a node that has no job. It is the only sign of processes in other pods."""
    NVLINK_FABRIC = "nvlink_fabric"
    """State of NVLink's fabric, which fabric manager completes, with its health and bandwidth."""
    NVLINK_MISSING = "nvlink_missing"
    """Links and fabric of a node with several GPUs on boards: some machines are a part of a board without them."""
    NVLINK_LINKS = "nvlink_links"
    """Active NVLinks of the GPUs: as many as before, and on a board as many as the model and the neighbours have. Fewer
    than 8 GPUs that all have the same number may be a part of a board, and pass. For bridges of cards (PCIe, NVL) only
    their own previous number counts."""
    NVLINK_ERRORS = "nvlink_errors"
    """Errors of one NVLink in the last hour, without corrected ones (FEC, raw errors)."""
    GPU_PEER_ACCESS = "gpu_peer_access"
    """Access of every GPU to the memory of every other GPU."""
    NETWORK_PORTS = "network_ports"
    """Active ports of InfiniBand or RoCE adapters."""
    NETWORK_PORT_LOST = "network_port_lost"
    """Ports of InfiniBand or RoCE adapters that were active since the pod's start, or lost in the previous pod, and are
    no longer active."""
    NETWORK_RATE = "network_rate"
    """Rate of the active ports: not below their previous rate, nor below the limit."""
    NETWORK_SYMBOL_ERRORS = "network_symbol_errors"
    """Symbol errors of a port in the last hour."""
    NETWORK_FLAPS = "network_flaps"
    """Number of times that a port's link went down in the last hour. A restarted switch causes that on all its
    nodes."""
    NETWORK_RECEIVE_ERRORS = "network_receive_errors"
    """Damaged packets that a port received in the last hour."""
    MEMORY_AVAILABLE = "memory_available"
    """Available memory of a node that has no job, relative to the memory that Slurm schedules, or to the pod's request
    if that is less."""
    MEMORY_UNCORRECTED = "memory_uncorrected"
    """Uncorrectable errors of the machine's memory since boot (EDAC)."""
    MEMORY_CORRECTED = "memory_corrected"
    """Corrected errors of the machine's memory in the last hour (EDAC)."""
    VOLUMES = "volumes"
    """The node's own volumes are mounted, answer in time, and accept a file."""
    VOLUME_SPACE = "volume_space"
    """Used space of the node's own volumes on disks."""
    VOLUME_INODES = "volume_inodes"
    """Used inodes of the node's own volumes on disks."""
    SHARED_MEMORY_USED = "shared_memory_used"
    """Used space of /tmp and /dev/shm on a node that has no job."""
    SHARED_VOLUMES = "shared_volumes"
    """The jail, the homes and volumes of submounts are mounted, and answer in time."""
    JAIL = "jail"
    """The jail has an active tree, which a job can enter."""
    PROCESS_IDS = "process_ids"
    """Process ids in use, of the machine or of the pod, apart from those of the pod's users."""
    USERS_PROCESS_IDS = "users_process_ids"
    """Process ids of the user with the most, of the machine's, the pod's, or `max_processes`: the user's fault, not the
    node's."""
    CLOCK = "clock"
    """Largest error of the clock according to the kernel's estimate; 16 s on a machine without a time service."""
    KERNEL_NETWORK = "kernel_network"
    """Failures of mlx5 adapters in the kernel's log in the last hour."""
    KERNEL_DISK = "kernel_disk"
    """Failures of EXT4, XFS and disks in the kernel's log in the last hour."""
    KERNEL_MACHINE_CHECK = "kernel_machine_check"
    """Machine check exceptions in the kernel's log in the last hour."""
    KERNEL_KILLED_SLURM = "kernel_killed_slurm"
    """slurmd or slurmstepd killed by the OOM killer in the last hour, according to the kernel's log."""
    SLURMD = "slurmd"
    """The slurmd daemon answers about itself."""
    PROGRAM = "program"
    """The program of `health.program` ends with status 0."""


class Needs(StrEnum):
    """Nodes to which a check applies."""

    ALL = "all"
    NVIDIA = "NVIDIA GPUs"
    WHOLE_GPUS = "whole NVIDIA GPUs"
    RDMA = "RDMA devices"
    PROGRAM = "health.program"


class Bound(StrEnum):
    """Meaning of a limit."""

    NONE = "none"
    """The check has no number."""
    EXACT = "exactly"
    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True)
class CheckDefaults:
    """Defaults of a check."""

    needs: Needs
    action: HealthAction
    source: str
    """Source of the limit and the action."""
    bound: Bound = Bound.NONE
    limit: float | None = None
    """Limit. If it is None and there is a bound, the node set's own number applies, or the check is off until the user
    gives a limit."""
    unit: str = ""
    allowed: str = "none"
    """Allowed value in words, for a check without a number."""
    needs_limit: bool = True
    """The check is off if a node set gives it no number. If False, it has another measure as well."""
    by_gpu: Mapping[str, float] = field(default_factory=dict)
    """Limits by GPU model on boards. The key is a part of `gpus.type` in lower case."""
    failures: int = 2
    """Consecutive failed rounds before the action: a single sample may be wrong."""
    passes: int = 3
    """Consecutive passed rounds before a drain ends."""
    every_minutes: int = 1
    uses: tuple[NodeUse, ...] = tuple(NodeUse)
    undrain: UndrainRule = UndrainRule.AUTO
    shared: bool = False
    """All nodes may fail the check at once, so it never drains."""


T = TypeVar("T")

_LOG, _DRAIN, _REPLACE = HealthAction.LOG, HealthAction.DRAIN, HealthAction.DRAIN_AND_REPLACE
_IDLE = (NodeUse.IDLE,)

NVLINKS = {"v100": 6, "a100": 12, "a800": 8, "h800": 8} | dict.fromkeys(
    ("h100", "h200", "h20", "b200", "b300", "gb200", "gb300"), 18
)
"""NVLinks of a GPU on a board, by model: NVIDIA's architecture whitepapers of Volta, Ampere, Hopper and Blackwell; A800
and H800 by `nvidia-smi nvlink --status` of healthy machines."""

CARDS = {"pcie", "nvl", "active", "fhhl"}
"""Parts of `gpus.type` that identify PCIe cards, which are on no board."""

DEFAULTS: Mapping[HealthCheck, CheckDefaults] = {
    HealthCheck.GPU_TOOL: CheckDefaults(
        Needs.NVIDIA, _LOG, "Judgement: jobs may have a driver without nvidia-smi", allowed="found"
    ),
    HealthCheck.GPU_QUERY: CheckDefaults(
        Needs.NVIDIA, _DRAIN, "NVIDIA: a lost GPU makes nvidia-smi fail or hang", allowed="an answer"
    ),
    HealthCheck.GPU_WARNINGS: CheckDefaults(Needs.NVIDIA, _LOG, "NVIDIA: a corrupted infoROM is a case for support"),
    HealthCheck.GPU_PERSISTENCE: CheckDefaults(
        Needs.NVIDIA, _LOG, "NVIDIA: Driver Persistence; Azure NHC check_gpu_persistence", every_minutes=5
    ),
    HealthCheck.GPU_COUNT: CheckDefaults(
        Needs.WHOLE_GPUS, _DRAIN, "gpus.count of the node set; Azure NHC check_gpu_count", Bound.EXACT
    ),
    HealthCheck.GPU_MODEL: CheckDefaults(Needs.WHOLE_GPUS, _LOG, "gpus.type of the node set", every_minutes=60),
    HealthCheck.GPU_XID: CheckDefaults(
        Needs.NVIDIA, _DRAIN, "NVIDIA: Xid catalog, immediate resolution RESET_GPU or RESTART_BM", failures=1
    ),
    HealthCheck.GPU_XID_NOTED: CheckDefaults(
        Needs.NVIDIA, _LOG, "NVIDIA: Xid catalog, CONTACT_SUPPORT or no resolution", failures=1
    ),
    HealthCheck.GPU_RECOVERY: CheckDefaults(Needs.NVIDIA, _DRAIN, "NVIDIA: gpu_recovery_action, gpu_reset_status"),
    HealthCheck.GPU_ECC_UNCORRECTED: CheckDefaults(
        Needs.NVIDIA,
        _DRAIN,
        "Azure NHC: SRAM above 0; NVIDIA: GPU Memory Error Management",
        Bound.AT_MOST,
        0,
        failures=1,
        undrain=UndrainRule.VERIFY,
    ),
    HealthCheck.GPU_ECC_CONTAINED: CheckDefaults(
        Needs.NVIDIA, _LOG, "NVIDIA: contained, no reset; Azure NHC: above 20 million", Bound.AT_MOST, 0
    ),
    HealthCheck.GPU_ECC_CORRECTED: CheckDefaults(
        Needs.NVIDIA,
        _LOG,
        "Azure NHC: above 10,000; GCM: above 50 million",
        Bound.AT_MOST,
        10_000,
        every_minutes=5,
    ),
    HealthCheck.GPU_REMAP_FAILED: CheckDefaults(
        Needs.NVIDIA, _REPLACE, "NVIDIA: replace the GPU; Azure NHC: above 0", failures=1, undrain=UndrainRule.NEVER
    ),
    HealthCheck.GPU_REMAP_PENDING: CheckDefaults(
        Needs.NVIDIA, _DRAIN, "NVIDIA: reset the GPU; Azure NHC: above 0", failures=1
    ),
    HealthCheck.GPU_SLOWDOWN: CheckDefaults(
        Needs.NVIDIA, _DRAIN, "Azure NHC check_gpu_clock_throttling; five rounds: judgement", failures=5
    ),
    HealthCheck.GPU_TEMPERATURE: CheckDefaults(
        Needs.NVIDIA, _LOG, "NVIDIA: the GPU's own limit; beyond it the hardware slows down", Bound.AT_LEAST, 0, "C"
    ),
    HealthCheck.GPU_MEMORY_TEMPERATURE: CheckDefaults(
        Needs.NVIDIA, _LOG, "NVIDIA: the memory's own limit", Bound.AT_LEAST, 0, "C"
    ),
    HealthCheck.GPU_PCIE_WIDTH: CheckDefaults(
        Needs.NVIDIA, _DRAIN, "NVIDIA: GPU Debug Guidelines, PCIe; slots of AWS have 8 of 16 lanes"
    ),
    HealthCheck.GPU_PCIE_GENERATION: CheckDefaults(
        Needs.NVIDIA, _LOG, "Judgement: power management lowers it on some machines", failures=3
    ),
    HealthCheck.GPU_PCIE_REPLAYS: CheckDefaults(Needs.NVIDIA, _LOG, "Judgement", Bound.AT_MOST, 480, every_minutes=5),
    HealthCheck.GPU_PROCESSES: CheckDefaults(
        Needs.NVIDIA,
        _DRAIN,
        "Judgement: the next job finds the memory used",
        Bound.AT_MOST,
        0,
        failures=3,
        uses=_IDLE,
    ),
    HealthCheck.GPU_MEMORY_USED: CheckDefaults(
        Needs.NVIDIA,
        _LOG,
        "Judgement: drivers until 510 count up to 650 MiB of their own",
        Bound.AT_MOST,
        1024,
        "MiB",
        failures=3,
        uses=_IDLE,
    ),
    HealthCheck.NVLINK_FABRIC: CheckDefaults(Needs.WHOLE_GPUS, _DRAIN, "NVIDIA: Fabric Manager User Guide", failures=3),
    HealthCheck.NVLINK_MISSING: CheckDefaults(
        Needs.WHOLE_GPUS, _LOG, "gpud#1108, azhpc-images#506: a node without fabric manager", every_minutes=5
    ),
    HealthCheck.NVLINK_LINKS: CheckDefaults(
        Needs.WHOLE_GPUS,
        _DRAIN,
        "NVIDIA: whitepapers; Azure NHC check_nvlink_status",
        Bound.AT_LEAST,
        None,
        allowed="all",
        needs_limit=False,
        by_gpu=NVLINKS,
        every_minutes=5,
    ),
    HealthCheck.NVLINK_ERRORS: CheckDefaults(Needs.WHOLE_GPUS, _LOG, "Judgement", Bound.AT_MOST, 100, every_minutes=5),
    HealthCheck.GPU_PEER_ACCESS: CheckDefaults(
        Needs.WHOLE_GPUS, _LOG, "Judgement: some machines have none by design", every_minutes=15
    ),
    HealthCheck.NETWORK_PORTS: CheckDefaults(Needs.ALL, _DRAIN, "Yours: off until a limit is given", Bound.AT_LEAST),
    HealthCheck.NETWORK_PORT_LOST: CheckDefaults(Needs.RDMA, _DRAIN, "GCM, Azure NHC: link not active"),
    HealthCheck.NETWORK_RATE: CheckDefaults(
        Needs.RDMA, _DRAIN, "Azure NHC check_hw_ib: rate of the model", Bound.AT_LEAST, 0, "Gb/s"
    ),
    HealthCheck.NETWORK_SYMBOL_ERRORS: CheckDefaults(
        Needs.RDMA, _DRAIN, "NVSentinel: fatal above 120 an hour", Bound.AT_MOST, 120
    ),
    HealthCheck.NETWORK_FLAPS: CheckDefaults(
        Needs.RDMA,
        _LOG,
        "NVSentinel: fatal above 0. A switch does it to many nodes",
        Bound.AT_MOST,
        0,
        failures=1,
    ),
    HealthCheck.NETWORK_RECEIVE_ERRORS: CheckDefaults(Needs.RDMA, _LOG, "Judgement", Bound.AT_MOST, 1000),
    HealthCheck.MEMORY_AVAILABLE: CheckDefaults(
        Needs.ALL,
        _DRAIN,
        "soperator drains below RealMemory; 20% of slack and five rounds: judgement",
        Bound.AT_LEAST,
        80,
        "%",
        failures=5,
        uses=_IDLE,
    ),
    HealthCheck.MEMORY_UNCORRECTED: CheckDefaults(
        Needs.ALL,
        _DRAIN,
        "Linux: Reliability, Availability and Serviceability",
        Bound.AT_MOST,
        0,
        failures=1,
        undrain=UndrainRule.VERIFY,
    ),
    HealthCheck.MEMORY_CORRECTED: CheckDefaults(Needs.ALL, _LOG, "Judgement", Bound.AT_MOST, 1000, every_minutes=5),
    HealthCheck.VOLUMES: CheckDefaults(Needs.ALL, _DRAIN, "Judgement"),
    HealthCheck.VOLUME_SPACE: CheckDefaults(
        Needs.ALL,
        _DRAIN,
        "The kubelet evicts pods at 90% (nodefs.available 10%)",
        Bound.AT_MOST,
        95,
        "%",
    ),
    HealthCheck.VOLUME_INODES: CheckDefaults(
        Needs.ALL, _DRAIN, "The kubelet evicts pods at 95% (nodefs.inodesFree 5%)", Bound.AT_MOST, 97, "%"
    ),
    HealthCheck.SHARED_MEMORY_USED: CheckDefaults(
        Needs.ALL, _LOG, "Judgement", Bound.AT_MOST, 50, "%", failures=3, uses=_IDLE
    ),
    HealthCheck.SHARED_VOLUMES: CheckDefaults(Needs.ALL, _LOG, "An outage reaches all nodes", shared=True),
    HealthCheck.JAIL: CheckDefaults(Needs.ALL, _LOG, "An outage reaches all nodes", shared=True),
    HealthCheck.PROCESS_IDS: CheckDefaults(Needs.ALL, _DRAIN, "Judgement", Bound.AT_MOST, 90, "%"),
    HealthCheck.USERS_PROCESS_IDS: CheckDefaults(
        Needs.ALL, _LOG, "Judgement: one user, who could drain every node", Bound.AT_MOST, 80, "%"
    ),
    HealthCheck.CLOCK: CheckDefaults(
        Needs.ALL,
        _LOG,
        "munge refuses credentials of other times (munge(7)); a time service keeps 0.1 s",
        Bound.AT_MOST,
        5,
        "s",
        every_minutes=10,
    ),
    HealthCheck.KERNEL_NETWORK: CheckDefaults(Needs.ALL, _DRAIN, "mlx5: health of the firmware is lost", failures=1),
    HealthCheck.KERNEL_DISK: CheckDefaults(Needs.ALL, _LOG, "The disk may be none of the pod's", failures=1),
    HealthCheck.KERNEL_MACHINE_CHECK: CheckDefaults(Needs.ALL, _LOG, "Most are corrected", failures=1),
    HealthCheck.KERNEL_KILLED_SLURM: CheckDefaults(Needs.ALL, _LOG, "The kubelet restarts slurmd", failures=1),
    HealthCheck.SLURMD: CheckDefaults(
        Needs.ALL, _LOG, "slurmctld itself sees a slurmd that does not answer", allowed="an answer", shared=True
    ),
    HealthCheck.PROGRAM: CheckDefaults(Needs.PROGRAM, _DRAIN, "Yours", allowed="status 0"),
}
"""Defaults of all checks, sorted by priority: the first failed check gives a drain its reason."""


def of_board(by_model: Mapping[str, T], gpu_type: str | None, otherwise: T) -> T:
    """Return the table's value for the model in a GPU type, whose parts are compared as whole words; not for cards.

    Args:
        by_model: Values by models in lower case.
        gpu_type: `gpus.type` of a node set, such as `h100` or `nvidia_h100-80gb`.
        otherwise: Value for cards, and for types without a model in the table.
    """
    parts = {*(gpu_type or "").lower().replace("_", "-").split("-")}
    found = (value for model, value in by_model.items() if model in parts and not parts & CARDS)
    return next(found, otherwise)


def default_limit(check: HealthCheck, gpu_type: str | None) -> float | None:
    """Return the limit of a check without settings: that of the GPU model, if it has one.

    Args:
        check: The check.
        gpu_type: `gpus.type` of a node set, such as `h100` or `nvidia_h100-80gb`.
    """
    defaults = DEFAULTS[check]
    return of_board(defaults.by_gpu, gpu_type, defaults.limit)


def allowed(check: HealthCheck, limit: float | None) -> str:
    """Return the allowed value of a check in words, as in the reason of a drain."""
    defaults = DEFAULTS[check]
    if defaults.bound is Bound.NONE or limit is None:
        return defaults.allowed
    return f"{limit:.10g}{'' if defaults.unit in {'', '%'} else ' '}{defaults.unit}"
