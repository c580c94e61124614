"""`soperator status`: nodes, jobs, drains with their reasons, and failed checks of a cluster, on one screen."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from soperator_pulumi.cli.any_command import Command, add_cluster, add_json, print_json
from soperator_pulumi.cli.live_cluster import LiveCluster, failed_check, is_down, jobs_by_node, node_record
from soperator_pulumi.slurm.hostlist import compress, in_order
from soperator_pulumi.slurm.models import Job, Node, Snapshot
from soperator_pulumi.wording import counted, listed

EXIT_FOUND = 1

_MOST_ROWS = 15
"""Reasons that fit on one screen with the other lines."""

_MOST_JOBS = 5

_ROUND = "the rounds of checks have stopped: see the log of the pod's container `slurmd`"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_cluster(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the status of a cluster, and return 1 if nodes are drained or down."""
    return show(LiveCluster.chosen(given), as_json=given.json)


def show(cluster: LiveCluster, *, as_json: bool) -> int:
    """Print the status of a cluster, and return the exit status."""
    snapshot = cluster.slurm.snapshot()
    if as_json:
        print_json(record(cluster.namespace, snapshot))
    else:
        sys.stdout.writelines(f"{line}\n" for line in text(cluster.namespace, snapshot))
    return EXIT_FOUND if any(node.drained or is_down(node) for node in snapshot.nodes.values()) else 0


def text(name: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield the lines of the screen."""
    nodes = [snapshot.nodes[name] for name in in_order(snapshot.nodes)]
    yield f"{name}: {counted(len(nodes), 'node')}, {counted(len(snapshot.jobs), 'job')}"
    yield ""
    yield from _table("NODES", Counter(_condition(node) for node in nodes))
    yield from _table("JOBS", Counter(_state(job) for job in snapshot.jobs))
    rows = [*_by_reason(nodes)]
    if rows:
        yield "DRAINED OR DOWN"
        for names, reason in rows[:_MOST_ROWS]:
            of_reason = {*names}
            held = [job.reference for job in snapshot.jobs if job.active and job.node_names & of_reason]
            jobs = f"; jobs {listed(held, _MOST_JOBS)}" if held else ""
            yield f"  {compress(names)}: {reason or 'no reason given'}{jobs}"
        if len(rows) > _MOST_ROWS:
            yield f"  and {len(rows) - _MOST_ROWS} more reasons: --json has all"
        yield ""
    findings = _by_finding(nodes)
    if findings:
        yield "FAILED CHECKS THAT DRAIN NOTHING"
        yield from (f"  {compress(names)}: {_ROUND if check == 'round' else check}" for check, names in findings)
        yield ""
    if rows or findings:
        yield f"Next: soperator nodes explain -n {name} {compress(rows[0][0] if rows else findings[0][1])}"
    if not rows:
        yield "All nodes take jobs."


def record(name: str, snapshot: Snapshot) -> dict[str, Any]:
    """Return the status as values for a program."""
    nodes, held = [snapshot.nodes[name] for name in in_order(snapshot.nodes)], jobs_by_node(snapshot)
    return {
        "cluster": name,
        "nodes": [node_record(node, held[node.name]) for node in nodes],
        "jobs": dict(sorted(Counter(_state(job) for job in snapshot.jobs).items())),
        "failed_checks": dict(sorted(Counter(filter(None, map(failed_check, nodes))).items())),
        "reservations": [
            {
                "name": kept.name,
                "nodes": in_order(kept.node_names),
                "starts_at": kept.starts_at,
                "ends_at": kept.ends_at,
            }
            for kept in snapshot.reservations
        ],
    }


def _table(title: str, counts: Counter[str]) -> Iterator[str]:
    if counts:
        yield title
        yield from (f"  {state:12} {count:6}" for state, count in counts.most_common())
        yield ""


def _by_reason(nodes: list[Node]) -> Iterator[tuple[list[str], str]]:
    """Yield the nodes that accept no job, by reason, failed checks first."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.drained or is_down(node):
            found.setdefault(node.reason or (node.condition if is_down(node) else ""), []).append(node)
    for reason in sorted(found, key=lambda reason: not failed_check(found[reason][0])):
        yield [node.name for node in found[reason]], reason


def _by_finding(nodes: list[Node]) -> list[tuple[str, list[str]]]:
    """Return the failed checks that drain nothing, by name, with their nodes."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        for check in node.findings:
            found.setdefault(check, []).append(node.name)
    return sorted(found.items())


def _condition(node: Node) -> str:
    """Return the most important word about a node's state."""
    if node.drained:
        return "drained" if not node.busy_state else "draining"
    return "down" if is_down(node) else min(node.state & {"IDLE", "MIXED", "ALLOCATED"}).lower()


def _state(job: Job) -> str:
    if "COMPLETING" in job.state:
        return "completing"
    return "pending" if job.pending else "suspended" if "SUSPENDED" in job.state else "running"


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator status -n hpc --json",
    statuses={0: "all nodes take jobs", 1: "nodes are drained or down", 2: "slurmctld does not answer, or wrong use"},
)
