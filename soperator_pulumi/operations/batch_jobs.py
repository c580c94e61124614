"""One Kubernetes Job, followed to its end: its progress, and the reason why it cannot start or has failed.

Its pods may be killed at any moment. Kubernetes creates another pod, and following continues with that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.operations.kube import FIELD_MANAGER, Json, Kube
from soperator_pulumi.operations.pods import Pod, find_pods, newest_warning
from soperator_pulumi.operations.progress import Clock, Report, until

STUCK_SECONDS = 600
"""Time that a pod may be stuck: a machine of most clouds is there by then."""
SILENT_SECONDS = 1800
"""Time without any change: a pull of an image of tens of GiB takes that long."""

_LOG_LINES = 2000
_TAIL_LINES = 200
_BURST_LINES = 60
_LAST_WORDS = 5
_REPORT_SECONDS = 1.0
_REPEAT_SECONDS = 30
_JOB_UID = "batch.kubernetes.io/controller-uid"
_MADE_BY_KUBERNETES = (_JOB_UID, "controller-uid", "batch.kubernetes.io/job-name", "job-name")


def job_path(namespace: str, name: str = "") -> str:
    """Return the path of a Job, or of all Jobs of a namespace."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


@dataclass(frozen=True)
class BatchJob:
    """A Job, read from the API's JSON."""

    path: str
    name: str
    uid: str
    body: Json

    @classmethod
    def of(cls, body: Json) -> "BatchJob":
        """Read a Job."""
        meta = body["metadata"]
        return cls(job_path(meta["namespace"], meta["name"]), meta["name"], meta["uid"], body)

    @property
    def complete(self) -> bool:
        """True where it has completed its work."""
        return self._condition("Complete") is not None

    @property
    def failure(self) -> str:
        """Reason of its failure; empty where it has not failed."""
        failed = self._condition("Failed")
        return "" if failed is None else f"{failed.get('reason', 'failed')}: {failed.get('message', '')}".rstrip(": ")

    @property
    def ended(self) -> bool:
        """True where it is complete or has failed."""
        return self.complete or bool(self.failure)

    def manifest(self) -> Json:
        """Return the manifest that creates the same Job again: without the fields of the API server."""
        meta, spec = self.body["metadata"], self.body["spec"]
        kept = {key: meta[key] for key in ("name", "namespace") if key in meta}
        template = {key: value for key, value in spec["template"].items() if key != "metadata"}
        # An empty map would make its sender own the labels that the API server adds.
        metadata = _metadata(spec["template"].get("metadata", {}))
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**kept, **_metadata(meta)},
            "spec": {
                **{key: value for key, value in spec.items() if key not in {"selector", "manualSelector", "template"}},
                "template": {**template, "metadata": metadata} if metadata else template,
            },
        }

    @property
    def manager(self) -> str:
        """Field manager of the program that made it, which can then change the fields again."""
        entries = self.body["metadata"].get("managedFields") or []
        return next((str(each["manager"]) for each in entries if not each.get("subresource")), FIELD_MANAGER)

    def _condition(self, kind: str) -> Json | None:
        conditions = self.body.get("status", {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), None)


def _metadata(body: Json) -> Json:
    """Return the labels and annotations that are not the API server's own."""
    labels = {key: value for key, value in (body.get("labels") or {}).items() if key not in _MADE_BY_KUBERNETES}
    found = {"labels": labels, "annotations": body.get("annotations")}
    return {key: value for key, value in found.items() if value}


@dataclass(frozen=True)
class Outcome:
    """End of a Job."""

    failure: str
    """Reason of a failure, in the words of its program and of Kubernetes; empty when it is complete."""
    log: tuple[str, ...]
    """Output of its last pod, as far as it is still available."""


