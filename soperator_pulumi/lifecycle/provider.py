"""Base classes of the providers of this package's resources.

Users' states record the modules and class names of dynamic resources' providers: never rename them.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    Config,
    ConfigureRequest,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)
from pulumi.output import Unknown
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.errors import KubernetesError, SoperatorError, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.verbs import Kube
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, access, with_newest_access
from soperator_pulumi.lifecycle.sdk_server import adapt_sdk_server
from soperator_pulumi.lifecycle.superseded import noting_successor, unless_superseded
from soperator_pulumi.operations.nodes.cluster_ref import ClusterRef, cluster_of, controller_lost, namespace_path
from soperator_pulumi.operations.progress import MachineClock, unless_cancelled
from soperator_pulumi.operations.recent import Recent

P = ParamSpec("P")
R = TypeVar("R")
Diff = Callable[["LiveProvider", str, dict[str, Any], dict[str, Any]], DiffResult]
Update = Callable[["LiveProvider", str, dict[str, Any], dict[str, Any]], UpdateResult]
Read = Callable[["LiveProvider", str, dict[str, Any]], ReadResult]
Delete = Callable[["LiveProvider", str, dict[str, Any]], None]

_recents: dict[Kube, Recent] = {}
"""Clusters as this process's diffs have read them."""


def without_traceback(operation: Callable[P, R]) -> Callable[P, R]:
    """Raise errors of this package without traceback and cause; Pulumi prints the tracebacks of all other errors."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return operation(*args, **kwargs)
        except SoperatorError as error:
            raise error.with_traceback(None) from None

    return run


class LiveProvider(ResourceProvider):
    """A provider that reads a live cluster. It captures nothing; `configure` brings the stack's configuration."""

    serialize_as_secret_always = False

    _config: Config | None = None

    def __init_subclass__(cls) -> None:
        """Make every operation fail with only a message, and use the newest known access to the cluster.

        In a cancelled run, an operation that changes something does not start. It also discards earlier answers.
        """
        wraps: list[tuple[str, Callable[[Any], object]]] = [
            ("diff", _diff_with_access),
            ("create", noting_successor),
            ("update", _update_with_access),
            ("read", _read_with_newest_access),
            ("delete", _delete_with_newest_access),
            ("delete", unless_superseded),
        ]
        for name, wrap in wraps:
            if name in cls.__dict__:
                setattr(cls, name, wrap(cls.__dict__[name]))
        for name in ("create", "update", "delete"):
            setattr(cls, name, _acting(getattr(cls, name)))
        for name in ("diff", "create", "read", "update", "delete"):
            setattr(cls, name, without_traceback(getattr(cls, name)))

    def configure(self, req: ConfigureRequest) -> None:
        """Keep the stack's configuration, in the provider's process."""
        self._config = req.config
        adapt_sdk_server()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Accept the inputs: the component has checked them as part of the spec."""
        return CheckResult(news, [])

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Return the recorded properties: the diff that follows reads the live cluster."""
        return ReadResult(id_, props)

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Remove nothing: a resource that waits or checks owns no object."""

    def kube(self, props: Mapping[str, Any]) -> Kube:
        """Return a client for the cluster of a resource with these inputs or outputs.

        Raises:
            KubernetesError: the kubeconfig names no cluster that can be read.
        """
        return _cluster(access(props, self._config))

    def recent(self, props: Mapping[str, Any]) -> Kube:
        """Return a client for diffs, whose answers are at most a second old.

        Raises:
            KubernetesError: the kubeconfig names no cluster that can be read.
        """
        kube = self.kube(props)
        return _recents.setdefault(kube, Recent(kube, MachineClock()))

    def newest(self, recorded: dict[str, Any]) -> dict[str, Any]:
        """Return recorded properties with the newest known access to the cluster."""
        return with_newest_access(recorded, self._config)


PROVIDER_KEY = "__provider"
"""Property in which the SDK's server of dynamic resources finds the provider. Resources of a plugin have none."""

_ACCESS = (KUBECONFIG, CONTEXT)
_RECORDED = (*_ACCESS, "namespace_uid")
"""Inputs that an update records even if nothing else has changed, as later reads and deletes need them."""


def has_unknown(value: object) -> bool:
    """Return True if a preview does not know a part of the value yet: an object, or its placeholder text."""
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(item) for item in value)
    return isinstance(value, Unknown) or (isinstance(value, str) and value == UNKNOWN)


