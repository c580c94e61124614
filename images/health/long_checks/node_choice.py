"""Nodes of a run: idle ones that are due, the longest unchecked first, in groups. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence

from long_checks.long_settings import LongSettings
from long_checks.slurm_calls import SlurmNode


def node_set_of(node: SlurmNode, settings: LongSettings) -> str | None:
    """Return the node set of a node, from its features; None for a node that is not checked."""
    return next((feature for feature in node.features if feature in settings.node_sets), None)


def partition_of(node: SlurmNode, settings: LongSettings) -> str | None:
    """Return the partition for a check's jobs on a node: the configured one, or the node's first.

    slurmctld refuses a job if its partition lacks any of its nodes. None for a node that no job of the check can reach.
    """
    if settings.partition:
        return settings.partition if settings.partition in node.partitions else None
    return next(iter(node.partitions), None)


def is_reached(node: SlurmNode, settings: LongSettings) -> bool:
    """Return True for a node that the check covers and that its jobs can reach."""
    return None not in _kind(node, settings)


def may_share_a_job(one: SlurmNode, other: SlurmNode, settings: LongSettings) -> bool:
    """Return True for nodes of one node set and one partition."""
    return _kind(one, settings) == _kind(other, settings)


def _kind(node: SlurmNode, settings: LongSettings) -> tuple[str | None, str | None]:
    return node_set_of(node, settings), partition_of(node, settings)


def idle_nodes(nodes: Iterable[SlurmNode], settings: LongSettings) -> list[SlurmNode]:
    """Return the idle nodes that the check covers and can reach."""
    return [node for node in nodes if node.is_idle(settings.reservation) and is_reached(node, settings)]


def without_partition(nodes: Iterable[SlurmNode], settings: LongSettings) -> list[str]:
    """Return the nodes that the check covers but that are in no partition, so that no job reaches them."""
    return [node.name for node in nodes if node_set_of(node, settings) is not None and not node.partitions]


def groups(
    nodes: Iterable[SlurmNode], checked: Mapping[str, float], settings: LongSettings, now: float
) -> list[tuple[SlurmNode, ...]]:
    """Return the nodes of each job of a run, all of a group of one node set and one partition.

    Args:
        nodes: All nodes.
        checked: Time of each node's last pass, in seconds since 1970.
        settings: Settings of the check.
        now: Time in seconds since 1970.
    """
    by_kind: dict[tuple[str | None, str | None], list[SlurmNode]] = {}
    for node in sorted(
        idle_nodes(nodes, settings), key=lambda idle_node: (checked.get(idle_node.name, 0), idle_node.name)
    ):
        by_kind.setdefault(_kind(node, settings), []).append(node)
    found: list[tuple[SlurmNode, ...]] = []
    for candidates in by_kind.values():
        due = [node for node in candidates if not 0 <= now - checked.get(node.name, 0) < settings.every_seconds]
        others = [node for node in candidates if node not in due]
        for start in range(0, len(due), settings.size):
            group = due[start : start + settings.size]
            # The last group is filled up with nodes that are not due; a check of one link needs two nodes.
            group += others[: max(0, settings.size - len(group))]
            if len(group) == settings.size or (settings.size > 2 and len(group) > 1):
                found.append(tuple(group))
    return within(found, settings.nodes_per_run)


def within(found: Sequence[tuple[SlurmNode, ...]], most: int) -> list[tuple[SlurmNode, ...]]:
    """Return the first groups that together have no more nodes than a run may use, and at least one group."""
    taken: list[tuple[SlurmNode, ...]] = []
    count = 0
    for group in found:
        if taken and count + len(group) > most:
            break
        taken.append(group)
        count += len(group)
    return taken
