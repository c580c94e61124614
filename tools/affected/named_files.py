"""Files that path expressions in Python code mean."""

import posixpath
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import PurePosixPath

from tools.affected.path_expressions import Tokens
from tools.affected.python_facts import PythonFacts
from tools.affected.source_tree import SourceTree, is_of_tests

_ROOT = "/<root>"
"""Folder of the source tree, in paths that begin there."""

_UNKNOWN = "<?>"
_DEPTH = 5
"""Most names to follow from name to name. Longer chains do not lead to a path."""


class NamedFiles:
    """Path expressions in code, looked up in the tree."""

    def __init__(self, tree: SourceTree, facts: Mapping[str, PythonFacts]) -> None:
        self._tree = tree
        self._facts = facts

    def patterns(self, tokens: Tokens, file: str) -> Iterator[str]:
        """Yield files, folders and patterns with `*`, from the root, that a path in a file means.

        An unknown part matches anything. Below the root of the tree, it is any string of a test file.
        """
        for value in self._values(tokens, file):
            path = posixpath.normpath(value)
            if not path.startswith(f"{_ROOT}/"):
                continue
            inside = path.removeprefix(f"{_ROOT}/")
            if not inside.startswith(_UNKNOWN):
                yield inside.replace(_UNKNOWN, "*")
            elif is_of_tests(file):
                rest = inside.removeprefix(_UNKNOWN).replace(_UNKNOWN, "*")
                strings = {text for part in self._facts[file].parts.values() for text in part.strings}
                yield from (name.rstrip("/") + rest for name in strings)

    def _values(self, tokens: Tokens, file: str, depth: int = _DEPTH) -> Iterator[str]:
        """Yield the texts that a path may have, as a name in it may have several values."""
        for parts in product(*(list(self._texts(token, file, depth)) or [_UNKNOWN] for token in tokens)):
            value = ""
            for token, part in zip(tokens, parts, strict=True):
                is_suffix = token.startswith("~")
                value = str(PurePosixPath(value).with_suffix(part)) if is_suffix else posixpath.join(value, part)
            yield value

    def _texts(self, token: str, file: str, depth: int) -> Iterator[str]:
        kind, text = token[0], token[1:]
        if kind != "@":
            # The path of another folder of the machine begins with two slashes, and is never one of the tree.
            yield from [f"/{text}" if text.startswith("/") else text] if kind in "=~" else []
        elif text == "__file__":
            yield f"{_ROOT}/{file}"
        elif depth:
            yield from self._of_name(text, file, depth - 1)

    def _of_name(self, name: str, file: str, depth: int) -> Iterator[str]:
        """Yield the values of a constant, in this file or in a module that it imports."""
        facts = self._facts[file]
        for value in facts.constants.get(name, ()):
            if value != [f"@{name}"]:
                yield from self._values(value, file, depth)
        first, _, others = name.partition(".")
        full = ".".join(filter(None, (facts.imports.get(first, first), others)))
        found = self._tree.find_module(full, file)
        if found and found[1] in self._facts and found[2]:
            yield from self._texts(f"@{found[2]}", found[1], depth)
