"""The node's record in slurmctld, read and changed by scontrol within a time limit."""

from node_health.bounded import BoundedProgram
from node_health.state_machine import NodeState
from slurm_wire import records


class NoAnswerError(Exception):
    """slurmctld did not answer, or refused. The node is left unchanged."""


def parse_node(shown: str) -> NodeState:
    """Return the state in the output of `scontrol show node --oneliner`.

    Raises:
        NoAnswerError: The output has no state.
    """
    line = next(records.lines(shown), "")
    values, reason = records.fields(line), records.reason(line)
    if "State" not in values:
        raise NoAnswerError(f"no state of the node: {shown[:80]!r}")
    return NodeState(values["State"], reason.text if reason else "", values.get("Extra", ""))


def ask(node: str, seconds: float) -> NodeState:
    """Return the node's current state.

    Raises:
        NoAnswerError: slurmctld does not answer, or does not know the node.
    """
    return parse_node(_scontrol(seconds, "show", "node", node, "--oneliner"))


def drain(node: str, reason: str, seconds: float) -> None:
    """Drain the node with a reason, or replace the reason of a health drain."""
    _scontrol(seconds, "update", f"nodename={node}", "state=drain", f"reason={reason}")


def undrain(node: str, seconds: float) -> None:
    """End the node's drain. Other states of an admin stay. Slurm 24.11 keeps the reason until another replaces it."""
    _scontrol(seconds, "update", f"nodename={node}", "state=undrain", "reason=none")


def show(node: str, text: str, seconds: float) -> None:
    """Write findings into the node's `Extra`, for the metrics exporter and for people."""
    _scontrol(seconds, "update", f"nodename={node}", f"extra={text}")


def _scontrol(seconds: float, *arguments: str) -> str:
    outcome = BoundedProgram(("scontrol", *arguments), seconds).finish()
    if outcome.status is None:
        raise NoAnswerError(f"scontrol: no answer in {seconds:g} s")
    if outcome.status:
        raise NoAnswerError(f"scontrol: {outcome.words}")
    return outcome.output
