"""Files inside a Bundle of Rancher Fleet: manifests, values, and the defaults of a chart.

https://fleet.rancher.io/ref-bundle-stages, https://fleet.rancher.io/ref-crds#bundleresource
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, read
from soperator_pulumi.errors import ConversionError

_GROUP = "fleet.cattle.io"
_MAX_CONTENT = 16 * 1024 * 1024
"""Most bytes of an unpacked file. A whole Bundle has at most a few MiB, as etcd takes no more."""


@dataclass(frozen=True)
class BundleFile:
    """A file of YAML in a Bundle."""

    name: str
    path: str
    """Prefix of the paths of its values."""
    origin: Leaf
    """Content in the Bundle."""
    trees: list[Tree]
    """Documents of the file."""


@dataclass(frozen=True)
class BundleValues:
    """Values in a Bundle."""

    files: Mapping[str, Section]
    """Values by the names of their files."""
    own: Section
    """Defaults of the chart in the Bundle; an empty place if it has none."""
    chart: str
    """Name of the chart in the Bundle; an empty text if it has none."""
    version: str


def is_bundle(root: Section) -> bool:
    """Return True for a Bundle of Fleet."""
    return root.at("apiVersion").text().partition("/")[0] == _GROUP and root.at("kind").text() == "Bundle"


def files_of_bundle(root: Section, path: str, name: str) -> list[BundleFile]:
    """Return the files of a Bundle that are YAML; templates, archives and texts are left out.

    Args:
        root: The Bundle.
        path: Its name in paths: `Bundle/slurm`.
        name: Name of the file in errors.
    """
    found = []
    for index, resource in enumerate(root.at("spec", "resources").items()):
        content, file = resource.at("content"), resource.at("name").text()
        if not isinstance(content.tree, Leaf) or not file.endswith((".yaml", ".yml", ".json")):
            continue
        where = f"{path}, spec.resources[{index}] {file}: "
        try:
            trees = read(_plain(resource), name, where, first_line=content.tree.line)
        except ConversionError:
            continue
        found.append(BundleFile(file, where, content.tree, trees))
    return found


def _plain(resource: Section) -> str:
    text = resource.at("content").text()
    encoding = resource.at("encoding").text()
    if not encoding:
        return text
    try:
        packed = base64.b64decode(text)
        is_packed = encoding.endswith("gz")
        unpacked = zlib.decompressobj(wbits=31).decompress(packed, _MAX_CONTENT) if is_packed else packed
        return unpacked.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError):
        raise ConversionError(f"{resource.path}: not {encoding}.") from None


def values_of_bundle(root: Section, path: str, name: str) -> BundleValues:
    """Return the values that a Bundle holds: files that its release may name, and the defaults of its own chart."""
    files = {file.name: Section(file.trees[0], file.path) for file in files_of_bundle(root, path, name) if file.trees}
    folder = root.at("spec", "helm", "chart").text().strip("./")
    start = f"{folder}/" if folder else ""
    chart = files.get(f"{start}Chart.yaml", Section(None))
    own = files.get(f"{start}values.yaml", Section(None)) if chart else Section(None)
    return BundleValues(files, own, chart.at("name").text(), chart.at("version").text())
