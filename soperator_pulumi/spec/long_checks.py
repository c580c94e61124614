"""Long checks as data: their programs, numbers of nodes, limits by GPU model, and sources.

Sources by their short names: "Azure NHC" is the AzureHPC Node Health Checks, "Oracle" the active health checks of
oci-hpc, "nccl-tests" and "nccl" their issues, "NVIDIA" the DCGM User Guide. "Judgement" is this project's. Bandwidths
of several nodes depend on the fabric, not on the GPU: only the user can give a limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.gpus import GpusSpec
from soperator_pulumi.spec.health_checks import DEFAULTS, HealthAction, HealthCheck, Needs, UndrainRule, of_board
from soperator_pulumi.spec.images import ImageReference
from soperator_pulumi.spec.job_containers import ContainersSpec, name_by_digest, name_by_tag
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import ObjectName, SlurmName
from soperator_pulumi.spec.types.schedule import Schedule
from soperator_pulumi.spec.validation.base import Model, number, whole
from soperator_pulumi.spec.validation.partial import known

_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


class LongCheck(StrEnum):
    """A long check."""

    RING_BANDWIDTH = "ring_bandwidth"
    """All-reduce over TCP in a ring of nodes, by this project's own program: bus bandwidth, and wrong sums."""
    MEMORY_BANDWIDTH = "memory_bandwidth"
    """Copies in a node's memory: bandwidth, and changed words."""
    STORAGE_BANDWIDTH = "storage_bandwidth"
    """A file on the volume of the homes: the lower bandwidth of writing and reading, and changed words."""
    TCP_BANDWIDTH = "tcp_bandwidth"
    """TCP between pairs of nodes, with iperf3."""
    RDMA_BANDWIDTH = "rdma_bandwidth"
    """RDMA between pairs of nodes, over the first RDMA device of a node, with ib_write_bw."""
    NCCL_BANDWIDTH = "nccl_bandwidth"
    """All-reduce over all GPUs of a node, with all_reduce_perf: bus bandwidth, and wrong values. The limits
    are those of boards with eight GPUs (HGX)."""
    NCCL_PAIRS = "nccl_pairs"
    """The same over pairs of nodes."""
    GPU_DIAGNOSTICS = "gpu_diagnostics"
    """Tests of the GPUs' memory, load and links, with `dcgmi diag`."""


_OWN_PROGRAMS = {"ring", "memory", "storage"}
"""Programs of this project, at a path that every jail shows."""


class LongNeeds(StrEnum):
    """Nodes that a long check applies to."""

    ALL = "all"
    NVIDIA = "whole NVIDIA GPUs"
    SEVERAL = "several whole NVIDIA GPUs"
    """A single GPU has no bus bandwidth."""
    RDMA = "RDMA devices"

    @property
    def of_gpus(self) -> bool:
        """True for checks that load GPUs."""
        return self in {LongNeeds.NVIDIA, LongNeeds.SEVERAL}


@dataclass(frozen=True)
class NcclLimit:
    """Lowest bus bandwidth of all_reduce_perf on the eight GPUs of a board, in GB/s: 90% of published values."""

    nvls: float
    """With NVLS: NCCL reduces in the switches (SHARP)."""
    plain: float
    """Without NVLS: NCCL_NVLS_ENABLE=0, an older NCCL, a virtual machine without multicast."""
    source: str


@dataclass(frozen=True)
class LongDefaults:
    """Defaults of a long check."""

    program: str
    """Program of the job: `images/health/long_checks/programs.py`."""
    needs: LongNeeds
    unit: str
    source: str
    """Source of the limits."""
    size: int = 1
    """Nodes of one job."""
    limit: float | None = None
    """Lowest value. None: results are reported, and until a limit is given only wrong results fail."""
    by_gpu: Mapping[str, NcclLimit] = field(default_factory=dict)
    """Lowest values for boards with eight GPUs of a model; the key is a part of `gpus.type` in lower case."""
    time_limit_minutes: int = 5
    arguments: Mapping[str, float] = field(default_factory=dict)
    """Sizes in MiB, times in seconds, or a level of the program."""


