"""Progress of helm's wait: objects that are not ready, and the problems of their pods."""

import re
import time
from collections.abc import Callable

from tools.engine.kubernetes.api_client import ApiConnection, ApiError, UnreachableError
from tools.engine.local.providers.waiting import pod_problems

_REPORT_AFTER_SECONDS, _REPORT_EVERY_SECONDS = 3.0, 10.0
_API_VERSIONS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "Pod": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
_NOT_READY = re.compile(
    r"^(?P<kind>\w+) (?:is not \w+|is failed|does not have [\w ]+): (?P<namespace>[^/\s]+)/(?P<name>\S+?)\.?(?: |$)"
)
"""Lines of helm's `pkg/kube/ready.go`."""
_HOOK = re.compile(r"^Watching for changes to (?P<kind>\w+) (?P<name>\S+) with timeout")
"""Line of helm's `pkg/kube/client.go`, before it waits for a hook."""


class WaitReport:
    """Receives helm's debug output, and prints at intervals what is not ready.

    Args:
        cluster: Connection to the cluster.
        namespace: Namespace of the release.
        say: Prints a line.
    """

    def __init__(self, cluster: ApiConnection, namespace: str, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._say = say
        self._next = time.monotonic() + _REPORT_AFTER_SECONDS
        self._said: list[str] = []
        self._last: tuple[str, str, str] | None = None
        self._line = ""

    async def read(self, line: str) -> None:
        """Parse a line of helm's output."""
        if match := _NOT_READY.match(line):
            self._line, self._last = line, (match["kind"], match["namespace"], match["name"])
        elif match := _HOOK.match(line):
            self._line = f"waiting for the hook {match['kind']} {match['name']}"
            self._last = (match["kind"], self._namespace, match["name"])
        else:
            return
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REPORT_EVERY_SECONDS
        lines = await self.problems()
        for text in lines:
            if text not in self._said:
                self._say(text)
        self._said = lines

    async def problems(self) -> list[str]:
        """Return the objects that were not ready at the last look, with the problems of their pods."""
        if self._last is None:
            return []
        kind, namespace, name = self._last
        if kind not in _API_VERSIONS:
            return [self._line]
        try:
            live = await self._cluster.get(_API_VERSIONS[kind], kind, namespace, name)
        except (ApiError, UnreachableError):
            live = None  # an explanation alone
        return [self._line, *(await pod_problems(self._cluster, live) if live else [])]
