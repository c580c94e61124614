"""Plain view of resources for policies, the same for an engine and for a recorded deployment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from soperator_pulumi.lifecycle.resource import PACKAGE, acts_as
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, camel_case, look, mapped

PART_OF_LABEL = "app.kubernetes.io/part-of"
COMPONENT_LABEL = "app.kubernetes.io/component"
CLUSTER_PART = "SlurmCluster"
"""Component that all other parts of a cluster belong to."""

STACK_TYPE = "pulumi:pulumi:Stack"

_PATCH, _LIST = "Patch", "List"
_NOT_KNOWN_YET = dict.fromkeys(("metadata", "spec", "data", "stringData"), UNKNOWN)


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
    """Properties by the provider's keys: inputs, or outputs if an engine runs a policy on the whole stack. Secrets are
    in plain text, so no message may quote a property."""
    parent: str = ""
    """URN of the parent."""
    protect: bool = False
    """True if Pulumi refuses to delete the resource."""
    retain_on_delete: bool | None = None
    """None if not known: engines do not pass it on."""
    dependencies: Sequence[str] = ()
    """URNs of the resources that this one depends on."""
    property_dependencies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """URNs of the resources that a property depends on, by property."""
    secrets: frozenset[Path] | None = None
    """Paths of values marked as secret, with everything below them. None if marks are not known: engines show them only
    to remediations."""
    place: Path = ()
    """Path to the object, if the resource is a list of objects."""

    @property
    def last_word(self) -> str:
        """Last word of the type: `StatefulSet`, `StatefulSetPatch`."""
        return self.type.rpartition(":")[2]

    @property
    def kind(self) -> str:
        """Last word of the type; a patch has the kind of the object that it changes."""
        return self.last_word.removesuffix(_PATCH) if self.is_patch else self.last_word

    @property
    def is_patch(self) -> bool:
        """True for a patch of a Kubernetes object, such as a `DeploymentPatch`, which has only the changed fields."""
        return self.is_kubernetes and self.type.endswith(_PATCH)

    @property
    def is_kubernetes(self) -> bool:
        """True for an object of Kubernetes."""
        return self.type.startswith("kubernetes:")

    @property
    def is_group(self) -> bool:
        """True for a resource that creates objects from files; every object is a resource of the program, too."""
        return self.type.startswith(("kubernetes:yaml", "kubernetes:kustomize"))

    @property
    def is_chart(self) -> bool:
        """True for a resource that creates objects from a chart or from files."""
        return self.is_group or self.type.startswith("kubernetes:helm.sh")

    @property
    def is_custom(self) -> bool:
        """True for a custom resource, and for a chart with its values: Kubernetes knows the fields of neither."""
        group = self.type.partition(":")[2].partition("/")[0]
        return self.is_kubernetes and "." in group and not group.endswith(".k8s.io")

    @property
    def part(self) -> str:
        """Part of a SlurmCluster that created the resource: `NodeSet`, or `""` for resources outside clusters.

        Read from the URN, as any program may set a label:
        https://www.pulumi.com/docs/iac/concepts/resources/names/#urns.
        """
        above = self.urn.split("::")[2:3]
        prefix = f"{PACKAGE}:index:"
        parts = [name.removeprefix(prefix) for name in "".join(above).split("$")[:-1] if name.startswith(prefix)]
        return parts[-1] if CLUSTER_PART in parts else ""

    @property
    def is_ours(self) -> bool:
        """True for a resource below a SlurmCluster."""
        return bool(self.part)

    def is_made_by(self, *parts: str, suffix: str = "") -> bool:
        """Return True for the resource that a part of a cluster creates under this name.

        URNs are unique in a program, so no other resource below the same part is mistaken for it.
        """
        return self.part in parts and self.name == self.parent.rpartition("::")[2] + suffix

    @property
    def labels(self) -> Any:  # noqa: ANN401 a mapping, UNKNOWN or None
        """Labels of an object of Kubernetes."""
        return look(self.props, "metadata", "labels")

    @property
    def namespace(self) -> Any:  # noqa: ANN401 a text, UNKNOWN or None
        """Namespace of a Kubernetes object, or of a resource of this package."""
        return look(self.props, "metadata", "namespace") or look(self.props, "namespace")

    def acts_as(self, kind: str) -> bool:
        """Return True for a resource of this package of a kind such as `NodeDrain`, from Python or from the plugin."""
        return acts_as(self.type, kind)

    def input(self, name: str) -> Any:  # noqa: ANN401 any value
        """Return an input of a resource of this package, by its Python name; the plugin spells it in camelCase."""
        found = look(self.props, name)
        return look(self.props, camel_case(name)) if found is None else found

    def is_secret(self, path: Path) -> bool:
        """Return True if the value at a path, or a value above it, is marked as secret."""
        whole, marks = (*self.place, *path), self.secrets or ()
        return any(whole[:depth] in marks for depth in range(len(whole) + 1))

    def objects(self) -> Iterator["ResourceView"]:
        """Yield the objects of a list such as a `ConfigMapList`, and any other resource unchanged."""
        kind, items = self.type.removesuffix(_LIST), look(self.props, "items")
        if not self.is_kubernetes or kind == self.type or not isinstance(items, list):
            yield self
            return
        for index, item in enumerate(items):
            yield replace(
                self, type=kind, props=_NOT_KNOWN_YET if item is UNKNOWN else mapped(item), place=("items", index)
            )
