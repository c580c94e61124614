"""Documents in files: objects and values, also those in lists, in bundles, and in values of a chart of any objects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from soperator_pulumi.convert.fleet import files_of_bundle, is_bundle
from soperator_pulumi.convert.placeholders import HELM_GET
from soperator_pulumi.convert.source_kinds import allowed_kinds
from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, read, relabelled
from soperator_pulumi.errors import ConversionError

_TEMPLATE = re.compile(r"\{\{|%\{")
_HCL = re.compile(
    r'^\s*(resource|module|data|variable|output|provider)\s+"[^"]*".*\{|^\s*(locals|terraform)\s*\{', re.MULTILINE
)

_MAX_SIZE = 8 << 20
"""Largest file, in bytes. helm stores a release in a Secret, which has at most 1 MiB."""
_LISTED = "resources"
"""Key of objects in the values of a chart that makes any objects."""


@dataclass(frozen=True)
class Document:
    """An object, or values, in a file."""

    tree: Mapping[str, Tree]
    prefix: str
    """Prefix of the paths of its values."""
    name: str
    """Name of the file in errors."""
    file: str
    """Path of the file, as the user gives it; empty for a file inside an object."""
    texts: tuple[Leaf, ...] = ()
    """Texts whose documents follow."""

    @property
    def root(self) -> Section:
        """Root of the document."""
        return Section(self.tree, self.prefix)

    @property
    def is_object(self) -> bool:
        """True for an object of Kubernetes, False for values."""
        return bool(self.root.at("apiVersion") and self.root.at("kind"))


def documents_in(file: Path, name: str, prefix: str) -> list[Document]:
    """Return the documents in a file.

    Args:
        file: The file.
        name: Its name in errors.
        prefix: Prefix of the paths of its values.

    Raises:
        ConversionError: The file cannot be read, is empty, or is not YAML of mappings.
    """
    trees = _trees(_text(file), name, prefix)
    if not trees:
        raise ConversionError(f"{name}: empty. {allowed_kinds()}")
    return [document for tree in trees for document in _documents(tree, prefix, name, str(file))]


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > _MAX_SIZE:
            raise ConversionError(
                f"{file.name}: larger than {_MAX_SIZE >> 20} MiB. Values of a release and objects of a cluster are "
                "smaller, as Kubernetes stores no more. Give the file of one cluster."
            )
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConversionError(f"{file.name}: not UTF-8 text. {allowed_kinds()}") from None
    except OSError as error:
        raise ConversionError(f"{file}: {error.strerror}. Give a file that can be read.") from None


def _trees(text: str, name: str, prefix: str) -> list[Tree]:
    if _HCL.search(text):
        raise ConversionError(
            f"{name}: Terraform's HCL. Give the values that it gives to the chart, in YAML: {HELM_GET}."
        )
    try:
        return read(text, name, prefix)
    except ConversionError as error:
        template = next((index for index, line in enumerate(text.splitlines(), 1) if _TEMPLATE.search(line)), None)
        if template is None:
            raise
        raise ConversionError(
            f"{name}, line {template}: a template that is not rendered ({error}). Give its result: {HELM_GET}."
        ) from None


def _documents(tree: Tree, prefix: str, name: str, file: str, depth: int = 0) -> list[Document]:
    """Return the documents in a tree: the items of a list, the files of a Bundle, or the tree itself."""
    if not isinstance(tree, Mapping):
        raise ConversionError(f"{name}: is not a mapping of keys to values. {allowed_kinds()}")
    document = Document(tree, prefix, name, file)
    root = document.root
    if not document.is_object:
        return _listed_objects(document) or [document]
    if root.at("kind").text().endswith("List") and root.at("items").items():
        items = [item.tree for item in root.at("items").items() if item.tree is not None]
        return [document for tree in items for document in _documents(tree, prefix, name, file, depth + 2)]
    path = f"{prefix}{root.at('kind').text()}/{root.at('metadata', 'name').text()}"
    labelled = relabelled(tree, f"{path}: ", depth)
    assert isinstance(labelled, Mapping)  # noqa: S101 - as the tree is
    whole = Section(labelled, f"{path}: ")
    inside, texts = [], []
    for part in files_of_bundle(whole, path, name) if is_bundle(whole) else ():
        objects = [tree for tree in part.trees if Document({"": tree}, "", name, "").root.at("", "apiVersion")]
        texts += [part.origin] if objects else []
        inside += [found for tree in objects for found in _documents(tree, part.path, name, "")]
    return [Document(labelled, f"{path}: ", name, file, tuple(texts)), *inside]


def _listed_objects(document: Document) -> list[Document]:
    """Return the objects that a file of values lists for a chart of any objects; empty if it has other values.

    Terraform's modules for soperator give ConfigMaps to such a chart, under the key `resources`.
    """
    items = [item.tree for item in document.root.at(_LISTED).items() if item.tree is not None]
    objects = [Document({"": tree}, "", "", "").root.at("") for tree in items]
    if {*document.tree} != {_LISTED} or not all(root.at("apiVersion") and root.at("kind") for root in objects):
        return []
    return [found for tree in items for found in _documents(tree, document.prefix, document.name, "", depth=2)]
