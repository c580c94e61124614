"""Nodes, as `scontrol --oneliner --detail show nodes` prints them with times in seconds since 1970."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slurm_exporter.samples import Unread, printable, whole_number
from slurm_wire import drain_reasons, records

COMMAND = ("scontrol", "--oneliner", "--detail", "show", "nodes")

_BUSY = {"ALLOCATED", "MIXED", "COMPLETING"}
_BASE_STATES = {"allocated", "down", "error", "future", "idle", "mixed", "unknown"}
_MIB = 1024**2
_NO_NODES = "No nodes in the system"


class UnknownFormError(Exception):
    """A field with a value of an unknown form."""


@dataclass(frozen=True)
class NodeRow:
    """A node."""

    name: str
    state: str
    """Base state: idle, mixed, allocated, down, and so on."""
    flags: frozenset[str]
    """Flags of the state, such as DRAIN and NOT_RESPONDING."""
    cpus: int
    """CPUs that jobs can have (`CPUEfctv`): all of the node but those of reserved cores."""
    cpus_alloc: int
    memory_bytes: int
    memory_alloc_bytes: int
    memory_free_bytes: int | None
    """Free memory as the node's kernel counts it; None if slurmd has not reported it."""
    gpus: int
    gpus_alloc: int
    partitions: tuple[str, ...]
    reason: str
    reason_time: int
    findings: tuple[str, ...]
    """Checks that fail without draining the node. The node's checks write them into `Extra`."""

    @property
    def node_set(self) -> str:
        """Return the node set, which the name of a node begins with."""
        return self.name.rpartition("-")[0]

    @property
    def drains(self) -> bool:
        """Return True if the node accepts no further job."""
        return "DRAIN" in self.flags

    @property
    def is_busy(self) -> bool:
        """Return True if jobs run or end on the node."""
        return self.state.upper() in _BUSY or "COMPLETING" in self.flags

    @property
    def responds(self) -> bool:
        """Return True if slurmd answers slurmctld."""
        return "NOT_RESPONDING" not in self.flags

    @property
    def is_unavailable(self) -> bool:
        """Return True if the node accepts no job: drained, down, failing, or silent."""
        return self.drains or self.state in {"down", "unknown", "error"} or "FAIL" in self.flags or not self.responds

    @property
    def health_check(self) -> str:
        """Return the health check that the node's reason names; empty if it names none."""
        return drain_reasons.named_check(self.reason)

    @property
    def asks_for_replacement(self) -> bool:
        """Return True if the health check that drains the node asks for another machine."""
        return drain_reasons.asks_for_replacement(self.reason)

    @property
    def operation(self) -> str:
        """Return the operation of this package, or the hook of jobs, that the node's reason names. Empty for none."""
        return drain_reasons.named_operation(self.reason) or drain_reasons.named_hook(self.reason)

    @property
    def drain_source(self) -> str:
        """Return the origin of the reason: health, hook, deployment or admin."""
        if self.health_check:
            return "health"
        if drain_reasons.named_hook(self.reason):
            return "hook"
        return "deployment" if self.operation else "admin"


def parse(text: str, unread: Unread) -> Iterator[NodeRow]:
    """Yield the nodes of the program's output. A node with a field of an unknown form is skipped.

    Raises:
        ValueError: no node has the form of one.
    """
    lines = [line for line in records.lines(text) if line != _NO_NODES]
    rows = []
    for line in lines:
        try:
            rows.append(_row(line, unread))
        except UnknownFormError as error:
            unread.add(*error.args)
    if lines and not rows:
        raise ValueError(f"none of {len(lines)} nodes has a known form: {printable(lines[0][:200])}")
    yield from rows


def _row(line: str, unread: Unread) -> NodeRow:
    if not line.startswith("NodeName="):
        raise UnknownFormError("line", line)
    values = records.fields(line)
    state, *flags = _field(values, "State").replace("*", "+NOT_RESPONDING").split("+")
    if state.lower() not in _BASE_STATES:
        unread.add("State", state)
    reason, reason_time = _reason(line, values, unread)
    free = values.get("FreeMem", "")
    return NodeRow(
        name=values["NodeName"],
        state=state.lower(),
        flags=frozenset(flags),
        cpus=_number(values, "CPUEfctv"),
        cpus_alloc=_number(values, "CPUAlloc"),
        memory_bytes=_number(values, "RealMemory") * _MIB,
        memory_alloc_bytes=_number(values, "AllocMem") * _MIB,
        memory_free_bytes=None if (mib := whole_number(free)) is None else mib * _MIB,
        gpus=_gpus(values, "Gres", unread),
        gpus_alloc=_gpus(values, "GresUsed", unread),
        partitions=records.words(values.get("Partitions", "")),
        reason=reason,
        reason_time=reason_time,
        findings=drain_reasons.findings(values.get("Extra", "")),
    )


def _field(values: Mapping[str, str], key: str) -> str:
    if key not in values:
        raise UnknownFormError(key, "missing")
    return values[key]


def _number(values: Mapping[str, str], key: str) -> int:
    text = _field(values, key)
    number = whole_number(text)
    if number is None:
        raise UnknownFormError(key, text)
    return number


def _reason(line: str, values: Mapping[str, str], unread: Unread) -> tuple[str, int]:
    """Return the reason and its time, since 1970; an empty text and 0 if the node has none."""
    found = records.reason(line)
    time = whole_number(found.time) if found else None
    if time is None and "Reason" in values:
        unread.add("Reason", found.time if found else values["Reason"])
    return printable(found.text) if found else "", time or 0


def _gpus(values: Mapping[str, str], key: str, unread: Unread) -> int:
    """Return the number of whole GPUs in `gpu:h100:8(S:0-1),shard:16`."""
    total = 0
    for item in re.sub(r"\([^)]*\)", "", values.get(key, "")).split(","):
        kind, *_, count = item.split(":") if ":" in item else (item, "")
        if kind == "gpu" and (number := whole_number(count)) is not None:
            total += number
        elif kind == "gpu":
            unread.add(key, item)
    return total
