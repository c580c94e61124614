"""Metrics of nodes."""

from collections.abc import Iterable

from slurm_exporter.metric_table import NODE_STATES
from slurm_exporter.node_rows import NodeRow
from slurm_exporter.samples import Samples, Sums

_BASES = {"allocated": "alloc", "mixed": "mixed", "idle": "idle", "down": "down"}
_FLAGS = {
    "COMPLETING": "completing",
    "FAIL": "fail",
    "MAINTENANCE": "maint",
    "NOT_RESPONDING": "noresp",
    "PLANNED": "planned",
    "RESERVED": "resv",
}


def of_nodes(rows: Iterable[NodeRow]) -> Samples:
    """Return the metrics of the nodes and of their partitions."""
    sums = Sums()
    for state in ("", *(f"_{state}" for state in NODE_STATES)):
        sums.add(f"slurm_nodes{state}", value=0)
    for row in rows:
        sums.add("slurm_nodes")
        for state in _states(row):
            sums.add(f"slurm_nodes_{state}")
        _add_node(sums, row)
        for partition in row.partitions:
            _add_to_partition(sums, partition, row)
    return sums.samples()


def _states(row: NodeRow) -> Iterable[str]:
    if row.state in _BASES:
        yield _BASES[row.state]
    yield from (state for flag, state in _FLAGS.items() if flag in row.flags)
    if row.drains:
        yield from ("drain", "draining" if row.is_busy else "drained")


def _add_node(sums: Sums, row: NodeRow) -> None:
    node = (row.name,)
    sums.add("slurm_node_info", (row.name, row.node_set))
    sums.add("slurm_node_state", (row.name, row.state))
    sums.add("slurm_node_unavailable", node, row.is_unavailable)
    sums.add("slurm_node_cpus", node, row.cpus)
    sums.add("slurm_node_cpus_alloc", node, row.cpus_alloc)
    sums.add("slurm_node_gpus", node, row.gpus)
    sums.add("slurm_node_gpus_alloc", node, row.gpus_alloc)
    sums.add("slurm_node_memory_bytes", node, row.memory_bytes)
    sums.add("slurm_node_memory_alloc_bytes", node, row.memory_alloc_bytes)
    if row.memory_free_bytes is not None:
        sums.add("slurm_node_memory_free_bytes", node, row.memory_free_bytes)
    for check in row.findings:
        sums.add("slurm_health_finding", (row.name, check))
    if not row.drains:
        return
    labels = (row.name, row.drain_source, row.operation, row.health_check, row.reason)
    sums.add("slurm_node_drain_since_seconds", labels, row.reason_time)
    if row.health_check:
        sums.add("slurm_health_check_failed", (row.name, row.health_check))
    if row.asks_for_replacement:
        sums.add("slurm_health_replace_machine", (row.name, row.health_check))


def _add_to_partition(sums: Sums, partition: str, row: NodeRow) -> None:
    labels = (partition,)
    sums.add("slurm_partition_nodes", labels)
    sums.add("slurm_partition_cpus", labels, row.cpus)
    sums.add("slurm_partition_gpus", labels, row.gpus)
    sums.add("slurm_partition_nodes_cpus_alloc", labels, row.cpus_alloc)
    sums.add("slurm_partition_nodes_gpus_alloc", labels, row.gpus_alloc)
