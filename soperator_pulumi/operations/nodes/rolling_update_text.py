"""Text of a rolling update for users: the order in its preview, and its progress."""

from collections.abc import Sequence
from datetime import tzinfo

from soperator_pulumi.operations.nodes.recreation import Recreation
from soperator_pulumi.operations.nodes.undrain import continue_or_undo
from soperator_pulumi.slurm.drain.plan import Plan
from soperator_pulumi.slurm.drain.plan_text import waited_for
from soperator_pulumi.slurm.drain.reason import Operation
from soperator_pulumi.slurm.hostlist import compress, in_order

_GROUPS_SHOWN = 10


def order(recreation: Recreation, names: Sequence[str]) -> str:
    """Return the order in which these nodes would be recreated if nothing else changed, in one line."""
    groups = recreation.groups(names)
    shown = ", then ".join(compress(group) for group in groups[:_GROUPS_SHOWN])
    left = sum(len(group) for group in groups[_GROUPS_SHOWN:])
    more = f", then the other {left}" if left else ""
    return f"At most {recreation.budget} at a time (rolling_update.max_unavailable): {shown}{more}."


def counts(recreation: Recreation) -> list[str]:
    """Return which missing nodes with new pods count against max_unavailable or max_unready, in lines."""
    lost, excused = recreation.lost_by_update, recreation.excused
    why = "an earlier run of this update has recreated them, and no node has joined with the new template"
    return [
        *([f"against max_unavailable ({recreation.budget}) count {compress(in_order(lost))}: {why}"] if lost else []),
        *([f"against max_unready ({recreation.tolerated}) count {compress(in_order(excused))}"] if excused else []),
    ]


def to_go_on(recreation: Recreation) -> str:
    """Return how to update the other nodes if only the machines of the lost ones are broken; empty if none is lost."""
    if not recreation.lost_by_update:
        return ""
    lost = compress(in_order(recreation.lost_by_update))
    budget = recreation.budget + len(recreation.lost_by_update)
    return (
        f"\nUntil a node has joined with the new template, {lost} counts against rolling_update.max_unavailable "
        f"({recreation.budget}). If the template is right and only machines are broken, raise it for one run, to "
        f"{budget}."
    )


def progress(recreation: Recreation, plan: Plan, now: float, left: str, zone: tzinfo | None = None) -> str:
    """Return the nodes that are recreated and drained now, what the latter wait for, and how to continue and undo.

    Args:
        recreation: The node set.
        plan: Last plan of the nodes that are drained.
        now: Time in seconds since 1970.
        left: Time left for the jobs of the first drained node, in words; empty without a limit.
        zone: Time zone of the output; None for that of the machine.
    """
    size, joining = len(recreation.status.names), in_order(recreation.joining)
    draining = in_order(recreation.draining & plan.waiting.keys())
    nodes_left, time = len(recreation.outdated) - len(recreation.draining), f" ({left})" if left else ""
    parts = [
        f"{size - len({*recreation.outdated, *joining})} of {size} nodes have the new pods",
        f"recreates {compress(joining)}" if joining else "",
        f"drains {compress(draining)}{time}: {'; '.join(waited_for(plan, draining, now, zone))}" if draining else "",
        f"{nodes_left} left" if nodes_left else "",
        "waits for idle nodes (rolling_update.idle_wait)" if nodes_left and recreation.only_idle else "",
    ]
    return f"{'; '.join(filter(None, parts))}. {continue_or_undo(Operation.ROLLING_UPDATE, [])}"
