"""Objects and files of an input, as other objects name them: a ConfigMap by its name, a file of values by its path."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath

from soperator_pulumi.convert.yaml_tree import Section
from soperator_pulumi.errors import ConversionError


@dataclass(frozen=True)
class Inputs:
    """Objects and files that those of an input can name."""

    objects: Mapping[tuple[str, str], Sequence[Section]]
    """Objects by kind and name."""
    files: Mapping[str, Section] = field(default_factory=dict)
    """Values by the paths of their files, as the user gives them. helm reads the first document of a file alone."""

    def object(self, kind: str, name: str, namespace: str) -> Section:
        """Return an object, or an empty place. A namespace that is not written may be any."""
        named = [*reversed(self.objects.get((kind, name), ()))]
        near = [root for root in named if namespace_of(root) == namespace]
        near += [root for root in named if not (namespace and namespace_of(root))]
        return next(iter(near), Section(None))

    def path_of(self, reference: str) -> str:
        """Return the path of the file that a release names, relative to any folder; an empty text if there is none.

        Args:
            reference: Path from another folder (`../envs/prod.yaml`), from a source of Argo CD (`$values/prod.yaml`),
                or a URL.

        Raises:
            ConversionError: Several files have the name, and none shares more folders with it.
        """
        wanted = _parts(reference)
        shared = {path: _shared(_parts(path), wanted) for path in self.files}
        most = max(shared.values(), default=0)
        found = [path for path, count in shared.items() if count == most and most]
        if len(found) > 1:
            raise ConversionError(
                f"{', '.join(found)}: several files of the input may be {reference}. Give only the one that the "
                "release reads."
            )
        return next(iter(found), "")


def namespace_of(root: Section) -> str:
    """Return the namespace of an object; an empty text if it is not written."""
    return root.at("metadata", "namespace").text()


def file_labels(files: Sequence[PurePath]) -> list[str]:
    """Return the shortest names that tell files apart: `values.yaml`, or `prod/values.yaml` next to another."""
    labels = []
    for file in files:
        others = [other for other in files if other != file]
        count = max((_shared(file.parts, other.parts) for other in others), default=0) + 1
        labels.append(str(PurePath(*file.parts[-count:])))
    return labels


def _parts(reference: str) -> tuple[str, ...]:
    """Return folders and name of a path, without those that say nothing about another folder's content."""
    path = re.sub(r"^\w+(\+\w+)?://", "", reference).partition("?")[0].replace("\\", "/")
    return tuple(part for part in PurePosixPath(path).parts if part not in {".", "..", "/"} and part[:1] != "$")


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of names that two paths share from their ends."""
    count = 0
    for here, there in zip(reversed(one), reversed(other), strict=False):
        if here != there:
            break
        count += 1
    return count
