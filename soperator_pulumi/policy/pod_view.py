"""Views of the pods that resources describe."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look
from soperator_pulumi.policy.view import ResourceView

_PODS_NOT_KNOWN = {"containers": UNKNOWN}

_WORKLOADS = ("Pod", "StatefulSet", "Deployment", "ReplicaSet", "DaemonSet", "Job", "CronJob")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")

_STATEFUL_SET = "kubernetes:apps/v1:StatefulSet"
_PARTS_WITH_PODS = (
    *("Accounting", "AdminShell", "Controller", "Database", "LoginNodes", "MetricsExporter", "NodeSet", "RestApi"),
)

HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
"""Fields of a pod's specification that share a namespace with its machine."""


@dataclass(frozen=True)
class PodView:
    """Specification of pods, found anywhere in a resource."""

    resource: ResourceView
    """The resource that describes the pods."""
    path: Path
    """Keys and indices down to the specification."""
    spec: Mapping[str, Any] = field(repr=False)
    """The specification: a PodSpec of Kubernetes."""
    labels: Any = field(repr=False)
    """Labels of the pods: a mapping, UNKNOWN or None."""
    annotations: Any = field(default=None, repr=False)
    """Annotations of the pods: a mapping, UNKNOWN or None."""

    @property
    def part(self) -> str:
        """Part of a SlurmCluster whose pods these are: `NodeSet`, or `""` for other pods."""
        made = self.resource.type == _STATEFUL_SET and self.resource.is_made_by(*_PARTS_WITH_PODS)
        return self.resource.part if made else ""

    @property
    def is_whole(self) -> bool:
        """True if the whole specification is known: a patch, or a preview, may have only a part."""
        is_part = self.resource.is_patch or self.resource.is_chart
        return "containers" in self.spec and self.spec is not _PODS_NOT_KNOWN and not is_part

    def containers(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield the known containers of all kinds, with their paths."""
        for group in _CONTAINERS:
            for index, container in enumerate(listed(look(self.spec, group))):
                if isinstance(container, Mapping):
                    yield (*self.path, group, index), container

    def unknown(self) -> Iterator[Path]:
        """Yield the paths of containers that are not known yet."""
        for group in _CONTAINERS:
            found = look(self.spec, group)
            if found is UNKNOWN:
                yield (*self.path, group)
            for index, container in enumerate(listed(found)):
                if container is UNKNOWN:
                    yield (*self.path, group, index)


def pods_of(resource: ResourceView) -> Iterator[PodView]:
    """Yield the pods in a resource: those of workloads, of this project's templates and of custom resources."""
    if not resource.is_group:  # its objects are separate resources
        yield from _pods(resource, (), resource.props, {})


def _pods(resource: ResourceView, path: Path, value: object, above: Mapping[str, Any]) -> Iterator[PodView]:
    if isinstance(value, Mapping):
        if _describes_pods(value, path) or _changes_context(resource, value, path):
            metadata = look(above, "metadata")
            yield PodView(resource, path, value, look(metadata, "labels"), look(metadata, "annotations"))
        for key, item in value.items():
            if key not in _CONTAINERS or not _has_objects(item):
                yield from _pods(resource, (*path, key), item, value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _pods(resource, (*path, index), item, {})
    elif value is UNKNOWN and (path[-1:] == ("template",) or (path == ("spec",) and resource.kind in _WORKLOADS)):
        yield PodView(resource, path, _PODS_NOT_KNOWN, UNKNOWN)


def values_outside_pods(resource: ResourceView) -> Iterator[tuple[Path, Any]]:
    """Yield the keys and values in a custom resource or a chart's values that are outside pod specifications.

    Operators and charts build pods from their own keys: `sidecars`, `podSecurityContext`, `image`.
    """
    if resource.is_custom:
        yield from _outside(resource.props, ())


def _outside(value: object, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        ours = (*_CONTAINERS, "securityContext") if _describes_pods(value, path) else ()
        for key, item in value.items():
            if key not in ours:
                yield (*path, key), item
                yield from _outside(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _outside(item, (*path, index))


def _describes_pods(value: Mapping[str, Any], path: Path) -> bool:
    groups = [value[group] for group in _CONTAINERS if group in value]
    if path[-1:] == ("spec",):
        groups.append(value.get("volumes"))
    found = any(group is UNKNOWN or _has_objects(group) for group in groups)
    return found or any(value.get(name) in (True, UNKNOWN) for name in HOST_NAMESPACES)


def _changes_context(resource: ResourceView, value: Mapping[str, Any], path: Path) -> bool:
    """Return True for a patch of a workload that changes only the security context of its pods."""
    return resource.is_patch and not resource.is_custom and path[-1:] == ("spec",) and "securityContext" in value


def _has_objects(value: object) -> bool:
    return any(item is UNKNOWN or isinstance(item, Mapping) for item in listed(value))