BOARD_GPUS = 8
"""GPUs of the boards (HGX) on which the limits of models were measured."""

NCCL_LIMITS: Mapping[str, NcclLimit] = {
    "a100": NcclLimit(228, 228, "Azure NHC; no NVLS"),
    "h100": NcclLimit(430, 330, "nccl#1374 and Azure NHC (480, 460); without NVLS nccl-tests#212 and #309 (370)"),
    "h200": NcclLimit(430, 330, "nccl-tests#272 and Azure NHC (475, 431); without NVLS as H100"),
    "h800": NcclLimit(190, 145, "nccl#1374 (215); without NVLS 82% of its 200 GB/s, as H100 has of 450"),
    "h20": NcclLimit(330, 330, "Judgement: the links of H100; nothing is published with NVLS"),
    "b200": NcclLimit(740, 620, "nccl#1807 (830); without NVLS as B300"),
    "b300": NcclLimit(760, 620, "nccl#2140 (845, and 695 without NVLS); Oracle has 800"),
}
"""Values in AWS' scripts exceed published ones, and Oracle's 440 for B200 passes a half-broken node. A800, GB200 and
GB300 have no limit, as nothing is published about single nodes with them."""

LONG_DEFAULTS: Mapping[LongCheck, LongDefaults] = {
    LongCheck.RING_BANDWIDTH: LongDefaults(
        *("ring", LongNeeds.ALL, "GB/s", "Judgement: a link of 1 Gb/s carries 0.12 GB/s"),
        size=4,
        limit=0.1,
        arguments={"mib": 64, "seconds": 10},
    ),
    LongCheck.MEMORY_BANDWIDTH: LongDefaults(
        *("memory", LongNeeds.ALL, "GB/s", "Judgement: one core copies more on any server"),
        limit=2,
        arguments={"mib": 512, "seconds": 30},
    ),
    LongCheck.STORAGE_BANDWIDTH: LongDefaults(
        *("storage", LongNeeds.ALL, "GB/s", "Yours: none until a limit is given"), arguments={"mib": 1024}
    ),
    LongCheck.TCP_BANDWIDTH: LongDefaults(
        *("tcp", LongNeeds.ALL, "Gb/s", "Yours: none until a limit is given"),
        size=2,
        arguments={"seconds": 10, "streams": 4},
    ),
    LongCheck.RDMA_BANDWIDTH: LongDefaults(
        *("rdma", LongNeeds.RDMA, "Gb/s", "Yours: 90% of the device's rate. Azure NHC has 380 and 360 for 400"),
        size=2,
        arguments={"seconds": 10},
    ),
    LongCheck.NCCL_BANDWIDTH: LongDefaults(
        *("nccl", LongNeeds.SEVERAL, "GB/s", "By model, below"),
        by_gpu=NCCL_LIMITS,
        time_limit_minutes=10,
        arguments={"mib": 8192},
    ),
    LongCheck.NCCL_PAIRS: LongDefaults(
        *("nccl", LongNeeds.NVIDIA, "GB/s", "Yours: 90% of what the fabric has when it is new"),
        size=2,
        time_limit_minutes=10,
        arguments={"mib": 8192},
    ),
    LongCheck.GPU_DIAGNOSTICS: LongDefaults(
        *("dcgm", LongNeeds.NVIDIA, "", "NVIDIA: the tests' own; level 2 takes about 2 minutes, 3 about 15, 4 hours"),
        time_limit_minutes=30,
        arguments={"level": 2},
    ),
}
"""Defaults of all long checks."""


