"""Waiting until a StatefulSet's pods are all new and ready, with the reasons for those that are not."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.pods import find_pods
from soperator_pulumi.kube.verbs import Json, Kube, stateful_sets_path
from soperator_pulumi.operations.progress import Clock, Report, until

_REPORT_SECONDS = 10
_SHOWN = 10


@dataclass(frozen=True)
class Rollout:
    """The pods of a StatefulSet that Kubernetes itself replaces, one after the other."""

    kube: Kube
    namespace: str
    stateful_set: str
    selector: Mapping[str, str]
    report: Report
    clock: Clock

    def missing(self, *, explained: bool = True) -> list[str]:
        """Return the missing pods, in lines; none if all are ready and from the newest template.

        Reasons take calls for every pod: without `explained` only the first line is returned.
        """
        found = self.kube.get(f"{stateful_sets_path(self.namespace)}/{self.stateful_set}")
        if found is None:
            return [f"{self.stateful_set}: there is no such StatefulSet"]
        ready, wanted = _progress(found)
        if ready == wanted and _observed(found):
            return []
        return [f"{self.stateful_set}: {ready} of {wanted} pods are ready", *(self._reasons() if explained else [])]

    def wait(self, timeout_seconds: float) -> None:
        """Wait until no pod is missing, and report changes meanwhile.

        Raises:
            NotReadyError: pods are missing after `timeout_seconds`; with their reasons.
        """
        began = self.clock.now()
        reported_at, reported = began, ""
        for left in until(began + timeout_seconds, self.clock):
            now = self.clock.now()
            lines = self.missing(explained=left <= 0 or now - reported_at >= _REPORT_SECONDS)
            if not lines:
                return
            if lines[0] != reported or now - reported_at >= _REPORT_SECONDS:
                reported_at, reported = now, lines[0]
                self.report(f"{lines[0]}, {left:.0f} s left")
                for line in lines[1:]:
                    self.report(line)
        raise NotReadyError(
            "\n".join(lines)
            + f"\nThis has not changed for {timeout_seconds:.0f} s. Fix the problems above and run again."
        )

    def _reasons(self) -> list[str]:
        pods = find_pods(self.kube, self.namespace, {**self.selector})
        return [f"  {pod.name}: {pod.why_not_ready(self.kube)}" for pod in pods if not pod.ready][:_SHOWN]


def _progress(stateful_set: Json) -> tuple[int, int]:
    """Return the number of pods that are new and ready, and the number wanted."""
    status = stateful_set.get("status", {})
    wanted = int(stateful_set["spec"].get("replicas", 1))
    new = status.get("updateRevision") == status.get("currentRevision") or status.get("updatedReplicas", 0) >= wanted
    return (int(status.get("readyReplicas", 0)) if new else int(status.get("updatedReplicas", 0))), wanted


def _observed(stateful_set: Json) -> bool:
    """Return True if the status is about the newest specification."""
    return bool(stateful_set.get("status", {}).get("observedGeneration", 0) >= stateful_set["metadata"]["generation"])
