"""Kubernetes events for drains by health checks: those that follow from a round of the exporter."""

import hashlib
from dataclasses import dataclass
from typing import Any

from slurm_exporter.samples import Samples

DRAINED, UNDRAINED = "SlurmHealthDrain", "SlurmHealthUndrain"
"""Reasons of the events."""

_DRAINS = "slurm_node_drain_since_seconds"
_NODES = "slurm_node_info"
_MESSAGE_LIMIT = 1024
"""Length of an event's message in characters that Kubernetes accepts."""


@dataclass(frozen=True)
class HealthDrain:
    """A drain of a node by a health check."""

    node: str
    check: str
    reason: str
    """Slurm's reason: `health gpu_count: 7, allowed 8`."""
    since: int


@dataclass(frozen=True)
class HealthEvent:
    """An event on the pod of a node, which has the node's name."""

    drain: HealthDrain
    over: bool

    @property
    def name(self) -> str:
        """Name of the object, the same for the same drain, so that a restarted exporter makes no second event."""
        drain = self.drain
        digest = hashlib.sha256(f"{drain.check}\0{drain.since}\0{self.over}".encode()).hexdigest()[:16]
        return f"{drain.node}.{digest}"

    def manifest(self, namespace: str, now: str) -> dict[str, Any]:
        """Return the object, of core/v1, with the time `now`, as RFC 3339 has it."""
        drain = self.drain
        ended = f"The health check {drain.check} no longer drains the node. Its reason was: {drain.reason}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": drain.node, "namespace": namespace},
            "type": "Normal" if self.over else "Warning",
            "reason": UNDRAINED if self.over else DRAINED,
            "message": (ended if self.over else drain.reason)[:_MESSAGE_LIMIT],
            "source": {"component": "slurm-exporter"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }


class HealthWatch:
    """Drains by health checks, from round to round."""

    def __init__(self) -> None:
        self._drains: dict[str, HealthDrain] = {}

    def changes(self, nodes: Samples) -> list[HealthEvent]:
        """Return the events of a round. A round without an answer, or a node that has left, has none."""
        if _NODES not in nodes:
            return []
        present = {labels[0] for labels, _ in nodes[_NODES]}
        now = {drain.node: drain for drain in health_drains(nodes)}
        begun = [HealthEvent(now[node], over=False) for node in now if not self._is_known(now[node])]
        ended = [
            HealthEvent(drain, over=True)
            for node, drain in self._drains.items()
            if node in present and (node not in now or now[node].check != drain.check)
        ]
        self._drains = now
        return [*ended, *begun]

    def _is_known(self, drain: HealthDrain) -> bool:
        # slurmctld changes reason and time of a drained node that stops responding: still the same drain.
        before = self._drains.get(drain.node)
        return before is not None and before.check == drain.check


def health_drains(nodes: Samples) -> list[HealthDrain]:
    """Return the drains by health checks in a round."""
    found = []
    for (node, _, _, check, reason), since in nodes.get(_DRAINS, ()):
        if check:
            found.append(HealthDrain(node, check, reason, int(since)))
    return found