class LongCheckSpec(Model):
    """A long check. Keys that are left out keep the check's defaults (docs/long-checks.md)."""

    enabled: StrictBool = True
    """Run the check."""
    schedule: Schedule = "*/15 * * * *"
    """Schedule of runs in cron's syntax, in UTC. A run checks idle nodes that are due. Default: every 15 minutes."""
    every: Annotated[Duration, lasting(timedelta(seconds=1), timedelta(days=365))] = _DAY
    """Time until a node that passed is checked again. Default: 1d."""
    nodes_per_run: Annotated[int, whole(1, 1000)] = 32
    """Largest number of nodes per run. Default: 32."""
    group: Annotated[int, whole(2, 256)] | None = None
    """Nodes of one job, for `ring_bandwidth`. A slow group is bisected to the slow node. Default: 4."""
    limit: Annotated[float, number(0, 1_000_000, what="a number without a unit,")] | None = None
    """Lowest value, in the check's unit. Default: the check's own: the one for boards with eight GPUs of the model, if
    there is one."""
    action: HealthAction = HealthAction.DRAIN
    """Consequence of a failure: `log` or `drain`."""
    undrain: UndrainRule = UndrainRule.AUTO
    """Rule that ends a drain by the check. `auto`: a later run finds the node healthy. `never`: an administrator
    undrains."""
    time_limit: Annotated[Duration, lasting(_MINUTE, timedelta(hours=12))] | None = None
    """Time limit of a job. A job that takes longer has failed. Default: the check's own."""
    start_within: Annotated[Duration, lasting(timedelta(seconds=10), timedelta(hours=1))] = timedelta(minutes=5)
    """Time that a job may wait in the queue before it is cancelled. Default: 5m."""
    nice: Annotated[int, whole(0, 2_147_483_645)] = 10_000
    """Adjustment of the job's priority (sbatch --nice): lower than that of users' jobs. Default: 10000."""
    partition: SlurmName | None = None
    """Partition of the jobs: only its nodes are checked. Default: the first partition of the node."""
    qos: ObjectName | None = None
    """QoS of the jobs, such as one that others preempt. It must exist in the accounting database."""
    reservation: ObjectName | None = None
    """Reservation of the jobs, open to the user `soperator-health`: only its nodes are checked. Default: none."""
    image: ImageReference | None = None
    """Image of `containers.images` in which the check's program runs, from its PATH. Default: the program is the
    jail's."""
    arguments: dict[str, Annotated[float, number(0, 1_000_000, what="a number,")]] = Field(default_factory=dict)
    """Sizes in MiB, times in seconds, or a level of the program, under the names of the defaults."""


def long_problems(checks: Mapping[LongCheck, LongCheckSpec], *, has_accounting: bool) -> Iterator[Problem]:
    """Yield the problems of long checks.

    Args:
        checks: The checks.
        has_accounting: True if the cluster has a database with QoS.
    """
    for name, check in checks.items():
        if not known(check):
            continue
        path, defaults = f"health.long_checks.{name}", LONG_DEFAULTS[name]
        if check.action is HealthAction.DRAIN_AND_REPLACE:
            yield Problem(f"{path}.action", 'got "drain_and_replace", but only "log" and "drain" are allowed.')
        if check.undrain is UndrainRule.VERIFY:
            yield Problem(
                f"{path}.undrain", 'got "verify", but only "auto" and "never" are allowed: a run is itself the test.'
            )
        if known(check.group) and check.group is not None and defaults.size <= 2:
            yield Problem(
                f"{path}.group", f"has no effect: every job of the check takes {defaults.size} of the nodes. Remove it."
            )
        if known(check.limit) and check.limit is not None and not defaults.unit:
            yield Problem(f"{path}.limit", "has no effect: the check compares no number. Remove it.")
        if known(check.qos) and check.qos is not None and not has_accounting:
            yield Problem(f"{path}.qos", "needs accounting, which has the QoS. Remove it, or turn accounting on.")
        for argument in check.arguments:
            if argument not in defaults.arguments:
                allowed = ", ".join(defaults.arguments)
                yield Problem(f"{path}.arguments.{argument}", f"is not an argument of the check. Allowed: {allowed}.")


