"""Waiting until a StatefulSet's pods are all new and ready, with the reasons for those that are not."""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.pods import Pod, find_pods, observed, refusing
from soperator_pulumi.kube.verbs import Json, Kube, stateful_sets_path
from soperator_pulumi.operations.progress import Clock, Report

_REPORT_SECONDS = 10
_PAUSE_SECONDS = 0.5
_LATE_SECONDS = 60
"""Time that a pod may take beyond its time to stop: kubelets are late, and clocks differ."""
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
        if ready == wanted and observed(found):
            return []
        missing = [pod for pod in self._pods() if not pod.ready] if explained else []
        reasons = [f"  {pod.name}: {pod.why_not_ready(self.kube)}" for pod in missing[:_SHOWN]]
        return [f"{self.stateful_set}: {ready} of {wanted} pods are ready", *reasons]

    def wait(self, timeout_seconds: float) -> None:
        """Wait until no pod is missing, and report changes meanwhile.

        The time begins again while an old pod stops, until that pod's own time to stop is over. A pod of an older
        template that refuses a lost state is deleted, as Kubernetes replaces no pod of a StatefulSet while it fails.

        Raises:
            NotReadyError: pods are missing after `timeout_seconds`, or one of the newest template refuses a lost state;
                with their reasons.
        """
        deadline, report_at, reported = self.clock.now() + timeout_seconds, self.clock.now() + _REPORT_SECONDS, ""
        while True:
            left = max(0.0, deadline - self.clock.now())
            due = left == 0 or self.clock.now() >= report_at
            lines = self.missing(explained=due)
            if not lines:
                return
            if due or lines[0] != reported:
                report_at, reported = self.clock.now() + _REPORT_SECONDS, lines[0]
                for line in (f"{lines[0]}, {left:.0f} s left", *lines[1:]):
                    self.report(line)
            if due and self._refuses():
                raise NotReadyError("\n".join([*lines, "It would refuse again. Fix the problem above and run again."]))
            # The pod of a dead machine stays when its time to stop is over.
            if due and any(pod.stops_by + _LATE_SECONDS > self.clock.wall() for pod in self._pods()):
                deadline = self.clock.now() + timeout_seconds
            elif left == 0:
                raise NotReadyError(
                    "\n".join(lines)
                    + f"\nThis has not changed for {timeout_seconds:.0f} s. Fix the problems above and run again."
                )
            self.clock.sleep(_PAUSE_SECONDS)

    def _refuses(self) -> bool:
        """Return True if a pod of the newest template refuses a lost state. Older pods that refuse it are deleted."""
        newest, older = refusing(self.kube, self.namespace, self.stateful_set, self._pods())
        for pod in older:
            self.report(f"{pod.name}: is deleted, so that it starts from the newest template")
            self.kube.delete(pod.path)
        return bool(newest)

    def _pods(self) -> list[Pod]:
        return find_pods(self.kube, self.namespace, {**self.selector})


def _progress(stateful_set: Json) -> tuple[int, int]:
    """Return the number of pods that are new and ready, and the number wanted."""
    status = stateful_set.get("status", {})
    wanted = int(stateful_set["spec"].get("replicas", 1))
    new = status.get("updateRevision") == status.get("currentRevision") or status.get("updatedReplicas", 0) >= wanted
    return (int(status.get("readyReplicas", 0)) if new else int(status.get("updatedReplicas", 0))), wanted
