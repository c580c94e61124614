"""A live cluster as it was at most a second ago.

A diff only decides about an update, which looks again before it acts. The diffs of all node sets run at the same moment
and read the same from Slurm and from the namespace; the SDK's server has four threads for them.
"""

from collections.abc import Mapping

from soperator_pulumi.kube.verbs import FIELD_MANAGER, LOG_LINES, Json, Kube
from soperator_pulumi.operations.progress import Clock
from soperator_pulumi.slurm.shared_reads import SharedAnswers, SharedReads
from soperator_pulumi.slurm.transport import Transport

MAX_AGE_SECONDS = 1.0


class Recent:
    """A client that reads an object, or an answer of Slurm, at most once a second."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        """Create a client over another one.

        Args:
            kube: Client of the cluster.
            clock: Measures the age of answers.
        """
        self._kube = kube
        self._answers = SharedAnswers(clock.now)

    def __str__(self) -> str:
        """Return the address of the API server, for messages."""
        return str(self._kube)

    def get(self, path: str) -> Json | None:
        """Return an object; None if it does not exist."""
        return self._answers.ask(path, lambda: self._kube.get(path), max_age_seconds=MAX_AGE_SECONDS)

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        """Return the current objects of a collection."""
        return self._kube.find(path, labels, fields)

    def create(self, path: str, body: Json, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Json:
        """Create an object."""
        return self._kube.create(path, body, dry_run=dry_run, manager=manager)

    def apply(self, path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        """Apply an object."""
        return self._kube.apply(path, body, manager=manager)

    def merge(self, path: str, body: Json) -> Json | None:
        """Change fields of an object."""
        return self._kube.merge(path, body)

    def delete(self, path: str, *, dependents_first: bool = False) -> None:
        """Delete an object."""
        self._kube.delete(path, dependents_first=dependents_first)

    def log(
        self,
        path: str,
        container: str,
        *,
        previous: bool = False,
        since_seconds: int | None = None,
        lines: int = LOG_LINES,
    ) -> str:
        """Return the last lines of a container's log, as of now."""
        return self._kube.log(path, container, previous=previous, since_seconds=since_seconds, lines=lines)

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> Transport:
        """Return a transport to a container, which shares reads of Slurm's state."""
        transport = self._kube.transport(namespace, pod, container, coreutils=coreutils)
        where = (namespace, pod, container)
        return SharedReads(transport, self._answers, where=where, max_age_seconds=MAX_AGE_SECONDS)