def image_problems(checks: Mapping[LongCheck, LongCheckSpec], containers: ContainersSpec | None) -> Iterator[Problem]:
    """Yield images of checks that jobs would have to pull, or whose program comes with the workers."""
    images = containers.images if known(containers) and containers is not None else []
    if not known(containers, images) or not known(*images):
        return
    published = {name for image in images for name in (name_by_digest(image), name_by_tag(image))}
    for name, check in checks.items():
        if not known(check) or not check.enabled or not known(check.image) or check.image is None:
            continue
        path = f"health.long_checks.{name}.image"
        if LONG_DEFAULTS[name].program in _OWN_PROGRAMS:
            yield Problem(path, "has no effect: the program comes with the workers. Remove it.")
        elif name_by_digest(check.image) not in published:
            yield Problem(
                path,
                f'got "{check.image}", which is not in containers.images. Add it there: a pull would take the time of '
                "the check's job.",
            )


def applies(check: LongCheck, node_set: NodeSetSpec) -> bool:
    """Return True if a check applies to the nodes of a set."""
    needs, gpus = LONG_DEFAULTS[check].needs, node_set.gpus
    if needs is LongNeeds.RDMA:
        return node_set.rdma is not None
    if needs is LongNeeds.ALL:
        return True
    least = 2 if needs is LongNeeds.SEVERAL else 1
    return gpus is not None and gpus.of_nvidia and gpus.count >= least and not gpus.mig


def verifies(check: LongCheck, quick: HealthCheck) -> bool:
    """Return True if a long check loads a quick check's hardware, so that a pass ends drains with `undrain: verify`."""
    if DEFAULTS[quick].needs in {Needs.NVIDIA, Needs.WHOLE_GPUS}:
        return LONG_DEFAULTS[check].needs.of_gpus
    if "network" in quick:
        return check in {LongCheck.RDMA_BANDWIDTH, LongCheck.NCCL_PAIRS}
    return check is LongCheck.MEMORY_BANDWIDTH or not quick.startswith("memory")


def first_checks(checks: Mapping[LongCheck, LongCheckSpec], node_set: NodeSetSpec) -> list[LongCheck]:
    """Return the checks that verify new nodes of a set: single-node checks, as other checks need nodes in service."""
    alone = [name for name, check in checks.items() if check.enabled and LONG_DEFAULTS[name].size == 1]
    reaching = [name for name in alone if _reaches(checks[name], node_set)]
    return [name for name in reaching if checks[name].undrain is UndrainRule.AUTO and applies(name, node_set)]


def _reaches(check: LongCheckSpec, node_set: NodeSetSpec) -> bool:
    """Return False if the nodes of a set are not in the check's partition; True if a key has a problem."""
    if not known(check.partition, node_set.partitions) or check.partition is None:
        return True
    return check.partition in node_set.partitions


def _knows_gpus(node_set: NodeSetSpec) -> bool:
    """Return False if a key of the node set's GPUs has a problem."""
    gpus = node_set.gpus
    return known(gpus) and (gpus is None or known(gpus.resource, gpus.count, gpus.mig))


def new_node_problems(
    checks: Mapping[LongCheck, LongCheckSpec], node_sets: tuple[NodeSetSpec, ...], *, verify_new_nodes: bool
) -> Iterator[Problem]:
    """Yield the node sets whose new nodes no check would verify."""
    if not verify_new_nodes or not known(*checks.values()):
        return
    for node_set in node_sets:
        if known(node_set) and known(node_set.name) and _knows_gpus(node_set) and not first_checks(checks, node_set):
            yield Problem(
                "health.verify_new_nodes",
                f'no long check would verify new nodes of "{node_set.name}": they would stay drained. Add one of one '
                "node "
                'to health.long_checks, such as "memory_bandwidth", with "undrain": "auto", and without a partition.',
            )


def long_limit(check: LongCheck, given: float | None, gpus: GpusSpec | None, *, nvls: bool = True) -> float | None:
    """Return the limit of a check on nodes with these GPUs; None if none is known.

    Args:
        check: The check.
        given: Limit given by the user, which applies to all nodes.
        gpus: GPUs of the nodes.
        nvls: True if NCCL reduces in the switches.
    """
    defaults = LONG_DEFAULTS[check]
    if given is not None or gpus is None or gpus.count != BOARD_GPUS:
        return defaults.limit if given is None else given
    found = of_board(defaults.by_gpu, gpus.type, None)
    return defaults.limit if found is None else found.nvls if nvls else found.plain
