"""Plain view of resources, as policies read them: the same from an engine and from a recorded deployment."""

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
    def last_word(self) -> str:
        """Last word of the type: `StatefulSet`, `StatefulSetPatch`."""
        return self.type.rpartition(":")[2]

    @property
    def kind(self) -> str:
        """Last word of the type. A patch has the kind of the object that it changes."""
        return self.last_word.removesuffix(_PATCH) if self.is_patch else self.last_word

    @property
    def is_patch(self) -> bool:
        """True for a patch of an object of Kubernetes, such as a `DeploymentPatch`: it has what it changes alone."""
        return self.is_kubernetes and self.type.endswith(_PATCH)

    @property
    def is_kubernetes(self) -> bool:
        """True for an object of Kubernetes."""
        return self.type.startswith("kubernetes:")

    @property
    def is_group(self) -> bool:
        """True for what makes objects from files, each of them a resource of the program."""
        return self.type.startswith(("kubernetes:yaml", "kubernetes:kustomize"))

    @property
    def is_chart(self) -> bool:
        """True for what makes objects from a chart or from files."""
        return self.is_group or self.type.startswith("kubernetes:helm.sh")

    @property
    def is_custom(self) -> bool:
        """True for a custom resource, and for a chart with its values: Kubernetes itself knows neither."""
        group = self.type.partition(":")[2].partition("/")[0]
        return self.is_kubernetes and "." in group and not group.endswith(".k8s.io")

    @property
    def part(self) -> str:
        """Part of a SlurmCluster that the program made the resource for: `NodeSet`, or `""` for a stranger.

        By the URN, as any program may set a label: https://www.pulumi.com/docs/iac/concepts/resources/names/#urns.
        """
        above = self.urn.split("::")[2:3]
        prefix = f"{PACKAGE}:index:"
        parts = [each.removeprefix(prefix) for each in "".join(above).split("$")[:-1] if each.startswith(prefix)]
        return parts[-1] if CLUSTER_PART in parts else ""

    @property
    def is_ours(self) -> bool:
        """True for a resource below a SlurmCluster."""
        return bool(self.part)

    def is_made_by(self, *parts: str, suffix: str = "") -> bool:
        """Return True for the one resource of its type that a part of a cluster gives this name.

        A program has a URN once, so no stranger below the same part is taken for it.
        """
        return self.part in parts and self.name == self.parent.rpartition("::")[2] + suffix

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
        return look(self.props, camel_case(name)) if found is None else found

    def is_secret(self, path: Path) -> bool:
        """Return True where the value at a path, or a part that holds it, is marked as secret."""
        whole, marks = (*self.place, *path), self.secrets or ()
        return any(whole[:depth] in marks for depth in range(len(whole) + 1))

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
