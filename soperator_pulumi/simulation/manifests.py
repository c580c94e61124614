"""Manifests of a program: every Kubernetes object that Pulumi would apply, in its order, without the Secrets.

Example::

    import pulumi_kubernetes as kubernetes

    from soperator_pulumi.testing import deploy, manifests_of

    def program() -> None:
        kubernetes.core.v1.ConfigMap("motd", metadata={"name": "motd"}, data={"text": "Welcome"})

    rendered = manifests_of(deploy(program, project="hpc", stack_name="prod"))
    texts_by_file_name = rendered.files("prod")

The program runs against mocks, so no Kubernetes is needed. What acts on a live cluster (drains, waits, transactions) is
not in manifests: the page that goes with the files names it.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from soperator_pulumi.errors import ManifestError
from soperator_pulumi.lifecycle.resource import acts_as
from soperator_pulumi.operations.configuration.desired_files import DesiredFiles
from soperator_pulumi.render import layout
from soperator_pulumi.simulation.deployment import Deployment, Recorded, Secret
from soperator_pulumi.simulation.manifests_page import ManifestsPage
from soperator_pulumi.simulation.secret_commands import SLURMDBD_CONF, SecretNote, without_password

_KUBERNETES = "kubernetes:"

_FIRST = ("apiVersion", "kind", "metadata", "name", "namespace")
"""Keys that start a mapping; the others follow by name."""


@dataclass(frozen=True)
class Manifest:
    """An object as it would be applied."""

    body: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Kind of the object."""
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Namespace of the object; empty for a cluster-scoped object."""
        return str(self.body["metadata"].get("namespace", ""))

    def text(self) -> str:
        """Return the object as YAML, always with the same bytes."""
        return yaml.dump(_ordered(self.body), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


@dataclass(frozen=True)
class Manifests:
    """Objects of a program, and its other resources."""

    objects: tuple[Manifest, ...]
    """Objects in the order in which Pulumi creates them."""
    secrets: tuple[SecretNote, ...]
    """Secrets that are left out."""
    other_resources: tuple[Recorded, ...]
    """Resources that are not objects: those of this package that act on the live cluster, and any others."""

    def files(self, stack: str) -> dict[str, str]:
        """Return the content of a folder by file name: one file per object, and the pages for a reader."""
        numbered = {
            f"{number:03}-{'-'.join(filter(None, (made.namespace, made.kind.lower(), made.name)))}.yaml": made
            for number, made in enumerate(self.objects, start=1)
        }
        page = ManifestsPage(
            stack, {name: manifest.body for name, manifest in numbered.items()}, self.secrets, self.other_resources
        )
        texts = {name: manifest.text() for name, manifest in numbered.items()}
        return {"README.md": page.text(), "secrets.md": page.secrets_text(), **texts}


def manifests_of(deployment: Deployment) -> Manifests:
    """Return the manifests of a recorded deployment.

    Raises:
        ManifestError: An object has no name of its own.
    """
    objects, secrets, other_resources = [], [], []
    for resource in _in_order(deployment.recorded):
        body = _body(resource)
        if body is None:
            other_resources.append(resource)
        elif (body["kind"], (body.get("metadata") or {}).get("name")) == ("ConfigMap", layout.STATE_IN_USE):
            continue  # the record that slurmctld has run: with it, slurmctld would not start on a new volume
        elif body["kind"] == "Secret" or _holds_secret(body):
            files = _files_of_slurmdbd(body["data"]) if acts_as(resource.type, "SecretFiles") else {}
            secrets.append(_note(body, files))
        else:
            objects.append(Manifest(_plain(body)))
    _check_names([*(made.body for made in objects), *(note.body for note in secrets)])
    return Manifests(tuple(objects), tuple(secrets), tuple(other_resources))


def _body(resource: Recorded) -> dict[str, Any] | None:
    """Return the object of a resource; None for a resource that is not an object."""
    if acts_as(resource.type, "ConfigFiles"):
        files = DesiredFiles.model_validate({"readers": [], **resource.inputs})
        return files.manifest(in_force=False)
    if acts_as(resource.type, "SecretFiles"):
        metadata = {key: resource.inputs[key] for key in ("name", "namespace", "labels", "annotations")}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": resource.inputs["files"]}
    kind = resource.type.rpartition(":")[2]
    if resource.type.startswith(_KUBERNETES) and resource.inputs.get("kind") == kind and not kind.endswith("List"):
        return {**resource.inputs}
    return None


def _in_order(resources: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield resources after their dependencies, and by name if Pulumi would create them at the same time."""
    known = {resource.identity: resource for resource in resources}
    waits = {identity: {*resource.dependencies} & known.keys() for identity, resource in known.items()}
    ready = [(name, type_) for (type_, name), others in waits.items() if not others]
    heapq.heapify(ready)
    while ready:
        name, type_ = heapq.heappop(ready)
        yield known[type_, name]
        for key, others in waits.items():
            if (type_, name) in others:
                others.remove((type_, name))
                if not others:
                    heapq.heappush(ready, (key[1], key[0]))


def _check_names(bodies: Sequence[Mapping[str, Any]]) -> None:
    nameless = [body for body in bodies if not (body.get("metadata") or {}).get("name")]
    if nameless:
        kinds = ", ".join(sorted({str(body["kind"]) for body in nameless}))
        raise ManifestError(
            f"{len(nameless)} objects have no metadata.name: {kinds}. Pulumi would give them random names in each new "
            "stack, which no manifest can have. Name them in the program."
        )


def _note(body: Mapping[str, Any], files: Mapping[str, str]) -> SecretNote:
    """Return the note about an omitted object: everything but its values, and files without their secrets."""
    metadata = _plain({key: value for key, value in body.get("metadata", {}).items() if not _holds_secret(value)})
    parts = [body.get(field) or {} for field in ("data", "stringData")]
    keys = sorted(key for part in parts for key in (part.value if isinstance(part, Secret) else part))
    return SecretNote({"kind": body["kind"], "metadata": metadata}, tuple(keys), files)


def _files_of_slurmdbd(data: object) -> dict[str, str]:
    """Return the files of slurmdbd among those of this package's Secrets, without the password; none for others."""
    files = data.value if isinstance(data, Secret) else data
    if not isinstance(files, Mapping):
        return {}
    shown = {key: text.value if isinstance(text, Secret) else text for key, text in files.items()}
    if SLURMDBD_CONF not in shown or not all(isinstance(text, str) for text in shown.values()):
        return {}
    return {key: without_password(text) if key == SLURMDBD_CONF else text for key, text in shown.items()}


def _holds_secret(value: Any) -> bool:  # noqa: ANN401 any tree of values
    match value:
        case Secret():
            return True
        case Mapping():
            return any(map(_holds_secret, value.values()))
        case list():
            return any(map(_holds_secret, value))
    return False


def _plain(value: Any) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree with whole numbers as integers, and without unset values."""
    match value:
        case Mapping():
            # Kubernetes drops empty labels and annotations.
            unset = {key for key, item in value.items() if item == {} and key in {"labels", "annotations"}}
            return {key: _plain(item) for key, item in value.items() if item is not None and key not in unset}
        case list():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _ordered(value: Any) -> Any:  # noqa: ANN401 any tree of values
    match value:
        case Mapping():
            first = [key for key in _FIRST if key in value]
            return {key: _ordered(value[key]) for key in (*first, *sorted(value.keys() - {*first}))}
        case list():
            return [_ordered(item) for item in value]
    return value


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes texts of several lines as blocks."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