@dataclass(frozen=True)
class JobFollower:
    """One Job, watched until it has ended."""

    kube: Kube
    namespace: str
    name: str
    container: str
    """The container that does the work."""
    prefix: str
    """Start of each reported line."""
    report: Report
    clock: Clock
    stuck_seconds: float = STUCK_SECONDS
    silent_seconds: float = SILENT_SECONDS

    def end(self) -> Outcome:
        """Wait until the Job has ended; report its output, or what holds it up, at most once a second.

        Raises:
            NotReadyError: there is no such Job, it cannot start, or nothing has changed for too long.
        """
        progress = _Progress(self)
        for _ in until(float("inf"), self.clock):
            job = self.look()
            pod = self._newest_pod(job)
            # Kubernetes marks the Job as complete a second or two after its program has ended.
            if job.ended or (pod is not None and pod.ended_well(self.container)):
                outcome = self._outcome(job, pod)
                if not outcome.failure:
                    progress.report(_for_people(outcome.log))
                return outcome
            progress.note(*self._state(job, pod))
        raise AssertionError("there is no end to wait for")

    def look(self) -> BatchJob:
        """Return the Job as it is now.

        Raises:
            NotReadyError: there is none.
        """
        body = self.kube.get(job_path(self.namespace, self.name))
        if body is None:
            raise NotReadyError(
                f"{self.prefix}: the Job {self.namespace}/{self.name} is not there; somebody has deleted it. "
                "Refresh the stack, then run again: it is recreated."
            )
        return BatchJob.of(body)

    def recreate(self, job: BatchJob) -> None:
        """Delete a Job with its pods, and create it again from its own manifest.

        Raises:
            NotReadyError: the Job or its pods stay.
        """
        self.remove(job)
        self.kube.apply(job.path, job.manifest(), manager=job.manager)

    def remove(self, job: BatchJob) -> None:
        """Delete a Job with its pods, and wait until they are gone.

        Raises:
            NotReadyError: the Job or its pods stay.
        """
        self.kube.delete(job.path, dependents_first=True)
        for _ in until(self.clock.now() + self.stuck_seconds, self.clock):
            body = self.kube.get(job.path)
            if body is None or body["metadata"]["uid"] != job.uid:
                return
        raise NotReadyError(
            f"{self.prefix}: the Job {self.namespace}/{self.name} is still being deleted after "
            f"{self.stuck_seconds:.0f} s: see `kubectl describe job {self.name} -n {self.namespace}`. "
            "Run again when it has gone."
        )

    def _newest_pod(self, job: BatchJob) -> Pod | None:
        pods = find_pods(self.kube, self.namespace, {_JOB_UID: job.uid})
        return max(pods, key=lambda pod: str(pod.body["metadata"].get("creationTimestamp", "")), default=None)

    def _state(self, job: BatchJob, pod: Pod | None) -> tuple[list[str], bool]:
        """Return the newest lines of the program, or the reason why there are none; and True where the pod is stuck."""
        if pod is None:
            return [newest_warning(self.kube, self.namespace, job.uid) or "its pod is being created"], True
        if pod.runs(self.container):
            return self._newest_lines(pod), False
        if pod.failed:
            return [*self._newest_lines(pod), f"its pod {pod.why_ended()}"], False
        return [f"its pod {pod.why_not_ready(self.kube)}"], pod.stuck

    def _newest_lines(self, pod: Pod) -> list[str]:
        return _for_people(self.kube.log(pod.path, self.container, lines=_TAIL_LINES).splitlines())

    def _outcome(self, job: BatchJob, pod: Pod | None) -> Outcome:
        if pod is None:
            return Outcome(job.failure, ())
        text = self.kube.log(pod.path, self.container, lines=_LOG_LINES)
        lines = tuple(text.strip().splitlines())
        if not job.failure:
            return Outcome("", lines)
        message = pod.last_message() or "\n".join(lines[-_LAST_WORDS:])
        return Outcome(message or f"its pod {pod.why_ended()}; {job.failure}", lines)


def _for_people(log: Iterable[str]) -> list[str]:
    """Return the lines of a log for people, without the result that a program of ours prints as JSON."""
    return [line for line in log if line.strip() and not line.startswith("{")]


class _Progress:
    """The line reported last, and the time of the last change."""

    def __init__(self, following: JobFollower) -> None:
        self._following = following
        self._now = following.clock.now
        self._seen = self._last = ""
        self._changed_at = self._free_at = self._now()
        self._reported_at = self._changed_at - _REPORT_SECONDS

    def note(self, lines: Sequence[str], stuck: bool) -> None:  # noqa: FBT001 it comes with the lines
        """Note the state of this moment, and report its new lines.

        Raises:
            NotReadyError: the state has been the same for too long.
        """
        now, following = self._now(), self._following
        newest = lines[-1] if lines else "runs"
        if newest != self._seen:
            self._seen, self._changed_at = newest, now
        if not stuck:
            self._free_at = now
        if now - self._reported_at >= _REPORT_SECONDS:
            self.report(lines)
        if now - self._reported_at >= _REPEAT_SECONDS:
            self._show(newest)
        limits = ((now - self._free_at, following.stuck_seconds), (now - self._changed_at, following.silent_seconds))
        if any(waited >= limit for waited, limit in limits):
            raise NotReadyError(
                f"{following.prefix}: the Job {following.namespace}/{following.name} makes no progress: {newest}. "
                f"Nothing has changed for {now - self._changed_at:.0f} s. Fix the problems above and run again: the "
                "Job continues by itself."
            )

    def report(self, lines: Sequence[str]) -> None:
        """Report the lines after the one reported last."""
        places = [place for place, line in enumerate(lines) if line == self._last]
        fresh = lines[places[-1] + 1 :] if places else lines
        for line in fresh[:_BURST_LINES]:
            self._show(line)
        if len(fresh) > _BURST_LINES:
            where = f"kubectl logs -n {self._following.namespace} job/{self._following.name}"
            self._show(f"and {len(fresh) - _BURST_LINES} more lines: {where}")
        self._last = fresh[-1] if fresh else self._last

    def _show(self, line: str) -> None:
        self._following.report(f"{self._following.prefix}: {line}")
        self._reported_at = self._now()
