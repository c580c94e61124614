"""What the providers of all our dynamic resources share.

Their modules and class names are recorded in users' states: they are not renamed.
"""

import functools
import sys
import traceback
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from pulumi.dynamic import CheckResult, Config, ConfigureRequest, ReadResult, ResourceProvider

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.lifecycle.connection import Access, access
from soperator_pulumi.lifecycle.kube import Kube
from soperator_pulumi.lifecycle.progress import MachineClock
from soperator_pulumi.lifecycle.recent import Recent

P = ParamSpec("P")
R = TypeVar("R")

_recents: dict[Kube, Recent] = {}
"""Clusters as diffs have seen them, in this process."""


class LiveProvider(ResourceProvider):
    """A provider that looks at a live cluster. It captures nothing; the stack's configuration comes by `configure`."""

    serialize_as_secret_always = False

    _config: Config | None = None

    def __init_subclass__(cls) -> None:
        """Have every operation fail in words, and what changes something make what was seen before old."""
        for name in ("create", "update", "delete"):
            setattr(cls, name, _then_look_anew(getattr(cls, name)))
        for name in ("diff", "create", "read", "update", "delete"):
            setattr(cls, name, _in_words(getattr(cls, name)))

    def configure(self, req: ConfigureRequest) -> None:
        """Keep the stack's configuration, in the provider's process."""
        self._config = req.config
        _answer_in_words()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Accept what the component has made: it was checked as part of the spec."""
        return CheckResult(news, [])

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Return what is recorded: the live cluster is looked at by every diff."""
        return ReadResult(id_, props)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Remove nothing: what only waits and checks has nothing of its own."""

    def kube(self, props: Mapping[str, Any], *, deleting: bool = False) -> Kube:
        """Return the cluster of a resource with these inputs or outputs.

        Raises:
            KubernetesError: no cluster can be read from the kubeconfig.
        """
        return _cluster(access(props, self._config, deleting=deleting))

    def recent(self, props: Mapping[str, Any]) -> Kube:
        """Return the same cluster as it was at most a second ago, for diffs.

        Raises:
            KubernetesError: no cluster can be read from the kubeconfig.
        """
        kube = self.kube(props)
        return _recents.setdefault(kube, Recent(kube, MachineClock()))


def _in_words(operation: Callable[P, R]) -> Callable[P, R]:
    """Let errors of ours through without what led to them: of other errors Pulumi prints whole tracebacks."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return operation(*args, **kwargs)
        except SoperatorError as error:
            raise error.with_traceback(None) from None

    return run


def _then_look_anew(operation: Callable[P, R]) -> Callable[P, R]:
    """Have nobody decide by what was seen before an operation that may have changed it."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return operation(*args, **kwargs)
        finally:
            _recents.clear()

    return run


def _answer_in_words() -> None:
    """Have the SDK's server answer with the message alone when an error of ours ends an operation.

    `pulumi.dynamic.__main__` (3.260) answers each exception with `traceback.format_exc()`: six lines of the SDK's own
    before our words. Where the server looks for that function otherwise, nothing is changed, and the words are last.
    """
    server: Any = sys.modules["__main__"]
    spec = getattr(server, "__spec__", None)
    if spec is not None and spec.name == "pulumi.dynamic.__main__" and getattr(server, "traceback", None) is traceback:
        server.traceback = SimpleNamespace(format_exc=_told)


def _told() -> str:
    """Return what is to be said of the exception that is being handled."""
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, SoperatorError) else traceback.format_exc()


@functools.lru_cache(maxsize=8)
def _cluster(access: Access) -> Kube:
    """Return the connection to a cluster; reading a kubeconfig takes longer than most calls."""
    # The program needs no client of Kubernetes, and imports the provider's class to register its resources.
    from soperator_pulumi.lifecycle.kube_api import Cluster  # noqa: PLC0415

    return Cluster(access)
