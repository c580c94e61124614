"""Parsers of the JSON that `scontrol` and `squeue` (Slurm 24.11 and 26.05) print."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from soperator_pulumi.errors import SlurmError
from soperator_pulumi.slurm.hostlist import expand
from soperator_pulumi.slurm.models import Job, Node, Reservation
from soperator_pulumi.wording import printable

T = TypeVar("T")

NO_REASON = "none"
"""Output of `sinfo` for a node without a reason. Slurm 24.11 keeps a reason until another one replaces it."""

_FINDINGS = "health:"
"""Begin of a node's `Extra` if its health checks wrote it (images/wire/slurm_wire/drain_reasons.py)."""

_YEAR_MINUTES = 365 * 24 * 60


def read_nodes(text: str) -> tuple[Node, ...]:
    """Read the answer of `scontrol show nodes --json`."""
    return _list(text, "nodes", _node)


def read_jobs(text: str) -> tuple[Job, ...]:
    """Read the answer of `squeue --json`, ended jobs included."""
    return _list(text, "jobs", _job)


def read_reservations(text: str) -> tuple[Reservation, ...]:
    """Read the answer of `scontrol show reservations --json`."""
    return _list(text, "reservations", _reservation)


def read_node_table(text: str) -> tuple[tuple[Node, ...], float]:
    """Read the answer of `scontrol show nodes --json`, with the time of the last change."""
    return _table(text, "nodes", _node)


def read_job_table(text: str) -> tuple[tuple[Job, ...], float]:
    """Read the answer of `squeue --json`, ended jobs included, with the time of the last change."""
    return _table(text, "jobs", _job)


def _table(text: str, key: str, read: Callable[[dict[str, Any]], T]) -> tuple[tuple[T, ...], float]:
    return _read(text, key, lambda found: (tuple(map(read, found[key])), _number(found["last_update"]) or 0.0))


