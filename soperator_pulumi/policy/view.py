"""Plain view of resources, as policies read them: the same from an engine and from a recorded deployment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from soperator_pulumi.lifecycle.resource import acts_as

PART_OF_LABEL = "app.kubernetes.io/part-of"
COMPONENT_LABEL = "app.kubernetes.io/component"
OURS = "soperator-pulumi"
"""Value of `PART_OF_LABEL` on all objects of a SlurmCluster."""

STACK_TYPE = "pulumi:pulumi:Stack"

_PATCH, _LIST = "Patch", "List"

Path = tuple[str | int, ...]
"""Keys and indices from a resource's properties down to a value."""


class _NotKnown(Enum):
    NOT_KNOWN = "not known"


UNKNOWN: Final = _NotKnown.NOT_KNOWN
"""Value that a preview does not know yet."""

_NOT_KNOWN_YET = dict.fromkeys(("metadata", "spec", "data", "stringData"), UNKNOWN)

_PODS_NOT_KNOWN = {"containers": UNKNOWN}

_WORKLOADS = ("Pod", "StatefulSet", "Deployment", "ReplicaSet", "DaemonSet", "Job", "CronJob")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")

HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
"""Parts of a pod's specification that give it a namespace of its machine."""


@dataclass(frozen=True, kw_only=True)
class ResourceView:
    """A resource of a stack."""

    type: str
    """Type token: `kubernetes:apps/v1:StatefulSet`."""
    name: str
    """Name in the program."""
    urn: str
    """Pulumi's unique name of the resource."""
    props: Mapping[str, Any] = field(repr=False)
    """Properties by the provider's keys: inputs, and for policies of a whole stack under an engine the outputs. Secrets
    stand in plain, so no message may contain a text of the properties."""
    parent: str = ""
    """URN of the parent."""
    protect: bool = False
    """True where Pulumi refuses to delete it."""
    retain_on_delete: bool | None = None
    """None where it is not known: engines do not pass it on."""
    dependencies: Sequence[str] = ()
    """URNs of the resources that this one depends on."""
    property_dependencies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The same by property."""
    secrets: frozenset[Path] | None = None
    """Paths of values marked as secret, with all below them. None where marks are not known: engines show them to
    remediations alone."""
    place: Path = ()
    """Keys and indices down to the object, where the resource is a list of objects."""

    @property
    def kind(self) -> str:
        """Last word of the type: `StatefulSet`. A patch has the kind of the object that it changes."""
        kind = self.type.rpartition(":")[2]
        return kind.removesuffix(_PATCH) if self.is_patch else kind

    @property
    def is_patch(self) -> bool:
        """True for a patch of an object of Kubernetes, such as a `DeploymentPatch`: it has what it changes alone."""
        return self.is_kubernetes and self.type.endswith(_PATCH)

    @property
    def is_kubernetes(self) -> bool:
        """True for an object of Kubernetes."""
        return self.type.startswith("kubernetes:")

    @property
    def is_ours(self) -> bool:
        """True for an object of a SlurmCluster."""
        return bool(look(self.labels, PART_OF_LABEL) == OURS)

    @property
    def labels(self) -> Any:  # noqa: ANN401 a mapping, UNKNOWN or None
        """Labels of an object of Kubernetes."""
        return look(self.props, "metadata", "labels")

    @property
    def namespace(self) -> Any:  # noqa: ANN401 a text, UNKNOWN or None
        """Namespace of an object of Kubernetes, or of a resource of ours."""
        return look(self.props, "metadata", "namespace") or look(self.props, "namespace")

    def acts_as(self, kind: str) -> bool:
        """Return True for a resource of ours of a kind such as `NodeDrain`, from Python or from the plugin."""
        return acts_as(self.type, kind)

    def input(self, name: str) -> Any:  # noqa: ANN401 any value
        """Return an input of a resource of ours by its name in Python; the plugin has it in camelCase."""
        found = look(self.props, name)
        return look(self.props, _camel(name)) if found is None else found

    def is_secret(self, path: Path) -> bool:
        """Return True where the value at a path, or a part that holds it, is marked as secret."""
        whole = (*self.place, *path)
        return any(whole[: len(marked)] == marked for marked in self.secrets or ())

    def objects(self) -> Iterator["ResourceView"]:
        """Yield the objects of a list such as a `ConfigMapList`, and any other resource as it is."""
        kind, items = self.type.removesuffix(_LIST), look(self.props, "items")
        if not self.is_kubernetes or kind == self.type or not isinstance(items, list):
            yield self
            return
        for index, item in enumerate(items):
            yield replace(
                self, type=kind, props=_NOT_KNOWN_YET if item is UNKNOWN else mapped(item), place=("items", index)
            )


@dataclass(frozen=True)
class PodView:
    """Specification of pods somewhere in a resource."""

    resource: ResourceView
    """The resource that describes the pods."""
    path: Path
    """Keys and indices down to the specification."""
    spec: Mapping[str, Any] = field(repr=False)
    """The specification: a PodSpec of Kubernetes."""
    labels: Any = field(repr=False)
    """Labels of the pods: a mapping, UNKNOWN or None."""

    @property
    def is_ours(self) -> bool:
        """True for pods of a SlurmCluster."""
        return bool(look(self.labels, PART_OF_LABEL) == OURS)

    @property
    def is_whole(self) -> bool:
        """True where all of the specification is there: a patch, and a preview, may have a part alone."""
        return "containers" in self.spec and self.spec is not _PODS_NOT_KNOWN and not self.resource.is_patch

    def containers(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield the containers of all kinds that are known, each with its path."""
        for group in _CONTAINERS:
            for index, container in enumerate(listed(look(self.spec, group))):
                if isinstance(container, Mapping):
                    yield (*self.path, group, index), container

    def unknown(self) -> Iterator[Path]:
        """Yield the paths of containers that are not known."""
        for group in _CONTAINERS:
            found = look(self.spec, group)
            if found is UNKNOWN:
                yield (*self.path, group)
            for index, container in enumerate(listed(found)):
                if container is UNKNOWN:
                    yield (*self.path, group, index)


