"""YAML as trees of values with their places, so that a report can list every value of a file."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from soperator_pulumi.errors import ConversionError

MAX_LEAVES = 100_000
"""Largest number of values in a file, with aliases expanded. The largest clusters need a few thousand."""

MAX_DEPTH = 64

_NEEDED = "Give a plain YAML file: render templates and decrypt encrypted values before."

_SLURM_CONF = re.compile(r"(?im)^\s*(ClusterName|SlurmctldHost|NodeName|PartitionName)\s*=")
_NOT_SLURM_CONF = (
    "is slurm.conf, which describes no pods, images and volumes. Write a stack by hand: nodes as node_sets, partitions "
    "as partitions, and other settings as slurm.extra (docs/your-cluster.md)."
)

_NUMBERS = (
    ("int", r"[-+]?(0|[1-9][0-9_]*)|[-+]?0o?[0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0b[01_]+", "-+0123456789"),
    ("float", r"[-+]?([0-9][0-9_]*)?\.[0-9_]+([eE][-+]?[0-9]+)?|[-+]?[0-9]+([eE][-+]?[0-9]+)|\.nan", "-+0123456789."),
)


class _Loader(yaml.SafeLoader):
    """Reads YAML as Helm and kubectl do: `yes` is true; `8:00:00` and dates are text."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] not in {"int", "float", "timestamp", "value"}
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in _NUMBERS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value of the input: text, a number, true, false, null, or an empty mapping or list."""

    path: str
    """Place as a reader sees it: `nodesets[0].slurmd.resources.cpu`."""
    keys: tuple[str | int, ...]
    """Keys from the document's root."""
    value: object
    line: int = 0
    """Line in the file; 0 for a default that is not in the file."""

    @property
    def is_default(self) -> bool:
        """True for a chart's default, which is in no file."""
        return self.line == 0

    @property
    def is_empty(self) -> bool:
        """True for null and for empty texts, mappings and lists, for which charts write nothing."""
        return self.value is None or (isinstance(self.value, (str, list, dict)) and not self.value)


Tree = Leaf | Mapping[str, Any] | list[Any]
"""A leaf, or nested mappings and lists of leaves."""


class Section:
    """A place in a tree, with or without a value."""

    def __init__(self, tree: Tree | None, path: str = "") -> None:
        self.tree = tree
        self.path = path

    def __bool__(self) -> bool:
        return self.tree is not None and not (isinstance(self.tree, Leaf) and self.tree.value is None)

    def at(self, *keys: str | int) -> "Section":
        """Return the place below; an empty place if a key is missing."""
        tree, path = self.tree, self.path
        for key in keys:
            path = joined(path, key)
            if isinstance(tree, Mapping) and isinstance(key, str):
                tree = tree.get(key)
            elif isinstance(tree, list) and isinstance(key, int) and key < len(tree):
                tree = tree[key]
            else:
                tree = None
        return Section(tree, path)

    def entries(self) -> list[tuple[str, "Section"]]:
        """Return the keys of a mapping with their places; empty for anything else."""
        return [(key, self.at(key)) for key in self.tree] if isinstance(self.tree, Mapping) else []

    def parts(self) -> list[tuple[str, "Section"]]:
        """Return the keys of a mapping whose values are mappings or null; values of other types are left out."""
        return [(key, entry) for key, entry in self.entries() if isinstance(entry.plain(), Mapping | None)]

    def items(self) -> list["Section"]:
        """Return the places of a list; empty for anything else."""
        return [self.at(index) for index in range(len(self.tree))] if isinstance(self.tree, list) else []

    def leaves(self) -> list[Leaf]:
        """Return all values here and below, in document order."""
        return list(leaves_of(self.tree))

    def plain(self) -> object:
        """Return the values as plain Python data."""
        return plain(self.tree)

    def text(self) -> str:
        """Return a scalar as text; empty for anything else."""
        value = self.plain()
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if isinstance(value, (str, int, float)) else ""

    def is_on(self) -> bool:
        """Return True if the value is true."""
        return self.plain() is True