def _list(text: str, key: str, read: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    return _read(text, key, lambda found: tuple(map(read, found[key])))


def _read(text: str, key: str, read: Callable[[dict[str, Any]], T]) -> T:
    try:
        return read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SlurmError(f"The answer is not Slurm's JSON with {key!r}: {text[:200]!r}.") from error


def _node(node: dict[str, Any]) -> Node:
    reason = str(node.get("reason") or "")
    extra = printable(str(node.get("extra") or ""))
    return Node(
        name=str(node["name"]),
        state=frozenset(node["state"]),
        features=frozenset(_words(node.get("active_features") or node.get("features") or ())),
        reason="" if reason == NO_REASON else reason,
        weight=_count(node.get("weight")) or 1,
        generic_resources=frozenset(_names_of(str(node.get("gres") or ""))),
        memory_mib=_count(node.get("real_memory")),
        cpus=_count(node.get("effective_cpus")),
        partitions=frozenset(_words(node.get("partitions") or ())),
        findings=tuple(_words(extra.removeprefix(_FINDINGS))) if extra.startswith(_FINDINGS) else (),
    )


def _names_of(gres: str) -> Iterator[str]:
    """Yield the names in a node's `Gres`: gpu and shard for `gpu:h100:8(S:0-1),shard:h100:16`."""
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        if name := part.partition(":")[0].strip():
            yield name


def _job(job: dict[str, Any]) -> Job:
    nodes = str(job.get("nodes") or "")
    asked = str(job.get("required_nodes") or "")
    required = _named_by_a_user(asked)
    return Job(
        job_id=int(job["job_id"]),
        user=str(job.get("user_name") or job.get("user_id") or ""),
        name=printable(str(job.get("name") or "")),
        partitions=frozenset(_words(job.get("partition") or "")),
        state=frozenset(_words(job["job_state"])),
        nodes=nodes,
        node_names=frozenset(expand(nodes)),
        required_nodes=required or frozenset(),
        unreadable_nodes=printable(asked) if required is None else "",
        node_count=max(1, _count(job.get("node_count"))),
        node_memory_mib=_node_memory_mib(job),
        node_cpus=_node_cpus(job),
        generic_resources=frozenset(_requested(job)),
        ends_at=_end(job),
        requeueable=bool(job.get("requeue")) and bool(job.get("batch_flag")),
        whole=_whole(job),
    )


_SEPARATORS = re.compile(r"(?P<brackets>\[[^\]]*\]?)|[\s,]+")
"""Separators of a list of nodes, and brackets, whose own ones stay. It reads every character of a user's list once."""


def _named_by_a_user(nodes: str) -> frozenset[str] | None:
    """Return the names in a user's own list of nodes; None if this package can't read it.

    The form may be the user's own. Slurm 24.11 and 26.05 take several separators, some at the ends, and blanks for
    separators. A form that isn't known fails no answer: it would keep admins from draining any node.
    """
    try:
        return frozenset(expand(_SEPARATORS.sub(lambda found: found["brackets"] or ",", nodes).strip(",")))
    except ValueError:
        return None


def _end(job: dict[str, Any]) -> float | None:
    """Return when a job's time limit ends it; None without a limit, or for a suspended job, whose time stands still.

    For a job without a limit Slurm reports an end in a year, and backfill turns that year into the limit.
    """
    minutes = _number(job.get("time_limit"))
    unlimited = minutes is None or minutes >= _YEAR_MINUTES
    return None if unlimited or "SUSPENDED" in job["job_state"] else _number(job.get("end_time")) or None


def _node_memory_mib(job: dict[str, Any]) -> int:
    """Return the least memory that a job needs on a node: what it asks for, or its CPUs' share."""
    by_cpu = _count(job.get("memory_per_cpu"))
    if not by_cpu:
        return _count(job.get("memory_per_node"))
    return by_cpu * _node_cpus(job)


def _node_cpus(job: dict[str, Any]) -> int:
    """Return the least CPUs that a job needs on its fullest node.

    `minimum_cpus_per_node` covers `--cpus-per-task`, `--ntasks-per-node` and `--mincpus`; `-n` with `-N` gives a share
    of all CPUs. After a restart of slurmctld, `max_nodes` of pending jobs is 0 (measured with 26.05).
    """
    most_nodes = _count(job.get("max_nodes"))
    spread = -(-_count(job.get("cpus")) // most_nodes) if most_nodes else 1
    return max(1, spread, _count(job.get("minimum_cpus_per_node")))


def _requested(job: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the generic resources that a job needs: gpu for `gres/gpu:h100:2` and `cpu:4,gres/gpu=1`."""
    for share in ("job", "node", "socket", "task"):
        for part in _words(job.get(f"tres_per_{share}") or ""):
            if found := re.match(r"gres[/:]([^:=]+)", part):
                yield found[1]


def _whole(job: dict[str, Any]) -> str:
    task = _number(job.get("array_task_id"))
    if task is not None:
        return f"{_count(job['array_job_id'])}_{task:.0f}"
    return str(_count(job.get("het_job_id")) or "")


def _count(value: object) -> int:
    return int(_number(value) or 0)


def _reservation(reservation: dict[str, Any]) -> Reservation:
    return Reservation(
        name=str(reservation["name"]),
        node_names=frozenset(expand(str(reservation.get("node_list") or ""))),
        starts_at=_number(reservation["start_time"]) or 0.0,
        ends_at=_number(reservation["end_time"]) or 0.0,
        users=str(reservation.get("users") or reservation.get("accounts") or ""),
    )


def _number(value: object) -> float | None:
    """Return a number of Slurm's JSON, which is plain or an object with flags for set and infinite."""
    if isinstance(value, dict):
        return float(value["number"]) if value["set"] and not value["infinite"] else None
    return float(value) if isinstance(value, (int, float)) else None


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [word for word in value.split(",") if word]
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else []
