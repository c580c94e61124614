"""What the images are made of, and the tags that follow from it. Pure: reads `images/`, starts nothing."""

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tools import paths
from tools.console import UserError

SUITE = "trixie"
"""The Debian release of the images: the one with Slurm 24.11."""

PARENTS = {"slurm": "base", "controller": "slurm", "worker": "slurm", "login": "slurm", "munge": "slurm"}
"""Each image and the one it is built on, in building order. `base` is bootstrapped, or pulled."""

PUBLISHED = ("controller", "worker", "login", "munge")
"""The images that pods run. The others exist only as their shared layers."""

LOCAL_REPOSITORY = "localhost/soperator"

_FORMAT = "1"
"""Counted up when tools/images builds different images from the same folders."""

_TAG_LENGTH = 16
"""Hexadecimal digits: 64 bits, far from a collision in any registry."""

_NOT_CONTENT = {"__pycache__", "tests", ".pytest_cache"}


@dataclass(frozen=True)
class Recipe:
    """The inputs of a build that decide its result.

    Attributes:
        folder: The folder with one folder per image, and `AS_OF`.
        base: Reference of the image to build on, or None to bootstrap one from Debian's packages.
        architecture: Of the machine, since images are built natively.

    """

    folder: Path = paths.ROOT / "images"
    base: str | None = None
    architecture: str = platform.machine()

    @property
    def as_of(self) -> int:
        """Return the time in seconds since 1970 that every file and image gets.

        `images/AS_OF` holds a date. A later one gives new tags, and so images with today's packages.

        Raises:
            UserError: The file holds something else.

        """
        file = self.folder / "AS_OF"
        text = file.read_text().strip()
        try:
            return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
        except ValueError as error:
            raise UserError(f'{file} holds "{text}". It must be a date like 2026-11-21.') from error

    def order(self) -> list[str]:
        """Return the names of the images to build, parents first."""
        return list(PARENTS) if self.base else ["base", *PARENTS]

    def tags(self) -> dict[str, str]:
        """Return the tag of each image: a hash of its folder, the date, the architecture and the parent's."""
        tags = {"base": self._tag("base", self.base)}
        for name, parent in PARENTS.items():
            tags[name] = self._tag(name, tags[parent])
        return tags

    def references(self, registry: str | None = None) -> dict[str, str]:
        """Return the full reference of each image that pods run."""
        tags = self.tags()
        repository = registry.rstrip("/") if registry else LOCAL_REPOSITORY
        return {name: f"{repository}/{name}:{tags[name]}" for name in PUBLISHED}

    def _tag(self, name: str, parent: str | None) -> str:
        digest = hashlib.sha256()
        pulled = name == "base" and parent is not None
        contents = () if pulled else _contents(self.folder / name)
        for part in (_FORMAT, SUITE, str(self.as_of), self.architecture, name, parent or "", *contents):
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()[:_TAG_LENGTH]


def references(registry: str | None = None, *, base: str | None = None) -> dict[str, str]:
    """Return the image of each role: `{"controller": "localhost/soperator/controller:<tag>", ...}`.

    Args:
        registry: Where the images were pushed, like `registry.example.org/hpc`; on this machine without.
        base: The image that they were built on, when not on the bootstrapped one.

    """
    return Recipe(base=base).references(registry)


def _contents(folder: Path) -> Iterator[str | bytes]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or _NOT_CONTENT.intersection(relative.parts):
            continue
        yield relative.as_posix()
        yield "x" if path.stat().st_mode & 0o100 else "-"
        yield path.read_bytes()