def pods_of(resource: ResourceView) -> Iterator[PodView]:
    """Yield the pods that a resource describes, wherever in it: workloads, templates of ours, custom resources."""
    yield from _pods(resource, (), resource.props, {})


def _pods(resource: ResourceView, path: Path, value: object, above: Mapping[str, Any]) -> Iterator[PodView]:
    if isinstance(value, Mapping):
        if _describes_pods(value, path):
            yield PodView(resource, path, value, look(above, "metadata", "labels"))
            return
        for key, each in value.items():
            yield from _pods(resource, (*path, key), each, value)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _pods(resource, (*path, index), each, {})
    elif value is UNKNOWN and (path[-1:] == ("template",) or (path == ("spec",) and resource.kind in _WORKLOADS)):
        yield PodView(resource, path, _PODS_NOT_KNOWN, UNKNOWN)


def _describes_pods(value: Mapping[str, Any], path: Path) -> bool:
    groups = [value[group] for group in _CONTAINERS if group in value]
    if path[-1:] == ("spec",):
        groups.append(value.get("volumes"))
    found = any(group is UNKNOWN or _has_objects(group) for group in groups)
    return found or any(value.get(name) in (True, UNKNOWN) for name in HOST_NAMESPACES)


def _has_objects(value: object) -> bool:
    return any(each is UNKNOWN or isinstance(each, Mapping) for each in listed(value))


def look(value: Any, *path: str | int) -> Any:  # noqa: ANN401 any tree of values
    """Return the value at a path: None where there is none, UNKNOWN where a part on the way is not known."""
    for key in path:
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def listed(value: object) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def whole_number(value: object) -> int | None:
    """Return a number as an engine has it, a float, or as text; None for anything else, and where it is not known."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, (int, float)) and value == value // 1 else None


def texts_in(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield all texts in a tree of values, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from texts_in(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from texts_in(each, (*path, index))


def written(path: Path) -> str:
    """Return a path in Pulumi's form: `spec.template.spec.containers[0].image`, `data["munge.key"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.replace("_", "").replace("-", "").isalnum():
            text += f".{key}"
        else:
            text += f'["{key}"]'
    return text.removeprefix(".")


def snake_keys(value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values with keys in snake_case, as Python has them."""
    if isinstance(value, Mapping):
        return {_snake(key): snake_keys(each) for key, each in value.items()}
    return [snake_keys(each) for each in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
