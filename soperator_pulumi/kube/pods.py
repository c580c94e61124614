"""State of a pod in Kubernetes, and in one sentence the reason why it is not ready."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from soperator_pulumi.kube.verbs import Json, Kube, pods_path, stateful_sets_path

STUCK_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "CrashLoopBackOff",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Reasons of a waiting container that rarely disappear on their own."""

STATE_LOST = 66
"""Exit code of a container that refuses to start on a volume that has lost its contents (`start-slurmctld`)."""


@dataclass(frozen=True)
class Pod:
    """A pod, read from the API's JSON."""

    path: str
    name: str
    uid: str
    body: Json

    @classmethod
    def of(cls, body: Json) -> "Pod":
        """Read a pod."""
        meta = body["metadata"]
        return cls(f"{pods_path(meta['namespace'])}/{meta['name']}", meta["name"], meta["uid"], body)

    @property
    def going(self) -> bool:
        """True if it is being deleted."""
        return "deletionTimestamp" in self.body["metadata"]

    @property
    def stops_by(self) -> float:
        """Time at which its time to stop is over, in seconds since 1970; 0 if it is not being deleted."""
        time = self.body["metadata"].get("deletionTimestamp")
        return datetime.fromisoformat(time).timestamp() if time else 0.0

    @property
    def ready(self) -> bool:
        """True if its probes succeed."""
        return self._condition("Ready").get("status") == "True"

    @property
    def revision(self) -> str:
        """Revision of the StatefulSet template that the pod was created from; empty without a StatefulSet."""
        return str((self.body["metadata"].get("labels") or {}).get("controller-revision-hash", ""))

    @property
    def component(self) -> str:
        """Part of the cluster that the pod belongs to, such as `worker`; empty without the label."""
        return str((self.body["metadata"].get("labels") or {}).get("app.kubernetes.io/component", ""))

    @property
    def failed(self) -> bool:
        """True if the pod, or a container that is not restarted in it, has failed."""
        return self.body.get("status", {}).get("phase") == "Failed" or bool(self._last_failure())

    @property
    def ended(self) -> bool:
        """True if the pod has ended, successfully or not."""
        return self.body.get("status", {}).get("phase") in {"Succeeded", "Failed"}

    def runs(self, container: str) -> bool:
        """Return True if the container's process runs, so that commands can run in the container."""
        return "running" in self._status(container).get("state", {})

    def has_run(self, container: str) -> bool:
        """Return True if the container's process runs or has run."""
        return self.runs(container) or self.crashed(container)

    def answered(self, container: str) -> bool:
        """Return True if the running container's startup probe has succeeded, or is not reported."""
        return self._status(container).get("started") is not False

    def sees(self, name: str, container: str, *, secret: bool = False) -> str | None:
        """Return the directory at which a container mounts a ConfigMap or a Secret; None if it does not mount it."""
        source, key = ("secret", "secretName") if secret else ("configMap", "name")
        spec = self.body["spec"]
        volumes = [volume["name"] for volume in spec["volumes"] if volume.get(source, {}).get(key) == name]
        containers = [item for item in spec["containers"] if item["name"] == container]
        mounts = [mount for container in containers for mount in container.get("volumeMounts") or []]
        return next((mount["mountPath"] for mount in mounts if mount["name"] in volumes), None)

    def secrets(self) -> set[str]:
        """Return the names of the Secrets that the pod mounts."""
        return {str(volume["secret"]["secretName"]) for volume in self.body["spec"]["volumes"] if "secret" in volume}

    def run_of(self, container: str) -> str:
        """Return the id of the container's current run; empty if it is not running."""
        return str(self._status(container).get("containerID") or "")

    def ended_run_of(self, container: str) -> str:
        """Return the id of the container's last run that has ended; empty if none has."""
        return str(self._status(container).get("lastState", {}).get("terminated", {}).get("containerID") or "")

    def crashed(self, container: str) -> bool:
        """Return True if the container has ended and is not running."""
        status = self._status(container)
        ended = "terminated" in status.get("state", {}) or "terminated" in status.get("lastState", {})
        return ended and not self.runs(container)

    def exit_codes(self, container: str) -> set[int]:
        """Return the exit codes of the container's last runs, as far as Kubernetes still has them."""
        status = self._status(container)
        ended = [status.get(key, {}).get("terminated", {}) for key in ("state", "lastState")]
        return {int(state["exitCode"]) for state in ended if "exitCode" in state}

    def crashed_with(self, exit_code: int) -> bool:
        """Return True if a container has ended with an exit code and is not running."""
        names = (str(status["name"]) for status in self._statuses())
        return any(self.crashed(name) and exit_code in self.exit_codes(name) for name in names)

    @property
    def cannot_start(self) -> bool:
        """True if a container waits for an image or a setting that does not exist."""
        return any(
            status.get("state", {}).get("waiting", {}).get("reason") in STUCK_REASONS for status in self._statuses()
        )

    @property
    def starting(self) -> bool:
        """True if its containers are being created, or are about to be, and nothing prevents it."""
        return not (self.going or self.ended or self.failed or self.stuck)

    @property
    def stuck(self) -> bool:
        """True if the pod is unlikely to start without help: no machine, no image, or it crashes."""
        return bool(self._unscheduled()) or self.cannot_start

    def why_not_ready(self, kube: Kube) -> str:
        """Return why the pod is not ready, with the last line of a crashed container's log."""
        if self.going:
            return "is being deleted"
        if unscheduled := self._unscheduled():
            return f"waits for a machine: {unscheduled}"
        for status in self._statuses():
            if trouble := _trouble(status):
                return f"{status['name']}: {trouble}{self._last_words(kube, status)}"
        main = self._statuses(main_only=True)
        if main and all("running" in status.get("state", {}) for status in main):
            return "runs, but its probe does not succeed yet"
        return newest_warning(kube, self.body["metadata"]["namespace"], self.uid) or "starts"

    def ended_well(self, container: str) -> bool:
        """Return True if the container's program has ended with exit code 0."""
        return bool(self._status(container).get("state", {}).get("terminated", {}).get("exitCode") == 0)

    def why_ended(self) -> str:
        """Return how the pod ended: evicted, killed, or by itself."""
        status = self.body.get("status", {})
        if cause := ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key)):
            return f"has ended: {cause}"
        ended = self._last_failure()
        reason = ended.get("reason", "Error")
        cause = "" if reason == "Error" else f" ({reason})"  # OOMKilled says more than the exit code
        return f"ended with exit code {ended['exitCode']}{cause}" if "exitCode" in ended else "has ended"

    def last_message(self) -> str:
        """Return the termination message of a failed container; empty if there is none."""
        return str(self._last_failure().get("message", "")).strip()

    def _last_failure(self) -> Json:
        states = [status.get(key, {}) for status in self._statuses() for key in ("state", "lastState")]
        return next((state["terminated"] for state in states if state.get("terminated", {}).get("exitCode")), {})

    def _statuses(self, *, main_only: bool = False) -> list[Json]:
        status = self.body.get("status", {})
        kinds = ["containerStatuses"] if main_only else ["initContainerStatuses", "containerStatuses"]
        return [container for kind in kinds for container in status.get(kind) or []]

    def _status(self, container: str) -> Json:
        return next((status for status in self._statuses() if status["name"] == container), {})

    def _condition(self, kind: str) -> dict[str, Any]:
        conditions = self.body.get("status", {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def _unscheduled(self) -> str:
        scheduled = self._condition("PodScheduled")
        return str(scheduled.get("message") or "") if scheduled.get("status") == "False" else ""

    def _last_words(self, kube: Kube, status: Json) -> str:
        if not status.get("lastState", {}).get("terminated") and not status["state"].get("terminated"):
            return ""
        previous = "terminated" not in status["state"]
        lines = kube.log(self.path, status["name"], previous=previous).strip().splitlines()
        return f"; its last words: {lines[-1]}" if lines else ""


def _trouble(status: Json) -> str:
    """Return the problem of a container; empty if there is none."""
    state = status.get("state", {})
    waiting = state.get("waiting", {})
    ended = state.get("terminated") or status.get("lastState", {}).get("terminated") or {}
    if waiting.get("reason") in STUCK_REASONS:
        reason = waiting["reason"] + (f": {waiting['message']}" if waiting.get("message") else "")
        return f"{reason} (exit code {ended['exitCode']})" if "exitCode" in ended else reason
    terminated = state.get("terminated", {})
    if terminated and terminated.get("exitCode") != 0:
        return f"ended with exit code {terminated.get('exitCode')}"
    if "running" in state and not status.get("ready") and ended.get("exitCode"):
        return f"ended with exit code {ended['exitCode']} and was restarted"
    return ""


def newest_warning(kube: Kube, namespace: str, uid: str) -> str:
    """Return the newest warning about an object, such as a volume that cannot be mounted; empty if there is none."""
    about = {"involvedObject.uid": uid, "type": "Warning"}
    events = kube.find(f"/api/v1/namespaces/{namespace}/events", fields=about)
    newest = max(events, key=lambda event: str(event.get("lastTimestamp") or ""), default={})
    return f"{newest['reason']}: {newest['message']}" if newest else ""


def find_pods(kube: Kube, namespace: str, selector: dict[str, str]) -> list[Pod]:
    """Return the pods with these labels, sorted by name."""
    found = [Pod.of(body) for body in kube.find(pods_path(namespace), selector)]
    return sorted(found, key=lambda pod: pod.name)


def refusing(kube: Kube, namespace: str, stateful_set: str, pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that refuse to start without their state: those of the newest template, and those of older ones.

    Both are empty while Kubernetes has not observed the newest template.
    """
    found = [pod for pod in pods if pod.crashed_with(STATE_LOST) and not pod.going]
    whole = kube.get(f"{stateful_sets_path(namespace)}/{stateful_set}") if found else None
    if whole is None or not observed(whole):
        return [], []
    newest = whole["status"].get("updateRevision")
    return [pod for pod in found if pod.revision == newest], [pod for pod in found if pod.revision != newest]


def observed(stateful_set: Json) -> bool:
    """Return True if the status is about the newest specification."""
    return bool(stateful_set.get("status", {}).get("observedGeneration", 0) >= stateful_set["metadata"]["generation"])
