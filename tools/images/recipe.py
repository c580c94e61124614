"""Inputs of the images, and the tags that follow from them, without starting anything."""

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tools import paths
from tools.console import UserError

SUITE = "trixie"
"""Debian release of the images: the one with Slurm 24.11."""

PARENTS: dict[str, tuple[str, ...]] = {
    "slurm": ("base",),
    "jail": ("base",),
    "controller": ("slurm",),
    "munge": ("slurm",),
    "toolchain": ("slurm",),
    "node": ("slurm", "toolchain"),
    "worker": ("node",),
    "login": ("node",),
    "jail-tools": ("toolchain",),
}
"""Images and the images they are built from, in building order. `base` is bootstrapped or pulled."""

FOLDERS = {
    "slurm": ("packages",),
    "jail": ("manuals", "packages"),
    "node": ("bundle", "manuals", "../spank-plugin"),
    "jail-tools": ("bundle",),
}
"""Folders built into an image besides its own, by their paths from `images/`."""

PUBLISHED = ("controller", "worker", "login", "munge", "jail-tools", "jail")
"""Images that pods run. Others serve these: as shared layers, or to compile in."""

LOCAL_REPOSITORY = "localhost/soperator"

_FORMAT = "2"
"""Version of the builder: counted up when tools/images builds other images from the same folders."""

_TAG_LENGTH = 16
"""Hexadecimal digits: 64 bits, far from a collision in any registry."""

_NOT_CONTENT = {"__pycache__", "tests", "jail_testing", ".pytest_cache", "build"}


@dataclass(frozen=True)
class Recipe:
    """Inputs of a build that decide its result.

    Attributes:
        folder: Folder with one folder per image, and `AS_OF`.
        base: Reference of the image to build on, or None to bootstrap one from Debian's packages.
        architecture: Architecture of the machine, since images are built natively.

    """

    folder: Path = paths.ROOT / "images"
    base: str | None = None
    architecture: str = platform.machine()

    @property
    def as_of(self) -> int:
        """Return the time of every file and image, in seconds since 1970.

        `images/AS_OF` holds its date. A later one gives new tags, and so images with today's packages.

        Raises:
            UserError: The file does not hold a date.

        """
        file = self.folder / "AS_OF"
        text = file.read_text().strip()
        try:
            return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
        except ValueError as error:
            raise UserError(f'{file} holds "{text}". Write a date like 2026-11-21.') from error

    def order(self) -> list[str]:
        """Return the names of the images to build, parents first."""
        return list(PARENTS) if self.base else ["base", *PARENTS]

    def tags(self) -> dict[str, str]:
        """Return the tag of each image: a hash of its content, the date, the architecture and its parents' tags."""
        tags = {"base": self._tag("base", [self.base] if self.base else [])}
        for name, parents in PARENTS.items():
            tags[name] = self._tag(name, [tags[parent] for parent in parents])
        return tags

    def snapshot(self, folder: Path) -> "Recipe":
        """Copy the folders and return the recipe of the copy: edits during a build stay out of its images."""
        shared = {Path(name) for names in FOLDERS.values() for name in names}
        for path in (Path(), *(path for path in shared if path.parts[0] == "..")):
            target = Path(os.path.normpath(folder / "images" / path))
            if (self.folder / path).exists():
                shutil.copytree(self.folder / path, target, ignore=shutil.ignore_patterns(*_NOT_CONTENT))
        return replace(self, folder=folder / "images")

    def content(self, name: str) -> dict[str, Path]:
        """Return the files of an image's folders by their paths in its build."""
        files = _files(self.folder / name, Path())
        for shared in FOLDERS.get(name, ()):
            files |= _files(self.folder / shared, Path(Path(shared).name))
        return files

    def references(self, registry: str | None = None) -> dict[str, str]:
        """Return the full reference of each published image."""
        tags = self.tags()
        repository = registry.rstrip("/") if registry else LOCAL_REPOSITORY
        return {name: f"{repository}/{name}:{tags[name]}" for name in PUBLISHED}

    def _tag(self, name: str, parents: Sequence[str]) -> str:
        digest = hashlib.sha256()
        pulled = name == "base" and self.base is not None
        content = {} if pulled else self.content(name)
        for part in (_FORMAT, SUITE, str(self.as_of), self.architecture, name, *parents, *_hashed(content)):
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()[:_TAG_LENGTH]


def references(registry: str | None = None, *, base: str | None = None) -> dict[str, str]:
    """Return the images as a stack names them: `{"controller": "localhost/soperator/controller:<tag>", ...}`.

    Args:
        registry: Registry of the images, like `registry.example.org/hpc`; default: this machine.
        base: Image that they were built on; default: the bootstrapped one.

    """
    return {name.replace("-", "_"): image for name, image in Recipe(base=base).references(registry).items()}


def _files(folder: Path, target: Path) -> dict[str, Path]:
    relative = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        (target / name).as_posix(): path for name, path in relative.items() if not _NOT_CONTENT.intersection(name.parts)
    }


def _hashed(content: Mapping[str, Path]) -> Iterator[str | bytes]:
    for name, path in content.items():
        yield name
        yield "x" if path.stat().st_mode & 0o100 else "-"
        yield path.read_bytes()
