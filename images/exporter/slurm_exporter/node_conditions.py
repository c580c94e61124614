"""Conditions of Kubernetes nodes: False while a health check drains a Slurm node there; removed otherwise.

Clusters on the same machine do not conflict: the condition type of a cluster contains its namespace. The conditions of
the cluster are compared with its drains round by round, in a thread of their own, and removed when the exporter ends.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

from slurm_exporter.health_events import HealthDrain
from slurm_exporter.kubernetes_api import ERRORS, ApiAnswer, KubernetesApi

_MERGE = "application/strategic-merge-patch+json"
_PAGE = 100
"""Nodes in one answer: the object of a node takes about 20 KB."""

_MESSAGE_LIMIT = 1024
_ENDING_SECONDS = 20
"""Time to remove the conditions when the exporter stops. Kubernetes kills the pod 30 s after SIGTERM."""


class Shown(NamedTuple):
    """Reason and message of a condition that is False."""

    reason: str
    message: str


class RefusedError(Exception):
    """Kubernetes refuses a call."""


def condition_type(namespace: str) -> str:
    """Return the type of the conditions of the cluster in a namespace."""
    return f"SlurmNodeHealthy/{namespace}"


def wanted(drains: Iterable[HealthDrain], machine_of: Callable[[str], str]) -> dict[str, Shown]:
    """Return the conditions by machine. A machine is unhealthy when one of its Slurm nodes is drained.

    Args:
        drains: Drains by health checks.
        machine_of: Returns the machine of a node's pod; empty if it has none.
    """
    by_machine: dict[str, list[HealthDrain]] = {}
    for drain in sorted(drains, key=lambda drain: (drain.since, drain.node)):
        if machine := machine_of(drain.node):
            by_machine.setdefault(machine, []).append(drain)
    return {machine: _shown(row) for machine, row in by_machine.items()}


def _shown(drains: list[HealthDrain]) -> Shown:
    """Return the reason of the first drain, in the form of Kubernetes' reasons, and all of them as the message."""
    reason = "".join(word.capitalize() for word in drains[0].check.split("_"))
    return Shown(reason, "; ".join(f"{drain.node}: {drain.reason}" for drain in drains)[:_MESSAGE_LIMIT])


class NodeConditions:
    """Conditions of one cluster."""

    def __init__(self, api: KubernetesApi, report: Callable[[str], None]) -> None:
        self.type = condition_type(api.namespace)
        self.errors = 0
        self._api, self._report = api, report
        self._set: dict[str, Shown] | None = None
        """Conditions that exist; None before Kubernetes was first asked, as a previous exporter may have left some."""
        self._drains: list[HealthDrain] = []
        self._problem = ""
        self._due, self._ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def count(self) -> int:
        """Number of machines with the condition."""
        return len(self._set or {})

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, drains: Iterable[HealthDrain]) -> None:
        """Give the thread the drains of a round to compare with the conditions."""
        self._drains = [*drains]
        self._due.set()

    def end(self) -> None:
        """Remove all conditions and end the thread."""
        self._ends.set()
        self._due.set()
        self._thread.join(_ENDING_SECONDS)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._due.wait()
            self._due.clear()
            self.settle([] if self._ends.is_set() else self._drains)

    def settle(self, drains: Iterable[HealthDrain]) -> None:
        """Make the conditions match these drains. A failure is reported when it begins; the next round tries again."""
        problem = ""
        try:
            if self._set is None:
                self._set = dict(self._left_behind())
            refusals = [*self._changes(self._set, wanted(drains, self._machine_of))]
            problem = refusals[0] if refusals else ""
        except (RefusedError, *ERRORS) as error:
            problem = f"{type(error).__name__}: {error}"
        self.errors += bool(problem)
        if problem and problem != self._problem:
            self._report(f"node conditions: {problem}")
        self._problem = problem

    def _changes(self, now: dict[str, Shown], goal: dict[str, Shown]) -> Iterator[str]:
        """Make the conditions match the wanted ones, and yield refusals. One refusal does not stop the others."""
        for machine in [*now, *(goal.keys() - now.keys())]:
            shown = goal.get(machine)
            if now.get(machine) == shown:
                continue
            try:
                self._patch(machine, self._condition(shown) if shown else {"type": self.type, "$patch": "delete"})
            except RefusedError as error:
                yield f"{type(error).__name__}: {error}"
                continue
            if shown:
                now[machine] = shown
            else:
                del now[machine]

    def _condition(self, shown: Shown) -> dict[str, str]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        return {"type": self.type, "status": "False", "reason": shown.reason, "message": shown.message, **times}

    def _left_behind(self) -> Iterator[tuple[str, Shown]]:
        """Yield the conditions that a previous exporter left."""
        token = ""
        while True:
            page = self._taken("GET", f"/api/v1/nodes?limit={_PAGE}&continue={quote(token)}").body
            for node in page.get("items", []):
                for condition in node.get("status", {}).get("conditions") or []:
                    if condition["type"] == self.type:
                        yield node["metadata"]["name"], Shown(condition.get("reason", ""), condition.get("message", ""))
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                return

    def _machine_of(self, pod: str) -> str:
        path = f"/api/v1/namespaces/{self._api.namespace}/pods/{quote(pod)}"
        return str(self._taken("GET", path).body.get("spec", {}).get("nodeName", ""))

    def _patch(self, machine: str, condition: dict[str, Any]) -> None:
        path = f"/api/v1/nodes/{quote(machine)}/status"
        self._taken("PATCH", path, {"status": {"conditions": [condition]}}, _MERGE)

    def _taken(self, verb: str, path: str, *body: Any) -> ApiAnswer:  # noqa: ANN401 - JSON
        """Return an answer, which is empty for an object that no longer exists.

        Raises:
            RefusedError: Kubernetes refuses the call.
        """
        answer = self._api.call(verb, path, *body)
        if answer.status == HTTPStatus.NOT_FOUND:
            return ApiAnswer(answer.status, {})
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(f"Kubernetes answers {answer.status} to {verb} {path}")
        return answer
