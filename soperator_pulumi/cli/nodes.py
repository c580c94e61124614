"""`soperator nodes`: drains nodes, undrains them, or explains why they accept no job and what to do."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from soperator_pulumi.cli import say
from soperator_pulumi.cli.any_command import Command, add_cluster, add_json, print_json
from soperator_pulumi.cli.live_cluster import (
    LiveCluster,
    failed_check,
    is_down,
    jobs_by_node,
    marker_of,
    named_nodes,
    node_record,
)
from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.nodes.lease import ClusterLease
from soperator_pulumi.operations.progress import Clock, MachineClock, until
from soperator_pulumi.slurm.drain.formatting import ending, named
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Node, Snapshot
from soperator_pulumi.wording import counted

EXIT_BUSY = 1

_LONGEST_WAIT_SECONDS = 30 * 86_400
_LONGEST_PAUSE_SECONDS = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    which = argparse.ArgumentParser(add_help=False)
    add_cluster(which)
    which.add_argument("nodes", metavar="NODE", nargs="+", help="nodes, also as gpu-[0-3]")
    drain = commands.add_parser("drain", parents=[which], help="let running jobs end, and start no more")
    drain.add_argument("--reason", required=True, type=_reason, help="reason, for whoever reads `sinfo -R` next")
    drain.add_argument(
        "--wait", metavar="SECONDS", type=_seconds, default=0.0, help="wait until no job is left (default: do not wait)"
    )
    drain.add_argument("--force", action="store_true", help="replace the reason of nodes that are drained already")
    undrain = commands.add_parser("undrain", parents=[which], help="let jobs start again")
    undrain.add_argument("--force", action="store_true", help="also end drains of deployments and of pods that stop")
    add_json(commands.add_parser("explain", parents=[which], help="print why nodes take no job, and what to do"))


def run(given: argparse.Namespace) -> int:
    """Carry out a command, and return the exit status."""
    return carry_out(given, LiveCluster.chosen(given), MachineClock())


def carry_out(given: argparse.Namespace, cluster: LiveCluster, clock: Clock) -> int:
    """Carry out a command on a cluster, and return the exit status.

    Raises:
        SoperatorError: A node is unknown, or a drain is not the user's to change.
    """
    if given.command == "explain":
        snapshot = cluster.slurm.snapshot(reservations=False)
        _explain(cluster, snapshot, named_nodes(snapshot, given.nodes), as_json=given.json, now=clock.wall())
        return 0
    with ClusterLease(cluster.kube, cluster.namespace, cluster.namespace, say, clock).held():
        nodes = named_nodes(cluster.slurm.snapshot(reservations=False), given.nodes)
        if given.command == "undrain":
            return _undrain(cluster, nodes, force=given.force)
        _refuse([node for node in nodes if node.drained], force=given.force, act="drained already")
        cluster.slurm.drain([node.name for node in nodes], given.reason)
    return _wait(cluster, nodes, given.wait, clock)


def explanation(node: Node, pod: str | None, jobs: Sequence[str]) -> Iterator[str]:
    """Yield the state of a node in words, and the next step.

    Args:
        node: The node, as slurmctld has it.
        pod: Why its pod is not ready; None if it is.
        jobs: Its jobs in words.
    """
    yield f"{node.name}: {node.condition}"
    if pod is not None:
        yield f"  Its pod is not ready: {pod}."
    yield from (f"  {job}" for job in jobs)
    marker = marker_of(node)
    if check := failed_check(node):
        yield f"  The health check {check} has drained it, and undrains it once the same check passes."
        yield "  Next: docs/runbooks.md has the check. To keep it drained, give it a reason of your own: drain --force."
    elif marker and marker.operation.of_a_pod:
        yield f"  Its pod has drained it ({marker.operation}), and undrains it when it is back."
    elif marker:
        yield f"  A deployment of {marker.owner} drains it ({marker.operation}, run {marker.run})."
        yield "  Next: `pulumi up` continues. If that run was stopped for good, undrain it: --force."
    elif node.drained:
        yield "  A person has drained it: ask whoever gave the reason, then `soperator nodes undrain`."
    elif is_down(node):
        yield "  Slurm does not reach its slurmd. It joins once its pod is ready."
    else:
        yield "  It takes jobs."
    if node.findings:
        yield f"  Checks fail that drain nothing: {', '.join(node.findings)}. docs/health-checks.md has them."


def _explain(cluster: LiveCluster, snapshot: Snapshot, nodes: Sequence[Node], *, as_json: bool, now: float) -> None:
    pods, held = {node.name: cluster.why_not_ready(node.name) for node in nodes}, jobs_by_node(snapshot)
    if as_json:
        records = [{**node_record(node, held[node.name]), "pod": pods[node.name]} for node in nodes]
        print_json(records)
        return
    zone = datetime.now(UTC).astimezone().tzinfo
    for node in nodes:
        jobs = [f"{named(job)}, {ending(job, now, zone)}" for job in held[node.name]]
        sys.stdout.writelines(f"{line}\n" for line in explanation(node, pods[node.name], jobs))


def _undrain(cluster: LiveCluster, nodes: Sequence[Node], *, force: bool) -> int:
    _refuse([node for node in nodes if marker_of(node)], force=force, act="drained by soperator-pulumi")
    drained = [node.name for node in nodes if node.drained]
    cluster.slurm.undrain(drained)
    sys.stdout.write(f"undrained: {compress(drained) or 'none was drained'}\n")
    return 0


def _refuse(nodes: Sequence[Node], *, force: bool, act: str) -> None:
    """Refuse to change these nodes, unless `force` is set."""
    if nodes and not force:
        listed = "".join(f"\n  {node.name}: {node.reason or 'no reason given'}" for node in nodes)
        text = f"{counted(len(nodes), 'node')} {act}, and nothing was changed:{listed}\nLeave them out, or add --force."
        raise SoperatorError(text)


def _wait(cluster: LiveCluster, nodes: Sequence[Node], seconds: float, clock: Clock) -> int:
    """Wait until drained nodes have no job, and print the remaining ones."""
    names = {node.name for node in nodes}
    zone = datetime.now(UTC).astimezone().tzinfo
    left: list[str] = []
    for _ in until(clock.now() + seconds, clock, longest=_LONGEST_PAUSE_SECONDS):
        snapshot = cluster.slurm.snapshot(reservations=False)
        now = clock.wall()
        left = [
            f"{named(job)} on {job.nodes}, {ending(job, now, zone)}"
            for job in snapshot.jobs
            if job.active and job.node_names & names
        ]
        busy = [name for name in names if name in snapshot.nodes and snapshot.nodes[name].busy_state]
        if not left and not busy:
            sys.stdout.write(f"drained: {compress(node.name for node in nodes)}\n")
            return 0
    sys.stdout.write(f"draining: {compress(node.name for node in nodes)}\n")
    sys.stdout.writelines(f"  {job}\n" for job in left)
    return EXIT_BUSY if seconds else 0


def _reason(text: str) -> str:
    if not text.strip() or not text.isprintable() or text.startswith(("soperator-pulumi ", "health ")):
        raise argparse.ArgumentTypeError(
            f"got {text!r}, needs a line that does not begin with `soperator-pulumi` or `health`: these begin the "
            "reasons of deployments and of checks, which undo such drains"
        )
    return text


def _seconds(text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text) <= _LONGEST_WAIT_SECONDS:
        raise argparse.ArgumentTypeError(f'got "{text}", needs whole seconds from 1 to {_LONGEST_WAIT_SECONDS}')
    return float(text)


COMMAND = Command(
    configure=configure,
    run=run,
    example="soperator nodes drain -n hpc gpu-[0-3] --reason 'new power supply' --wait 7200",
    statuses={
        0: "done",
        1: "drained, but jobs are left after --wait",
        2: "not done: the error says why; or wrong use",
    },
    interrupted="interrupted: drained nodes stay drained. `soperator nodes undrain` undoes it.",
)
