"""Waits until objects are ready or deleted: prints what is missing, and stops after a time limit."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from tools.console import UserError
from tools.engine.kubernetes.api_client import ApiConnection, ApiError, Object, UnreachableError
from tools.engine.local.providers import readiness
from tools.engine.local.providers.readiness import Readiness, RuleInput

DEFAULT_TIMEOUT_SECONDS = 600.0
"""Default of pulumi-kubernetes."""
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.1, 1.0
_REPORT_AFTER_SECONDS, _REPORT_EVERY_SECONDS = 3.0, 10.0

Say = Callable[[str], None]


class AwaitError(UserError):
    """An object did not become ready. `live` is its last state."""

    def __init__(self, message: str, live: Object) -> None:
        super().__init__(message)
        self.live = live


async def until_ready(
    cluster: ApiConnection, obj: Object, before: Object | None, timeout_seconds: float, say: Say
) -> Object:
    """Wait until an object is ready and return its last state.

    Raises:
        AwaitError: The object is not ready in time, or never will be.
    """
    rule = readiness.RULES.get((obj["apiVersion"], obj["kind"]))
    if rule is None:
        return obj
    started = time.monotonic()
    watch = _Related(cluster)
    reporter = _Reporter(cluster, say)
    pause, live = _FIRST_POLL_SECONDS, obj
    while True:
        state = await _look(rule, live, before, watch)
        if state.ready:
            return live
        if state.failed or time.monotonic() - started >= timeout_seconds:
            after = "" if state.failed else f"not ready within {timeout_seconds:.0f} s: "
            raise AwaitError("\n".join([after + state.message, *await pod_problems(cluster, live)]), live)
        await reporter.report(state.message, live)
        await asyncio.sleep(pause)
        pause = min(pause * 1.3, _LAST_POLL_SECONDS)
        live = await _refetch(cluster, live)


async def check_now(cluster: ApiConnection, live: Object) -> Readiness:
    """Return the current readiness of an object, without waiting for it to settle."""
    rule = readiness.RULES.get((live["apiVersion"], live["kind"]))
    if rule is None or live["kind"] in {"PersistentVolume", "PersistentVolumeClaim", "ResourceQuota", "Secret"}:
        return Readiness(True)  # pulumi-kubernetes awaits these only when it makes them
    related = await _Related(cluster).of(live)
    return rule(live, RuleInput(before=live, related=related, quiet_seconds=readiness.SERVICE_SETTLE_SECONDS))


async def _look(rule: readiness.Rule, live: Object, before: Object | None, watch: "_Related") -> Readiness:
    try:
        related = await watch.of(live)
    except UnreachableError as error:
        return Readiness(False, str(error))
    return rule(live, RuleInput(before=before, related=related, quiet_seconds=watch.quiet_seconds()))


async def _refetch(cluster: ApiConnection, live: Object) -> Object:
    metadata = live["metadata"]
    try:
        found = await cluster.get(live["apiVersion"], live["kind"], metadata.get("namespace", ""), metadata["name"])
    except UnreachableError:
        return live  # the API server may come back in time
    if found is None:
        raise AwaitError("the object was deleted during the wait", live)
    return found


class _Related:
    """Fetches the related objects of a rule, and measures the time since their last change."""

    def __init__(self, cluster: ApiConnection) -> None:
        self._cluster = cluster
        self._seen = ""
        self._since = time.monotonic()

    async def of(self, live: Object) -> list[Object]:
        related = await self._fetch(live)
        versions = json.dumps([o["metadata"].get("resourceVersion") for o in related])
        if versions != self._seen:
            self._seen, self._since = versions, time.monotonic()
        return related

    def quiet_seconds(self) -> float:
        return time.monotonic() - self._since

    async def _fetch(self, live: Object) -> list[Object]:
        namespace, spec = live["metadata"].get("namespace", ""), live.get("spec", {})
        get = self._cluster.get
        match live["kind"]:
            case "Deployment":
                selector = labels(spec)
                found = await self._cluster.list("apps/v1", "ReplicaSet", namespace, labelSelector=selector)
                volumes = spec["template"]["spec"].get("volumes") or []
                names = [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v]
                claims = [await get("v1", "PersistentVolumeClaim", namespace, name) for name in names]
                return [*found, *(c for c in claims if c)]
            case "Service" if spec.get("selector"):
                endpoints = await get("v1", "Endpoints", namespace, live["metadata"]["name"])
                return [endpoints] if endpoints else []
            case "PersistentVolumeClaim" if spec.get("storageClassName"):
                storage = await get("storage.k8s.io/v1", "StorageClass", "", spec["storageClassName"])
                return [storage] if storage else []
            case _:
                return []


def labels(spec: Mapping[str, Any]) -> str:
    """Return the label selector of a workload in the form of a query."""
    selector = spec.get("selector") or {}
    equal = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    return ",".join(equal)


class _Reporter:
    """Prints what is missing, with the problems of pods: after a delay, on a change, and at intervals."""

    def __init__(self, cluster: ApiConnection, say: Say) -> None:
        self._cluster = cluster
        self._say = say
        self._next = time.monotonic() + _REPORT_AFTER_SECONDS
        self._reported: list[str] = []

    async def report(self, message: str, live: Object) -> None:
        if time.monotonic() < self._next:
            return
        lines = [message, *await pod_problems(self._cluster, live)]
        self._next = time.monotonic() + _REPORT_EVERY_SECONDS
        for line in lines:
            if line not in self._reported:
                self._say(line)
        self._reported = lines


async def pod_problems(cluster: ApiConnection, live: Object) -> list[str]:
    """Return a line for every unready pod of a workload, with the kubelet's or scheduler's message."""
    spec = live.get("spec") or {}
    if live["kind"] not in {"StatefulSet", "Deployment", "DaemonSet", "Job", "Pod"}:
        return []
    try:
        if live["kind"] == "Pod":
            pods = [live]
        else:
            namespace = live["metadata"]["namespace"]
            pods = await cluster.list("v1", "Pod", namespace, labelSelector=labels(spec))
        return [line for pod in pods if (line := await _problem(cluster, pod))]
    except (ApiError, UnreachableError):
        return []  # an explanation alone; the awaited object is read elsewhere


async def _problem(cluster: ApiConnection, pod: Object) -> str:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True" or status.get("phase") == "Succeeded":
        return ""
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = container.get("state", {})
        waiting, ended = state.get("waiting", {}), state.get("terminated") or {}
        last = container.get("lastState", {}).get("terminated") or {}
        if waiting.get("reason") not in {None, "ContainerCreating", "PodInitializing"} or ended.get("exitCode"):
            code = f", exit code {c}" if (c := (ended or last).get("exitCode")) is not None else ""
            reason = waiting.get("reason") or ended.get("reason")
            detail = waiting.get("message") or ended.get("message") or last.get("message") or ""
            return f"pod {name}, container {container['name']}: {reason}{code}. {detail}".rstrip(". ")
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"pod {name} is not scheduled: {scheduled.get('message', '')}"
    return await _warning(cluster, pod)


async def _warning(cluster: ApiConnection, pod: Object) -> str:
    metadata = pod["metadata"]
    selector = f"involvedObject.uid={metadata['uid']},type=Warning"
    events = await cluster.list("v1", "Event", metadata["namespace"], fieldSelector=selector)
    if not events:
        return ""
    newest = max(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")
    return f"pod {metadata['name']}: {newest.get('reason')}: {newest.get('message', '')}"


async def until_gone(cluster: ApiConnection, live: Object, timeout_seconds: float, say: Say) -> None:
    """Wait until an object is deleted.

    Raises:
        UserError: The object still exists; the message names what holds it.
    """
    started, pause, reported = time.monotonic(), _FIRST_POLL_SECONDS, ""
    metadata = live["metadata"]
    while True:
        try:
            found = await cluster.get(live["apiVersion"], live["kind"], metadata.get("namespace", ""), metadata["name"])
        except UnreachableError as error:
            why = str(error)
        else:
            if found is None or found["metadata"]["uid"] != metadata["uid"]:
                return
            why = _what_holds(found)
        waited = time.monotonic() - started
        if waited >= timeout_seconds:
            raise UserError(f"still there {timeout_seconds:.0f} s after its deletion: {why}")
        if waited >= _REPORT_AFTER_SECONDS and why != reported:
            say(why)
            reported = why
        await asyncio.sleep(pause)
        pause = min(pause * 1.3, _LAST_POLL_SECONDS)


def _what_holds(obj: Object) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    reasons = [
        str(c.get("message"))
        for c in conditions
        if str(c.get("type", "")).startswith("Namespace") and c.get("status") == "True" and c.get("message")
    ]
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizers:
        reasons.append(f"finalizers hold it: {', '.join(finalizers)}")
    return "; ".join(reasons) or "waiting until it has gone"
