"""Activation of slurmdbd's file: slurmdbd reads it only when it starts, so its container restarts in place.

slurmctld keeps records while slurmdbd is away, and sends them when it is back (DBD agent queue, slurmctld(8)).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.errors import ConfigRefusedError, NotReadyError, TransportError
from soperator_pulumi.kube.pods import Pod, find_pods
from soperator_pulumi.kube.verbs import Kube, stateful_sets_path
from soperator_pulumi.operations.progress import Clock, Report, saying, until

ACCOUNTING_COMPONENT = "accounting"
"""Name of slurmdbd's StatefulSet, and of its pod's component."""

ACCOUNTING_POD, ACCOUNTING_CONTAINER = "accounting-0", "slurmdbd"

START_SECONDS = 60
"""Time for the container of a starting pod to run."""

ANSWER_SECONDS = 180
"""Time for slurmdbd to answer, in seconds."""

END = ["/bin/sh", "-c", "kill -TERM 1"]
"""Ends the container's first process, which passes the signal on. slurmdbd completes what it has received."""

QUESTION = ["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster"]
"""Question that slurmdbd can only answer from its database."""

_ASK_AGAIN_SECONDS = 15
_REPORT_SECONDS = 10
_FINAL = re.compile(r"Access denied for user|fatal:")
"""Messages after which slurmdbd will never answer with the same file (error 1045 of MariaDB)."""
_TIME = re.compile(r"^\[[^\]]*\]\s*|^slurmdbd:\s*")


@dataclass(frozen=True)
class Slurmdbd:
    """Activation by slurmdbd."""

    kube: Kube
    namespace: str
    selector: Mapping[str, str]
    report: Report
    clock: Clock

    def check(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Refuse nothing: only a start shows whether slurmdbd accepts a file."""

    def allow(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Refuse nothing: no job needs slurmdbd."""

    def activate(self, _old: Mapping[str, str], _new: Mapping[str, str]) -> None:
        """Restart slurmdbd, and wait until it answers from its database."""
        pod = self._started()
        if pod is None:
            return
        self.report("restarting slurmdbd; jobs continue, their records arrive when it is back")
        if _pauses(pod):
            self._replace(pod)
        else:
            self._end(pod)
        self._await_answer(pod)

    def _started(self) -> Pod | None:
        """Return slurmdbd's pod; None if there is none, or if it will read the files when it starts."""
        if self.kube.get(f"{stateful_sets_path(self.namespace)}/{ACCOUNTING_COMPONENT}") is None:
            return None
        say = saying(self.report, "waits until slurmdbd starts")
        for left in until(self.clock.now() + START_SECONDS, self.clock, say=say):
            pod = self._pod()
            if pod is None:
                continue  # just deleted
            # A container that has just ended, perhaps because of an earlier run, restarts on its own.
            if not pod.going and (pod.runs(ACCOUNTING_CONTAINER) or _pauses(pod)):
                return pod
            if pod.stuck or left <= 0:
                self.report(
                    f"slurmdbd is not running yet. It reads the files when it starts: {pod.name} "
                    f"{pod.why_not_ready(self.kube)}"
                )
                return None
        return None

    def _pod(self) -> Pod | None:
        selector = {**self.selector, "app.kubernetes.io/component": ACCOUNTING_COMPONENT}
        return next(iter(find_pods(self.kube, self.namespace, selector)), None)

    def _end(self, pod: Pod) -> None:
        """End the container. This may break the connection, so the next look at the pod shows the result."""
        try:
            self.kube.transport(self.namespace, pod.name, ACCOUNTING_CONTAINER).run(END)
        except TransportError:
            return

    def _replace(self, pod: Pod) -> None:
        """Delete the pod: a new one starts at once."""
        self.kube.delete(pod.path)

    def _await_answer(self, before: Pod) -> None:
        """Wait until slurmdbd answers in a newer run of its container than in `before`.

        Raises:
            ConfigRefusedError: slurmdbd has ended, or cannot use its database; with its own messages.
            NotReadyError: it does not answer and reports no reason, for example during a long conversion of the
                database.
        """
        began = asked = reported = self.clock.now()
        former = before.run_of(ACCOUNTING_CONTAINER)
        for left in until(began + ANSWER_SECONDS, self.clock):
            pod, now = self._pod(), self.clock.now()
            words: list[str] = []
            if pod is not None and pod.run_of(ACCOUNTING_CONTAINER) not in {former, ""}:
                if pod.runs(ACCOUNTING_CONTAINER) and self._answers(pod):
                    return
                words = self._words(pod, former, began)
                if any(_FINAL.search(line) for line in words):
                    raise _refusal("slurmdbd does not start", words)
            elif pod is not None and not pod.going and _pauses(pod):
                self._replace(pod)
            elif pod is not None and pod.runs(ACCOUNTING_CONTAINER) and now - asked > _ASK_AGAIN_SECONDS:
                asked = now
                self._end(pod)
            if now - reported > _REPORT_SECONDS:
                reported = now
                self.report(f"waits for slurmdbd, {left:.0f} s left")
        why = "its pod is missing" if pod is None else f"pod {self.namespace}/{pod.name} {pod.why_not_ready(self.kube)}"
        late = f"slurmdbd does not answer after {ANSWER_SECONDS} s: {why}"
        if words:
            raise _refusal(late, words)
        raise NotReadyError(f"{late}. It reports no error. Run again to continue the wait.")

    def _answers(self, pod: Pod) -> bool:
        try:
            place = self.kube.transport(self.namespace, pod.name, ACCOUNTING_CONTAINER)
            return place.run(QUESTION, timeout_seconds=15).returncode == 0
        except TransportError:
            return False  # it is restarting: the next look shows it

    def _words(self, pod: Pod, former: str, since: float) -> list[str]:
        """Return the errors of slurmdbd's runs after `former`, without repetitions."""
        seconds = int(self.clock.now() - since) + 1
        runs = [False] if pod.ended_run_of(ACCOUNTING_CONTAINER) in {former, ""} else [True, False]
        logs = [
            self.kube.log(pod.path, ACCOUNTING_CONTAINER, previous=previous, since_seconds=seconds) for previous in runs
        ]
        lines = [_TIME.sub("", line) for log in logs for line in log.splitlines()]
        return [*dict.fromkeys(line for line in lines if "error:" in line or "fatal:" in line)]


def _pauses(pod: Pod) -> bool:
    """Return True if slurmdbd has ended so often that the kubelet waits for minutes before it restarts it."""
    return pod.crashed(ACCOUNTING_CONTAINER) and pod.stuck


def _refusal(message: str, words: list[str]) -> ConfigRefusedError:
    return ConfigRefusedError("\n".join(["slurmdbd refused the configuration:", message, *words]))
