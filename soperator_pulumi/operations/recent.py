"""A live cluster as it was at most a second ago.

A diff only decides whether an update looks properly, and acts. Those of all node sets are asked for at the same moment,
and ask the same of Slurm and of the namespace; the SDK's server has four threads for them.
"""

from collections.abc import Mapping

from soperator_pulumi.operations.kube import FIELD_MANAGER, LOG_LINES, Json, Kube
from soperator_pulumi.operations.progress import Clock
from soperator_pulumi.slurm.shared_reads import SharedAnswers, SharedReads
from soperator_pulumi.slurm.transport import Transport

MAX_AGE_SECONDS = 1.0


class Recent:
    """A cluster of which the same object, and the same of Slurm, is asked once a second, whoever asks."""

    def __init__(self, kube: Kube, clock: Clock) -> None:
        """Prepare.

        Args:
            kube: The cluster.
            clock: Says how old an answer is.
        """
        self._kube = kube
        self._answers = SharedAnswers(clock.now)

    def __str__(self) -> str:
        """Return the address of the API server, for messages."""
        return str(self._kube)

    def get(self, path: str) -> Json | None:
        """Return an object, or None when there is none."""
        return self._answers.ask(path, lambda: self._kube.get(path), max_age_seconds=MAX_AGE_SECONDS)

    def find(
        self, path: str, labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
    ) -> list[Json]:
        """Return the objects of a collection, as they are now."""
        return self._kube.find(path, labels, fields)

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
        """Return the last lines of a container's log, as they are now."""
        return self._kube.log(path, container, previous=previous, since_seconds=since_seconds, lines=lines)

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> Transport:
        """Return what runs commands in a container; what only reads Slurm's state is shared."""
        transport = self._kube.transport(namespace, pod, container, coreutils=coreutils)
        where = (namespace, pod, container)
        return SharedReads(transport, self._answers, where=where, max_age_seconds=MAX_AGE_SECONDS)
