"""One Kubernetes Job, followed to its end: its progress, and the reason why it cannot start or has failed.

Its pods may be killed at any moment. Kubernetes creates another pod, and following continues with that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.operations.kube import FIELD_MANAGER, Json, Kube
from soperator_pulumi.operations.pods import Pod, find_pods, newest_warning
from soperator_pulumi.operations.progress import Clock, Report, saying, until

STUCK_SECONDS = 600
"""Time that a pod may be stuck: a machine of most clouds is there by then."""
SILENT_SECONDS = 1800
"""Time for a pod to start its program, and for the program to report anything new: a pull of an image of tens of GiB
takes that long."""

_LOG_LINES = 2000
_TAIL_LINES = 200
_BURST_LINES = 60
_LAST_WORDS = 5
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 1.0
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
        return str(self._managed.get("manager", FIELD_MANAGER))

    @property
    def applied(self) -> bool:
        """True where the program applied it, false where the program created it. Fields have other owners then."""
        return self._managed.get("operation") == "Apply"

    @property
    def _managed(self) -> Json:
        entries = self.body["metadata"].get("managedFields") or []
        return next((entry for entry in entries if not entry.get("subresource")), {})

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


class Stage(Enum):
    """Stage of the work of a Job at one moment."""

    STUCK = auto()
    """The pod will hardly start by itself."""
    STARTS = auto()
    """The pod starts, or Kubernetes is about to make another one."""
    RUNS = auto()
    """The program runs."""


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
    advice: str = ""
    """Next step for a pod that is stuck for so long, in a sentence; empty for none in particular."""

    def end(self) -> Outcome:
        """Wait until the Job has ended; report its output, or what holds it up, at most once a second.

        A program that reports anything new may take as long as it needs.

        Raises:
            NotReadyError: there is no such Job, it is stuck for `stuck_seconds`, or neither starts nor reports anything
                new for `silent_seconds`.
        """
        progress, pause = _Progress(self), _FIRST_PAUSE_SECONDS
        while progress.left_seconds > 0:
            job = self.look()
            pod = self._newest_pod(job)
            # Kubernetes marks the Job as complete a second or two after its program has ended.
            if job.ended or (pod is not None and pod.ended_well(self.container)):
                outcome = self._outcome(job, pod)
                if not outcome.failure:
                    progress.report(_for_people(outcome.log))
                return outcome
            progress.note(*self._state(job, pod))
            self.clock.sleep(pause)
            pause = min(pause * 1.1, _LONGEST_PAUSE_SECONDS)
        raise progress.no_progress()

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
        """Delete a Job with its pods, and create it again from its own manifest, in the way of its maker.

        pulumi-kubernetes creates a Job, and its first update takes over the fields of a creation by
        `pulumi-kubernetes`, not those applied under this name.

        Raises:
            NotReadyError: the Job or its pods stay.
        """
        self.remove(job)
        if job.applied:
            self.kube.apply(job.path, job.manifest(), manager=job.manager)
        else:
            self.kube.create(job_path(self.namespace), job.manifest(), manager=job.manager)

    def remove(self, job: BatchJob) -> None:
        """Delete a Job with its pods, and wait until they are gone.

        Raises:
            NotReadyError: the Job or its pods stay.
        """
        self.kube.delete(job.path, dependents_first=True)
        deadline = self.clock.now() + self.stuck_seconds
        for _ in until(deadline, self.clock, say=saying(self.show, f"waits until the Job {self.name} is deleted")):
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

    def show(self, text: str) -> None:
        """Show a line about the Job."""
        self.report(f"{self.prefix}: {text}")

    def _state(self, job: BatchJob, pod: Pod | None) -> tuple[list[str], Stage]:
        """Return the newest lines of the program, or the reason why there are none; and how far the work is."""
        if pod is None:
            return [newest_warning(self.kube, self.namespace, job.uid) or "its pod is being created"], Stage.STUCK
        if pod.runs(self.container):
            return self._newest_lines(pod), Stage.RUNS
        if pod.failed:
            return [*self._newest_lines(pod), f"its pod {pod.why_ended()}"], Stage.STARTS
        return [f"its pod {pod.why_not_ready(self.kube)}"], Stage.STUCK if pod.stuck else Stage.STARTS

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
    """The line reported last, and the times by which a wait ends."""

    def __init__(self, following: JobFollower) -> None:
        self._following = following
        self._now = following.clock.now
        self._newest = self._done = self._last = ""
        self._stage = Stage.STUCK
        self._moved_at = self._free_at = self._now()
        """Times of the last progress, and of the last look at which the pod was not stuck."""
        self._reported_at = self._moved_at - _REPORT_SECONDS

    @property
    def left_seconds(self) -> float:
        """Time until the wait ends, if nothing changes."""
        following = self._following
        silent = self._moved_at + max(following.silent_seconds, following.stuck_seconds)
        stuck = self._free_at + following.stuck_seconds
        return (min(silent, stuck) if self._stage is Stage.STUCK else silent) - self._now()

    def note(self, lines: Sequence[str], stage: Stage) -> None:
        """Note the state of this moment, and report its new lines."""
        now, newest = self._now(), lines[-1] if lines else "runs"
        # The reasons why a pod does not start may change for ever: only a program makes progress.
        done = newest if stage is Stage.RUNS else ""
        if done != self._done:
            self._moved_at, self._done = now, done
        if stage is not Stage.STUCK:
            self._free_at = now
        self._newest, self._stage = newest, stage
        left = f"; {self.left_seconds:.0f} s left"
        if now - self._reported_at >= _REPORT_SECONDS:
            self.report(lines, "" if stage is Stage.RUNS else left)
        if now - self._reported_at >= _REPEAT_SECONDS:
            self._show(f"{newest}{left}" + (" to report anything new" if stage is Stage.RUNS else ""))

    def no_progress(self) -> NotReadyError:
        """Return the error of a wait that is over."""
        following, since = self._following, self._free_at if self._stage is Stage.STUCK else self._moved_at
        advice = f"{following.advice} " if self._stage is Stage.STUCK and following.advice else ""
        return NotReadyError(
            f"{following.prefix}: the Job {following.namespace}/{following.name} makes no progress: {self._newest}. "
            f"That is so for {self._now() - since:.0f} s. {advice}Fix the problems above and run again: the Job "
            "continues by itself."
        )

    def report(self, lines: Sequence[str], ending: str = "") -> None:
        """Report the lines after the one reported last; the newest one with an ending."""
        places = [place for place, line in enumerate(lines) if line == self._last]
        fresh = lines[places[-1] + 1 :] if places else lines
        for number, line in enumerate(fresh[:_BURST_LINES], start=1):
            self._show(line + ending if number == len(fresh) else line)
        if len(fresh) > _BURST_LINES:
            where = f"kubectl logs -n {self._following.namespace} job/{self._following.name}"
            self._show(f"and {len(fresh) - _BURST_LINES} more lines: {where}")
        self._last = fresh[-1] if fresh else self._last

    def _show(self, line: str) -> None:
        self._following.show(line)
        self._reported_at = self._now()
