"""A Kubernetes Job, followed to its end: its progress, and why it cannot start or has failed.

Its pods may be killed at any moment. Kubernetes creates another pod, and following continues with that one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from soperator_pulumi.errors import NotReadyError
from soperator_pulumi.kube.pods import Pod, find_pods, newest_warning
from soperator_pulumi.kube.verbs import FIELD_MANAGER, Json, Kube
from soperator_pulumi.operations.progress import Clock, Report, saying, until

STUCK_SECONDS = 600
"""Time that a pod may be stuck, in seconds: most clouds provide a machine in that time."""
SILENT_SECONDS = 1800
"""Time for a pod to start its program, and for the program to report something new: pulling an image of tens of GiB
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
        """True if it has completed."""
        return self._condition("Complete") is not None

    @property
    def failure(self) -> str:
        """Reason for its failure; empty if it has not failed."""
        failed = self._condition("Failed")
        return "" if failed is None else f"{failed.get('reason', 'failed')}: {failed.get('message', '')}".rstrip(": ")

    @property
    def ended(self) -> bool:
        """True if it is complete or has failed."""
        return self.complete or bool(self.failure)

    def manifest(self) -> Json:
        """Return the manifest that creates the same Job again, without fields set by the API server."""
        meta, spec = self.body["metadata"], self.body["spec"]
        kept = {key: meta[key] for key in ("name", "namespace") if key in meta}
        template = {key: value for key, value in spec["template"].items() if key != "metadata"}
        # An empty map would make the sender own the labels that the API server adds.
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
        """Field manager of the program that created it: others cannot change its fields without conflicts."""
        return str(self._managed.get("manager", FIELD_MANAGER))

    @property
    def applied(self) -> bool:
        """True if the program applied it, False if the program created it: the owners of fields differ."""
        return self._managed.get("operation") == "Apply"

    @property
    def _managed(self) -> Json:
        entries = self.body["metadata"].get("managedFields") or []
        return next((entry for entry in entries if not entry.get("subresource")), {})

    def _condition(self, kind: str) -> Json | None:
        conditions = self.body.get("status", {}).get("conditions") or []
        return next(
            (condition for condition in conditions if condition["type"] == kind and condition["status"] == "True"), None
        )


def _metadata(body: Json) -> Json:
    """Return the labels and annotations, without those of the API server."""
    labels = {key: value for key, value in (body.get("labels") or {}).items() if key not in _MADE_BY_KUBERNETES}
    found = {"labels": labels, "annotations": body.get("annotations")}
    return {key: value for key, value in found.items() if value}


@dataclass(frozen=True)
class Outcome:
    """End of a Job: its failure, if any, and its output."""

    failure: str
    """Reason for a failure, in the words of its program and of Kubernetes; empty if it completed."""
    log: tuple[str, ...]
    """Output of its last pod, as far as it is still available."""


class Stage(Enum):
    """Stage of the work of a Job."""

    STUCK = auto()
    """The pod is unlikely to start without help."""
    STARTS = auto()
    """The pod starts, or Kubernetes is about to create another one."""
    RUNS = auto()
    """The program runs."""


@dataclass(frozen=True)
class JobFollower:
    """A Job, watched until it has ended."""

    kube: Kube
    namespace: str
    name: str
    container: str
    """Container that does the work."""
    prefix: str
    """Start of every reported line."""
    report: Report
    clock: Clock
    stuck_seconds: float = STUCK_SECONDS
    silent_seconds: float = SILENT_SECONDS
    advice: str = ""
    """Next step if the pod stays stuck, as a sentence; empty for no specific step."""

    def end(self) -> Outcome:
        """Wait until the Job has ended; report its output, or what delays it, at most once a second.

        A program that keeps reporting something new may take as long as it needs.

        Raises:
            NotReadyError: the Job does not exist, is stuck for `stuck_seconds`, or neither starts nor reports something
                new for `silent_seconds`.
        """
        progress, pause = _Progress(self), _FIRST_PAUSE_SECONDS
        while progress.left_seconds > 0:
            job = self.look()
            pods = find_pods(self.kube, self.namespace, {_JOB_UID: job.uid})
            pod = max(pods, key=lambda pod: str(pod.body["metadata"].get("creationTimestamp", "")), default=None)
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

    def end_afresh(self) -> Outcome:
        """Wait as `end` does, but recreate a Job that failed before: the user may have fixed the cause.

        Raises:
            NotReadyError: as from `end` and `recreate`.
        """
        found = self.look()
        if found.failure:
            self.show(f"recreates the Job {self.name}, which failed before")
            self.recreate(found)
        return self.end()

    def look(self) -> BatchJob:
        """Return the Job as it is now.

        Raises:
            NotReadyError: the Job does not exist.
        """
        body = self.kube.get(job_path(self.namespace, self.name))
        if body is None:
            raise NotReadyError(
                f"{self.prefix}: the Job {self.namespace}/{self.name} was deleted. "
                "Refresh the stack, then run again: it is recreated."
            )
        return BatchJob.of(body)

    def recreate(self, job: BatchJob) -> None:
        """Delete a Job with its pods, and create it again from its manifest, as the same field manager.

        pulumi-kubernetes creates a Job, and its first update adopts fields that `pulumi-kubernetes` created, but not
        fields applied under that name.

        Raises:
            NotReadyError: the Job or its pods remain.
        """
        self.remove(job)
        if job.applied:
            self.kube.apply(job.path, job.manifest(), manager=job.manager)
        else:
            self.kube.create(job_path(self.namespace), job.manifest(), manager=job.manager)

    def remove(self, job: BatchJob) -> None:
        """Delete a Job with its pods, and wait until they are gone.

        Raises:
            NotReadyError: the Job or its pods remain.
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
            "Run again when it is gone."
        )

    def show(self, text: str) -> None:
        """Report a line about the Job."""
        self.report(f"{self.prefix}: {text}")

    def _state(self, job: BatchJob, pod: Pod | None) -> tuple[list[str], Stage]:
        """Return the newest lines of the program, or why there are none, and the stage of the work."""
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
    """Return the lines of a log for users, without the result that this package's programs print as JSON."""
    return [line for line in log if line.strip() and not line.startswith("{")]


class _Progress:
    """The last reported line, and the times at which a wait ends."""

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
        """Note the current state, and report its new lines."""
        now, newest = self._now(), lines[-1] if lines else "runs"
        # The reasons why a pod does not start may keep changing: only the program makes progress.
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
        """Return the error for a wait that has timed out."""
        following, since = self._following, self._free_at if self._stage is Stage.STUCK else self._moved_at
        advice = f"{following.advice} " if self._stage is Stage.STUCK and following.advice else ""
        return NotReadyError(
            f"{following.prefix}: the Job {following.namespace}/{following.name} makes no progress: {self._newest}. "
            f"This has lasted for {self._now() - since:.0f} s. {advice}Fix the problems above and run again: the Job "
            "continues on its own."
        )

    def report(self, lines: Sequence[str], ending: str = "") -> None:
        """Report the lines that follow the last reported one, and append an ending to the newest."""
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