def _recorded(news: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs in `_RECORDED`. The SDK leaves out None, so a missing access counts as None."""
    return {key: news.get(key) for key in _RECORDED if key in _ACCESS or key in news}


def _to_record(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Return True if the state needs new values although the cluster needs no change."""
    # Another server serves the resource now: the SDK's instead of a plugin, or the reverse.
    moved = (PROVIDER_KEY in olds) != (PROVIDER_KEY in news)
    return moved or any(value != olds.get(key) for key, value in _recorded(news).items() if not has_unknown(value))


def _diff_with_access(diff: Diff) -> Diff:
    """Count a changed access, or a change of the server, as a change."""

    @functools.wraps(diff)
    def run(self: LiveProvider, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        found = diff(self, id_, olds, news)
        return found if found.changes or not _to_record(olds, news) else DiffResult(changes=True)

    run.__dict__["of_all_else"] = diff
    return run


def _update_with_access(update: Update) -> Update:
    """Record a changed access or server, and act only if another input has changed."""

    @functools.wraps(update)
    def run(self: LiveProvider, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        if _to_record(olds, news) and not _without_access(self)(self, id_, olds, news).changes:
            kept = {key: value for key, value in olds.items() if key != PROVIDER_KEY}
            return UpdateResult({**kept, **_recorded(news)})
        return update(self, id_, olds, news)

    return run


def _without_access(provider: LiveProvider) -> Diff:
    """Return the provider's own diff, which ignores the access."""
    diff: Any = type(provider).diff
    while "of_all_else" not in vars(diff):
        diff = diff.__wrapped__
    found: Diff = diff.of_all_else
    return found


def _read_with_newest_access(read: Read) -> Read:
    """Read with the newest access; the recorded access stays until an update."""

    @functools.wraps(read)
    def run(self: LiveProvider, id_: str, props: dict[str, Any]) -> ReadResult:
        found = read(self, id_, self.newest(props))
        if found.outs:
            rest = {key: value for key, value in found.outs.items() if key not in _ACCESS}
            found.outs = {**rest, **{key: props[key] for key in _ACCESS if key in props}}
        return found

    return run


def _delete_with_newest_access(delete: Delete) -> Delete:
    """Delete with the newest access."""

    @functools.wraps(delete)
    def run(self: LiveProvider, id_: str, props: dict[str, Any]) -> None:
        delete(self, id_, self.newest(props))

    return run


def _acting(operation: Callable[P, R]) -> Callable[P, R]:
    """Refuse to start in a cancelled run, and discard cached answers after the operation, which may change them."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        unless_cancelled()
        try:
            return operation(*args, **kwargs)
        finally:
            _recents.clear()

    return run


@functools.lru_cache(maxsize=8)
def _cluster(access: Access) -> Kube:
    """Return the client of a cluster, from a cache: reading a kubeconfig takes longer than most calls."""
    # The program imports this module to register resources, and needs no Kubernetes client.
    from soperator_pulumi.kube.kube_api import Cluster  # noqa: PLC0415

    return Cluster(access)


class PinnedProvider(LiveProvider):
    """A provider of resources in one namespace, pinned to the UID of the namespace."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fill in the namespace's UID if the inputs have none: the recorded UID, or else the live one.

        As an input, the UID is known to previews: the outputs of a changed resource are its inputs there.
        """
        if news.get("namespace_uid") is None:
            before = olds.get("namespace_uid") if olds.get("namespace") == news["namespace"] else None
            try:
                lost = controller_lost(cluster_of(news))
            except SpecError as error:
                return CheckResult(news, [CheckFailure("", str(error))])
            news = {**news, "namespace_uid": before if before and not lost else self._live_uid(news)}
        return CheckResult(news, [])

    def pinned_kube(self, props: dict[str, Any]) -> Kube:
        """Return a client for the cluster of a resource, after checking that its namespace is the recorded one.

        Raises:
            KubernetesError: the namespace is missing, or has another UID: this may be the wrong cluster.
        """
        kube = self.kube(props)
        ClusterRef.model_validate(props).uid(kube)
        return kube

    def recorded_kube(self, props: dict[str, Any]) -> Kube:
        """Return a client to delete a resource, after checking that its namespace is the recorded one, or gone.

        Raises:
            KubernetesError: the namespace has another UID: nothing of another cluster is changed.
        """
        kube, uid = self.kube(props), props.get("namespace_uid")
        if uid and kube.get(namespace_path(props["namespace"])) is not None:
            ClusterRef.model_validate(props).uid(kube)
        return kube

    def _live_uid(self, props: dict[str, Any]) -> str | None:
        if has_unknown(props):
            return None
        try:
            found = self.kube(props).get(namespace_path(props["namespace"]))
        except KubernetesError:
            return None  # the operation that acts reports it
        return str(found["metadata"]["uid"]) if found else None
