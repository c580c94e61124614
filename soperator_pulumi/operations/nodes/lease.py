"""Lease of a cluster's nodes: only one planner drains and undrains at a time, be it a deployment or a command.

A Kubernetes Lease in the cluster's namespace names the holder. The holder renews it while it works. A killed holder
loses it after the Lease's duration without renewal, measured by the waiting planner's own clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from soperator_pulumi.errors import AnotherPlannerError, DrainError, KubernetesError
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.nodes.cluster_ref import namespace_path
from soperator_pulumi.operations.planner_process import has_ended, me
from soperator_pulumi.operations.progress import Clock, Report, unless_cancelled, until

LEASE = "soperator-pulumi"
"""Name of the Lease."""

DURATION_SECONDS = 30
"""Time without renewal after which the Lease is free. A drain run looks at the cluster, and renews, every 5 s."""

WAIT_SECONDS = 600
"""Longest wait for another holder: an operation of a deployment occupies one of the SDK's four threads."""

_ATTEMPTS = 3
_RENEW_SECONDS = 10.0
_REPORT_SECONDS = 60.0

_held: dict[tuple[str, str], int] = {}
"""Number of this process's operations that share a Lease, by API server and namespace."""
_lock = Lock()


@dataclass
class ClusterLease:
    """The Lease of one cluster, for one operation after another."""

    kube: Kube
    namespace: str
    cluster: str
    """The cluster's name, for messages."""
    report: Report
    clock: Clock
    _seen: tuple[object, float] = (None, 0.0)
    """Another holder's last renewal, and when it was first seen."""
    _renewed_at: float = field(default=float("-inf"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the Lease; while another planner holds it, wait and report the holder.

        Raises:
            DrainError: another planner still holds it after ten minutes.
            KubernetesError: the Lease cannot be read or written.
            RunCancelledError: the run was cancelled.
        """
        self._acquire()
        try:
            yield
        finally:
            self._release()

    def keep(self) -> None:
        """Renew the Lease if it is held and renewal is due. Without an answer, the next call renews it.

        Raises:
            AnotherPlannerError: another planner holds it now.
        """
        now = self.clock.now()
        if now - self._renewed_at < _RENEW_SECONDS or not _held.get(self._key):
            return
        with suppress(KubernetesError):
            if other := self._take():
                raise AnotherPlannerError(
                    f"{self.cluster}: {other} drains nodes now, so this run ends. It undrains nothing. Run again when "
                    "the other one has ended."
                )
            self._renewed_at = now

    def _acquire(self) -> None:
        reported_at = float("-inf")
        for left in until(self.clock.now() + WAIT_SECONDS, self.clock, longest=5.0):
            unless_cancelled()
            with _lock:
                held = _held.get(self._key, 0)
                if not (other := "" if held else self._take()):
                    _held[self._key] = held + 1
                    if not held:
                        self._renewed_at = self.clock.now()
                    return
            if not left:
                raise DrainError(
                    f"{self.cluster}: no node is drained: {other} has been draining nodes for {WAIT_SECONDS} s. Run "
                    "again when it has ended."
                )
            if self.clock.now() - reported_at >= _REPORT_SECONDS:
                reported_at = self.clock.now()
                self.report(f"{self.cluster}: waits for {other}, which drains nodes, {left:.0f} s at most")

    def _release(self) -> None:
        with _lock:
            _held[self._key] -= 1
            if not _held[self._key]:
                del _held[self._key]
                with suppress(KubernetesError):  # it expires on its own
                    found = self.kube.get(self._path)
                    if found is not None and _holder(found) == me():
                        self._write(found, {"holderIdentity": None, "renewTime": None})

    def _take(self) -> str:
        """Take or renew the Lease; return the holder if another planner holds it.

        A namespace that is being deleted accepts no new Lease, so no other planner can get one either.
        """
        for left in reversed(range(_ATTEMPTS)):
            try:
                found = self._read()
            except KubernetesError:
                namespace = self.kube.get(namespace_path(self.namespace))
                if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
                    break
                raise
            holder = _holder(found)
            if holder not in {"", me()} and not self._is_over(found):
                return holder
            now = datetime.fromtimestamp(self.clock.wall(), UTC).isoformat(timespec="microseconds")
            times = {"renewTime": now.replace("+00:00", "Z")}
            try:
                self._write(found, {"holderIdentity": me(), "leaseDurationSeconds": DURATION_SECONDS, **times})
                break
            except KubernetesError:
                # Another planner was faster, or the answer was lost after the change: the next look shows it.
                if not left:
                    raise
        return ""

    def _is_over(self, found: Json) -> bool:
        """Return True if the holder has ended, or has not renewed for the Lease's duration."""
        spec = found.get("spec") or {}
        renewal = (spec.get("holderIdentity"), spec.get("renewTime"))
        if renewal != self._seen[0]:
            self._seen = (renewal, self.clock.now())
        quiet_seconds = self.clock.now() - self._seen[1]
        return has_ended(_holder(found)) or quiet_seconds >= int(spec.get("leaseDurationSeconds") or DURATION_SECONDS)

    @property
    def _path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{LEASE}"

    @property
    def _key(self) -> tuple[str, str]:
        return str(self.kube), self.namespace

    def _read(self) -> Json:
        """Return the Lease; an empty one if it does not exist."""
        metadata = {"name": LEASE, "namespace": self.namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        return self.kube.get(self._path) or self.kube.apply(self._path, body)

    def _write(self, found: Json, spec: dict[str, Any]) -> None:
        """Write the Lease, unless it has changed since it was read.

        Raises:
            KubernetesError: the Lease was changed or deleted since.
        """
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        if self.kube.merge(self._path, {"metadata": version, "spec": spec}) is None:
            raise KubernetesError(f"{self.cluster}: the Lease {LEASE} in {self.namespace} was deleted.")


def _holder(lease: Json) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
