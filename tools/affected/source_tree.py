"""Files of the source tree, as git lists them, and the names of its Python modules."""

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from functools import cache, cached_property
from pathlib import PurePosixPath


class SourceTree:
    """Paths from the root of the tree, with lookups by folder, pattern and module."""

    def __init__(self, files: Iterable[str], import_roots: Sequence[str]) -> None:
        """Store the files.

        Args:
            files: Paths from the root.
            import_roots: Folders in which Python finds modules, in the order of the search; `.` is the root.
        """
        self.files = sorted(set(files))
        self._known = frozenset(self.files)
        self._roots = import_roots
        self.matching = cache(self._matching)

    def __contains__(self, file: str) -> bool:
        return file in self._known

    def below(self, folder: str) -> list[str]:
        """Return all files below a folder; none if it is not a folder."""
        beginning = f"{folder.rstrip('/')}/"
        return self.files[bisect_left(self.files, beginning) : bisect_left(self.files, beginning[:-1] + "0")]

    def _matching(self, pattern: str) -> list[str]:
        """Return a file, the files of a folder, or those that match a pattern; `*` also matches folders."""
        if "*" not in pattern:
            return [pattern] if pattern in self else self.below(pattern)
        pattern = pattern.replace("**/", "")
        beginning = pattern.partition("*")[0]
        end = beginning + "\U0010ffff"
        matches = re.compile(f"{translate(pattern)}|{translate(posixpath.join(pattern, '*'))}").match
        return [
            file
            for file in self.files[bisect_left(self.files, beginning) : bisect_left(self.files, end)]
            if matches(file)
        ]

    @cached_property
    def modules(self) -> dict[str, str]:
        """Files of modules and packages, by their full names."""
        found: dict[str, str] = {}
        for root in self._roots:
            for file in self.files if root == "." else self.below(root):
                if name := _module_name(PurePosixPath(file).relative_to(root)):
                    found.setdefault(name, file)
        return found

    def find_module(self, name: str, importer: str = "") -> tuple[str, str, str] | None:
        """Return the module at the beginning of a full name: its name, its file, and the rest of the name.

        An importer, given by its path, also finds modules of its own folder, as a script does.
        """
        for module, rest in _beginnings(name):
            if file := self.modules.get(module):
                return module, file, rest
        module, _, rest = name.partition(".")
        neighbour = posixpath.join(posixpath.dirname(importer), f"{module}.py")
        return (module, neighbour, rest) if importer and neighbour in self else None

    def packages_of(self, module: str) -> Iterator[str]:
        """Yield the files of the packages that the import of a module runs first."""
        for parent, _ in _beginnings(module.rpartition(".")[0]):
            if file := self.modules.get(parent):
                yield file


def is_of_tests(file: str) -> bool:
    """Return True if a file is a test, or helps tests."""
    return bool(re.match(r"tests/|images/[^/]+/(tests|\w+_testing)/|spank-plugin/tests/", file))


def is_test(file: str) -> bool:
    """Return True if pytest collects a file."""
    return bool(re.match(r"(tests|images/[^/]+/tests)/(.*/)?test_[^/]*\.py$", file))


def _module_name(path: PurePosixPath) -> str:
    """Return the full name of a module; empty if no import can name it."""
    parts = path.with_suffix("").parts
    if path.suffix != ".py" or not all(part.isidentifier() for part in parts):
        return ""
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _beginnings(name: str) -> Iterator[tuple[str, str]]:
    """Yield a dotted name and all its prefixes, the longest first, with the rest of the name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        yield ".".join(parts[:count]), ".".join(parts[count:])
