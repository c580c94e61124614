"""Answers of slurmctld in a line: nodes, jobs and node sets that leave, as the planner takes them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from soperator_pulumi.slurm.drain.plan import Plan, plan
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec

OWNER = "hpc"
RUN = Marker(OWNER, Operation.SCALE_DOWN, "1a2b3c")
EARLIER = Marker(OWNER, Operation.SCALE_DOWN, "0f0f0f")
NOW = datetime(2026, 11, 24, 13, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0


def node(name: str, state: str = "IDLE", reason: str | Marker = "") -> Node:
    """Return a node in `state`, its parts joined by `+`."""
    return Node(name, frozenset(state.split("+")), frozenset(), str(reason))


def job(
    job_id: int,
    nodes: str = "",
    *,
    state: str = "RUNNING",
    user: str = "alice",
    name: str = "train.sh",
    ends_in: float | None = None,
    **more: Any,
) -> Job:
    """Return a job on `nodes`, names joined by commas; `ends_in` seconds from now; requeueable unless said."""
    return Job(
        job_id,
        user,
        name,
        frozenset({"main"}),
        frozenset(state.split("+")),
        nodes,
        frozenset(filter(None, nodes.split(","))),
        ends_at=None if ends_in is None else NOW + ends_in,
        **{"requeueable": True, **more},
    )


def reservation(name: str, nodes: str, *, starts_in: float = 0.0, ends_in: float = HOUR) -> Reservation:
    """Return a reservation of `nodes`, names joined by commas."""
    return Reservation(name, frozenset(nodes.split(",")), NOW + starts_in, NOW + ends_in, "root")


def snapshot(
    nodes: Iterable[Node] = (), jobs: Iterable[Job] = (), reservations: Iterable[Reservation] = ()
) -> Snapshot:
    """Return what slurmctld says at one moment."""
    return Snapshot({item.name: item for item in nodes}, (*jobs,), (*reservations,), NOW)


def leaving(
    names: str = "gpu-1,gpu-2", *, staying: str = "gpu-0", never_started: str = "", renewed: bool = False, **policy: Any
) -> DrainRequest:
    """Return a node set some of whose nodes leave, names joined by commas; `policy` as a user writes it."""
    going, rest = (tuple(filter(None, text.split(","))) for text in (names, staying))
    return DrainRequest(
        going[0].rpartition("-")[0],
        going,
        rest,
        DrainSpec.model_validate(policy),
        len(going) + len(rest),
        len(going) + len(rest) if renewed else len(rest),
        frozenset(filter(None, never_started.split(","))),
    )


def planned(
    node_sets: DrainRequest | Iterable[DrainRequest],
    nodes: Iterable[Node] = (),
    jobs: Iterable[Job] = (),
    reservations: Iterable[Reservation] = (),
    *,
    marker: Marker = RUN,
    elapsed: float = 0.0,
    treated: Mapping[int, float] | None = None,
    unrequeueable: Mapping[int, str] | None = None,
    others: Mapping[str, Mapping[str, Any]] | None = None,
) -> Plan:
    """Return the plan of one look; `others` are the policies of other node sets, as a user writes them."""
    return plan(
        [node_sets] if isinstance(node_sets, DrainRequest) else [*node_sets],
        snapshot(nodes, jobs, reservations),
        marker,
        elapsed_seconds=elapsed,
        now=NOW,
        treated=treated or {},
        unrequeueable=unrequeueable or {},
        others={name: DrainSpec.model_validate(policy) for name, policy in (others or {}).items()},
    )
