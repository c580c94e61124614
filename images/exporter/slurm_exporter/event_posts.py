"""Events that a thread of their own sends to Kubernetes, so that no round waits."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from queue import Full, Queue

from slurm_exporter.health_events import HealthEvent
from slurm_exporter.kubernetes_api import ERRORS, KubernetesApi

CREATED, FAILED, DROPPED = OUTCOMES = ("created", "failed", "dropped")
"""Outcomes of an event: created, failed after all attempts, or dropped because the queue was full."""

_QUEUE = 2000
"""Length of the queue: events of all nodes of a large cluster at once, about 1 MB."""

_ATTEMPTS_AFTER_SECONDS = (0, 5, 30)
_THERE = {HTTPStatus.CREATED, HTTPStatus.CONFLICT}
"""Statuses that mean that the event exists: created now, or earlier by this or a previous exporter."""

_PASSING = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.UNAUTHORIZED}
"""Refusals that a retry may overcome: the token may be replaced while it is read."""


class EventPosts:
    """Queue of events, and the thread that empties it."""

    def __init__(self, post: Callable[[HealthEvent], int], report: Callable[[str], None]) -> None:
        self.outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        self._post, self._report = post, report
        self._waiting: Queue[HealthEvent] = Queue(_QUEUE)
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread. It ends with the process."""
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, events: Iterable[HealthEvent]) -> None:
        """Add events to the queue. Events beyond its length are counted and dropped."""
        for event in events:
            try:
                self._waiting.put_nowait(event)
            except Full:
                self.outcomes[DROPPED] += 1

    def _run(self) -> None:
        while True:
            self.send(self._waiting.get())

    def send(self, event: HealthEvent, after_seconds: Iterable[float] = _ATTEMPTS_AFTER_SECONDS) -> None:
        """Send an event, in several attempts, and count its outcome."""
        problem = ""
        for seconds in after_seconds:
            self._ended.wait(seconds)
            try:
                status = self._post(event)
            except ERRORS as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            if status in _THERE:
                self.outcomes[CREATED] += 1
                return
            problem = f"Kubernetes answers {status}"
            if status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _PASSING:
                break
        self.outcomes[FAILED] += 1
        self._report(f"event {event.name}: {problem}")


def poster(api: KubernetesApi) -> Callable[[HealthEvent], int]:
    """Return a function that sends one event to the pod's own Kubernetes, and returns the status of the answer."""

    def post(event: HealthEvent) -> int:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = event.manifest(api.namespace, now)
        return api.call("POST", f"/api/v1/namespaces/{api.namespace}/events", body).status

    return post
