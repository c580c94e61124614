"""Make programs run in any root filesystem: collect them and all that they load in one folder with a fixed place.

Such a folder needs nothing of the root that it is mounted in: no libc, no Python, no list of users. It has its own
dynamic loader, which the programs name by its full path, and libraries that are found by DT_RPATH (not DT_RUNPATH:
that one comes after a user's LD_LIBRARY_PATH, and a library of another release in there ends the program). Paths that
are compiled into libraries are replaced in place.

Runs while an image is built, where the programs are installed, with `ldd` and `patchelf`:

    bundle.py --prefix /opt/client --program /usr/bin/client --modules /usr/lib/client=lib/client
"""
# ruff: noqa: INP001 - a script that is run by its path

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ELF = b"\x7fELF"
_DEPENDENCY = re.compile(r"^\s+(?P<name>\S+) => (?P<path>/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_NOT_FOUND = re.compile(r"^\s+(\S+) => not found$", re.MULTILINE)
_LIBC = "libc.so.6"


class BundleError(Exception):
    """The bundle would not run. The message has the reason."""


@dataclass(frozen=True)
class Modules:
    """A folder of libraries that programs load by name while they run: plugins, extensions.

    Attributes:
        source: Folder in which they are installed.
        target: Folder in the bundle: `lib/slurm`.

    """

    source: Path
    target: Path

    @classmethod
    def parse(cls, text: str) -> "Modules":
        """Read `source=target`."""
        source, _, target = text.partition("=")
        return cls(Path(source), Path(target))


@dataclass(frozen=True)
class Patch:
    """A path that is compiled into a file of the bundle, and what takes its place.

    Attributes:
        name: Of the file: `libc.so.6`.
        old: Path in the file, in which it must stand once.
        new: Path that is written over the old one, and so no longer.

    """

    name: str
    old: str
    new: str

    def apply(self, content: bytes) -> bytes:
        """Return the file's content with the new path in place of the compiled one.

        Raises:
            BundleError: The old one is not there, or more than once, or the new one is longer.
        """
        old, new = self.old.encode() + b"\0", self.new.encode() + b"\0"
        if len(new) > len(old):
            raise BundleError(f"{self.name}: {self.new} is longer than {self.old}, which it has to be written over.")
        if (found := content.count(old)) != 1:
            raise BundleError(f"{self.name} has {self.old} {found} times, and one was expected: it is another version.")
        return content.replace(old, new.ljust(len(old), b"\0"))


@dataclass(frozen=True)
class Bundle:
    """A bundle that is being made.

    Attributes:
        prefix: The folder, also when its programs run.
        modules: Folders of modules that go into it.
    """

    prefix: Path
    modules: tuple[Modules, ...] = ()

    @property
    def _lib(self) -> Path:
        return self.prefix / "lib"

    def make(self, programs: Sequence[Path], libraries: Sequence[Path], patches: Iterable[Patch]) -> None:
        """Fill the folder.

        Args:
            programs: Programs for `bin`.
            libraries: Libraries that programs load by name, in addition to those that they are linked with.
            patches: Paths to replace.

        """
        sources = [*programs, *libraries]
        if missing := [str(path) for path in (*sources, *(m.source for m in self.modules)) if not path.exists()]:
            raise BundleError(f"{', '.join(missing)} must be in the bundle, but is not installed.")
        for folder in (self.prefix / "bin", self._lib):
            folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            shutil.copy(program, self.prefix / "bin")
        for library in libraries:
            shutil.copy(library, self._lib)
        for modules in self.modules:
            shutil.copytree(modules.source, self.prefix / modules.target, symlinks=True, dirs_exist_ok=True)
            sources += [file for file in modules.source.iterdir() if is_elf(file)]
        for name, path in self._dependencies(sources).items():
            if not any((self.prefix / modules.target / name).exists() for modules in self.modules):
                shutil.copy(path, self._lib / name)
        loader = Path(_run("patchelf", "--print-interpreter", str(programs[0])).strip())
        shutil.copy(loader, self._lib / loader.name)
        self._relocate(self._lib / loader.name)
        for patch in patches:
            file = self._find(patch.name)
            file.write_bytes(patch.apply(file.read_bytes()))

    def _dependencies(self, files: Iterable[Path]) -> dict[str, Path]:
        """Return the libraries that files are linked with, by the names that they ask for."""
        found: dict[str, Path] = {}
        search = ":".join(str(modules.source) for modules in self.modules)
        for file in files:
            found |= dependencies(_run("ldd", str(file), LD_LIBRARY_PATH=search), file)
        return found

    def _relocate(self, loader: Path) -> None:
        """Make programs use the bundled loader, and make programs and libraries use the bundled libraries."""
        folders = ":".join(map(str, (self._lib, *(self.prefix / modules.target for modules in self.modules))))
        rpath = ("--force-rpath", "--set-rpath", folders)
        programs = [str(program) for program in sorted((self.prefix / "bin").iterdir())]
        # In this order: in the other one patchelf 0.18 breaks programs with fixed addresses, such as Python.
        _run("patchelf", *rpath, *programs)
        _run("patchelf", "--set-interpreter", str(loader), *programs)
        # The loader and libc find nothing themselves, and do not survive being moved around inside.
        untouched = {loader.name, _LIBC}
        _run("patchelf", *rpath, *(str(file) for file in self._libraries() if file.name not in untouched))

    def _libraries(self) -> Iterator[Path]:
        for folder in (self._lib, *(self.prefix / modules.target for modules in self.modules)):
            yield from (file for file in sorted(folder.iterdir()) if is_elf(file))

    def _find(self, name: str) -> Path:
        for file in self._libraries():
            if file.name == name:
                return file
        raise BundleError(f"The bundle has no {name}, in which a path must be replaced.")


def dependencies(listed: str, file: Path) -> dict[str, Path]:
    """Return the libraries that `ldd` lists for a file, by the names that are asked for.

    Raises:
        BundleError: One was not found.

    """
    if missing := _NOT_FOUND.findall(listed):
        raise BundleError(f"{file} needs {', '.join(missing)}, which is not installed.")
    return {match["name"]: Path(match["path"]) for match in _DEPENDENCY.finditer(listed)}


def is_elf(path: Path) -> bool:
    """Return True if a path is a program or a library itself, and not a link to one."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BundleError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """Run the command line, and make one bundle."""
    parser = argparse.ArgumentParser(prog="bundle", description="Make programs run in any root filesystem.")
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--program", type=Path, action="append", required=True)
    parser.add_argument("--library", type=Path, action="append", default=[])
    parser.add_argument("--modules", type=Modules.parse, action="append", default=[], metavar="SOURCE=TARGET")
    parser.add_argument("--patch", nargs=3, action="append", default=[], metavar=("FILE", "OLD", "NEW"))
    given = parser.parse_args()
    try:
        patches = [Patch(*patch) for patch in given.patch]
        Bundle(given.prefix, tuple(given.modules)).make(given.program, given.library, patches)
    except BundleError as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
