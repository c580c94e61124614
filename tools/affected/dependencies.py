"""Graph of the files that files use: by imports, paths, fixtures, and stated dependencies.

A node is a file, or a part of one: `tests/conftest.py::kubernetes` is a fixture, and `tools/up.py::(text)` a file that
is read and not run, so that what it uses counts for nothing.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from tools.affected.named_files import NamedFiles
from tools.affected.python_facts import Part, PythonFacts
from tools.affected.source_tree import SourceTree, is_of_tests, is_test
from tools.affected.stated_edges import IGNORED, USED, Choice

Graph = Mapping[str, AbstractSet[str]]
"""Nodes that use a node, by the node."""


def graph_of(tree: SourceTree, facts: Mapping[str, PythonFacts]) -> Graph:
    """Return the nodes that use each node.

    Args:
        tree: All files.
        facts: Facts of the Python files among them.

    """
    used_by: dict[str, set[str]] = defaultdict(set)
    edges = _Edges(tree, facts)
    for file, found in facts.items():
        ignored = [use for user, uses in IGNORED.items() if is_in(file, [user]) for use in uses]
        for name, part in found.parts.items():
            for used in edges.of_part(file, name, part):
                if not is_in(file_of(used), ignored):
                    used_by[used].add(f"{file}::{name}" if name else file)
    for file in USED.keys() & facts.keys():
        for used in edges.named(USED[file]):
            if not is_of_tests(file_of(used)):
                used_by[used].add(file)
    return used_by


def users_of(graph: Graph, changed: str, without: Iterable[Choice] = ()) -> set[str]:
    """Return the files that use a file, directly or through others, and the file itself.

    Args:
        graph: Nodes that use each node.
        changed: Path of the file.
        without: Choices whose uses do not count.

    """
    waiting = [changed, *(node for node in graph if node != changed and file_of(node) == changed)]
    reached = set(waiting)
    while waiting:
        node = waiting.pop()
        skipped = {choice.user for choice in without if is_in(file_of(node), [choice.used])}
        new = {user for user in graph.get(node, ()) if file_of(user) not in skipped} - reached
        reached |= new
        waiting += new
    return {file_of(node) for node in reached}


def file_of(node: str) -> str:
    """Return the file that a node is part of."""
    return node.partition("::")[0]


def is_in(file: str, places: Iterable[str]) -> bool:
    """Return True if a file is one of these, or in one of these folders."""
    return any(file == place or file.startswith(f"{place}/") for place in places)


class _Edges:
    """Edges of the graph: the nodes that a part of a file uses."""

    def __init__(self, tree: SourceTree, facts: Mapping[str, PythonFacts]) -> None:
        self._tree = tree
        self._facts = facts
        self._named_files = NamedFiles(tree, facts)

    def of_part(self, file: str, name: str, part: Part) -> Iterator[str]:
        yield from (f"{file}::{own}" for own in (part.own if name else self._facts[file].always))
        for used in part.names:
            yield from self._imported(used, file)
        for tokens in part.paths:
            yield from self.named(self._named_files.patterns(tokens, file))
        if is_of_tests(file):
            yield from self._in_strings(part, file)
        yield from self._of_conftests(file, part)

    def named(self, patterns: Iterable[str]) -> Iterator[str]:
        """Yield the files that patterns match. A named module counts as run, as does the program of a folder."""
        for pattern in patterns:
            for file in self._tree.matching(pattern):
                folder, name = posixpath.split(file)
                is_program = name == "__main__.py" and (folder == pattern or pattern.endswith(name))
                is_run = file == pattern or is_program
                yield file if file not in self._facts or (is_run and not is_test(file)) else _read(file)

    def _imported(self, name: str, importer: str) -> Iterator[str]:
        """Yield the module of an imported name, and its packages, of which an import runs only the module-level code.

        A thing that a package passes on comes from where the package has it, be that imported on first use.
        """
        found = self._tree.find_module(name, importer)
        if not found:
            return
        module, file, rest = found
        yield from map(_read, self._tree.packages_of(module))
        thing, _, others = rest.partition(".")
        facts = self._facts.get(file)
        passed_on = {**facts.for_types, **facts.imports}.get(thing) if facts and file.endswith("__init__.py") else None
        if passed_on and passed_on != name:
            yield _read(file)
            yield from self._imported(".".join(filter(None, (passed_on, others))), file)
        else:
            yield f"{file}::{thing}" if facts and thing and thing in facts.parts else file

    def _in_strings(self, part: Part, file: str) -> Iterator[str]:
        """Yield files and modules that strings name, relative to the root or to the file's folder."""
        for text in part.strings:
            if "/" in text:
                yield from self.named([text.rstrip("/"), posixpath.join(posixpath.dirname(file), text)])
            elif "." in text and self._tree.find_module(text):
                yield from self._imported(text, file)

    def _of_conftests(self, file: str, part: Part) -> Iterator[str]:
        folder = posixpath.dirname(file)
        while True:
            conftest = posixpath.join(folder, "conftest.py")
            if conftest in self._facts:
                if is_test(file):
                    yield conftest
                if conftest != file or part is not self._facts[file].parts[""]:
                    yield from (f"{conftest}::{name}" for name in part.fixtures if name in self._facts[conftest].parts)
            if not folder:
                return
            folder = posixpath.dirname(folder)


def _read(file: str) -> str:
    return f"{file}::(text)"