def joined(path: str, key: str | int) -> str:
    """Return the path of a key below a path."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return f'{path}["{key}"]'
    return f"{path}{key}" if not path or path.endswith(": ") else f"{path}.{key}"


def relabelled(tree: Tree, path: str, depth: int) -> Tree:
    """Return a tree as its own document: paths start with `path`, and keys lose the first `depth`."""
    match tree:
        case Leaf():
            return Leaf(path, tree.keys[depth:], tree.value, tree.line)
        case list():
            return [relabelled(item, joined(path, index), depth) for index, item in enumerate(tree)]
    return {key: relabelled(item, joined(path, key), depth) for key, item in tree.items()}


def without_first_key(tree: Tree, key: str) -> Tree:
    """Return the tree below a key as its own document; its values may come from several documents."""
    match tree:
        case Leaf():
            document, _, place = tree.path.rpartition(": ")
            inner = place.removeprefix(joined("", key)).removeprefix(".")
            start = f"{document}: {key}" if document else key
            return Leaf(f"{start}: {inner}", tree.keys[1:], tree.value, tree.line)
        case list():
            return [without_first_key(item, key) for item in tree]
    return {name: without_first_key(item, key) for name, item in tree.items()}


def leaves_of(tree: Tree | None) -> Iterator[Leaf]:
    """Yield the leaves of a tree in document order."""
    match tree:
        case Leaf():
            yield tree
        case list():
            for item in tree:
                yield from leaves_of(item)
        case Mapping():
            for item in tree.values():
                yield from leaves_of(item)


def is_list(tree: Tree | None) -> bool:
    """Return True for a list, also an empty one."""
    return isinstance(plain(tree), list)


def plain(tree: Tree | None) -> object:
    """Return a tree as plain Python data."""
    match tree:
        case None:
            return None
        case Leaf():
            return tree.value
        case list():
            return [plain(item) for item in tree]
    return {key: plain(item) for key, item in tree.items()}


def defaults(data: object, keys: tuple[str | int, ...] = (), path: str = "") -> Tree:
    """Return a tree of the defaults that a chart has for values missing from a file."""
    if isinstance(data, Mapping) and data:
        return {key: defaults(item, (*keys, key), joined(path, key)) for key, item in data.items()}
    if isinstance(data, list) and data:
        return [defaults(item, (*keys, index), joined(path, index)) for index, item in enumerate(data)]
    return Leaf(path, keys, data)


def overlaid(below: Tree | None, above: Tree | None) -> Tree | None:
    """Return a tree laid over another, as Helm lays a file over a chart's defaults: mappings are merged."""
    if above is None:
        return below
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        merged = {key: overlaid(item, above.get(key)) for key, item in below.items()}
        return {**merged, **{key: item for key, item in above.items() if key not in below}}
    is_empty_mapping = isinstance(above, Leaf) and above.value == {}
    return below if isinstance(below, Mapping) and is_empty_mapping else above


def read(text: str, name: str, prefix: str = "", first_line: int = 0) -> list[Tree]:
    """Return the documents of a YAML text, without empty ones.

    Args:
        text: The text.
        name: Name of the file in errors.
        prefix: Prefix of the paths of its values.
        first_line: Lines of the file before the text.

    Raises:
        ConversionError: The text is slurm.conf or not YAML, or has a repeated key, a tag, or too many values or levels.
    """
    if _SLURM_CONF.search(text) and not re.search(r"(?m)^[\w-]+:", text):
        raise ConversionError(f"{name}: {_NOT_SLURM_CONF}")
    try:
        documents = _documents(text, name, prefix, first_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = name if mark is None else f"{name}, line {first_line + mark.line + 1}"
        raise ConversionError(f"{place}: {error.problem or error.context}. {_NEEDED}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "nested too deep"
        raise ConversionError(f"{name}: not valid YAML: {reason}. {_NEEDED}") from None
    return [document for document in documents if not (isinstance(document, Leaf) and document.value is None)]


def _documents(text: str, name: str, prefix: str, first_line: int) -> list[Tree]:
    loader = _Loader(text)
    builder = _Builder(loader, name, first_line)
    documents = []
    while loader.check_node():
        node: Any = loader.get_node()
        documents.append(builder.tree(node, (), prefix))
    return documents


class _Builder:
    """Builds trees from the YAML nodes of one file."""

    def __init__(self, loader: _Loader, name: str, first_line: int) -> None:
        self._loader = loader
        self._name = name
        self._first_line = first_line
        self._count = 0

    def tree(self, node: yaml.Node, keys: tuple[str | int, ...], path: str) -> Tree:
        """Return the tree of a node."""
        if len(keys) > MAX_DEPTH:
            raise self._error(node, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.MappingNode) and node.value:
            return {key: self.tree(value, (*keys, key), joined(path, key)) for key, value in self._pairs(node).items()}
        if isinstance(node, yaml.SequenceNode) and node.value:
            return [self.tree(item, (*keys, index), joined(path, index)) for index, item in enumerate(node.value)]
        self._count += 1
        if self._count > MAX_LEAVES:
            raise self._error(node, f"more than {MAX_LEAVES} values, aliases expanded")
        line = self._first_line + node.start_mark.line + 1
        return Leaf(path, keys, self._loader.construct_object(node, deep=True), line)

    def _pairs(self, node: yaml.MappingNode) -> dict[str, yaml.Node]:
        """Return the keys with their nodes; keys from `<<` have lower priority."""
        own: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key that is not text")
            if key.value in own and key.tag != "tag:yaml.org,2002:merge":
                raise self._error(key, f'the key "{key.value}" twice in one mapping, where one value would be lost')
            own.add(key.value)
        self._loader.flatten_mapping(node)
        return {key.value: value for key, value in node.value}

    def _error(self, node: yaml.Node, finding: str) -> ConversionError:
        line = self._first_line + node.start_mark.line + 1
        return ConversionError(f"{self._name}, line {line}: {finding}. {_NEEDED}")
