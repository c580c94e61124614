"""Inputs of the images, and the tags that follow from them; it starts nothing."""

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

SUITES = {"24.11": "trixie", "26.05": "forky"}
"""Debian releases by the version of Slurm in them."""

DEFAULT_SLURM = "24.11"
"""Version of Slurm if none is chosen."""

SUITE = SUITES[DEFAULT_SLURM]
"""Debian release of the images without Slurm, whatever release the others have."""

PARENTS: dict[str, tuple[str, ...]] = {
    "slurm": ("base",),
    "jail": ("base",),
    "database": ("base",),
    "rest": ("slurm",),
    "exporter": ("slurm",),
    "munge": ("slurm",),
    "toolchain": ("slurm",),
    "controller": ("slurm", "toolchain"),
    "accounting": ("slurm", "toolchain"),
    "node": ("slurm", "toolchain"),
    "worker": ("node", "toolchain"),
    "login": ("node",),
    "jail-tools": ("toolchain",),
}
"""Images and their parent images, in building order. `base` is bootstrapped or pulled."""

PMIX = "pmix"
"""Image with Slurm's PMIx plugin, between `slurm` and the images built from it, if there is a source archive."""

FOLDERS = {
    "slurm": ("packages",),
    "controller": ("bounds", "version", "watch", "worker/scripts/slurmd_watch"),
    "accounting": ("bounds", "version", "watch", "worker/scripts/slurmd_watch"),
    "rest": ("version",),
    "database": ("packages", "watch", "worker/scripts/slurmd_watch"),
    "jail": ("manuals", "packages"),
    "node": ("bundle", "manuals", "../spank-plugin"),
    "jail-tools": ("bundle",),
    "worker": ("bounds", "containers", "health", "wire/slurm_wire"),
    "exporter": ("wire/slurm_wire",),
}
"""Folders to build into an image in addition to its own, by their paths from `images/`."""

PUBLISHED = (
    *("controller", "accounting", "database", "rest", "exporter"),
    *("worker", "login", "munge", "jail-tools", "jail"),
)
"""Images that pods run. The others are shared layers, or compile programs."""

ONE_SUITE = ("database", "jail", "jail-tools")
"""Published images without Slurm, which are the same for every version."""

WITH_SLURM = tuple(name for name in PUBLISHED if name not in ONE_SUITE)
"""Published images that exist once per version of Slurm."""

LOCAL_REPOSITORY = "localhost/soperator"

_FORMAT = "2"
"""Version of the builder, incremented when tools/images builds other images from the same folders."""

_TAG_LENGTH = 16
"""Hexadecimal digits: 64 bits, which makes collisions unlikely in any registry."""

_NOT_CONTENT = {
    "__pycache__",
    "tests",
    "health_testing",
    "jail_testing",
    "exporter_testing",
    "containers_testing",
    ".pytest_cache",
    "build",
}


@dataclass(frozen=True)
class Recipe:
    """Inputs of a build that decide its result.

    Attributes:
        folder: Folder with one folder per image, and `AS_OF`.
        base: Reference of the image to build on, or None to bootstrap one from Debian's packages.
        architecture: Architecture of the machine, since images are built natively.
        slurm: Version of Slurm, which decides the Debian release.
        published: Names of the images that a build is for.
        source: Archive of Slurm's sources to build the plugin for PMIx from, or None for images as Debian has them.

    """

    folder: Path = paths.ROOT / "images"
    base: str | None = None
    architecture: str = platform.machine()
    slurm: str = DEFAULT_SLURM
    published: tuple[str, ...] = PUBLISHED
    source: Path | None = None

    @property
    def suite(self) -> str:
        """Debian release of the images."""
        return SUITES[self.slurm]

    @property
    def as_of(self) -> int:
        """Return the time of every file and image, in seconds since 1970.

        `images/AS_OF` holds its date. A later date gives new tags, and so images with newer packages.

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
        names = [name for parent in PARENTS for name in ((parent, PMIX) if self._precedes_pmix(parent) else (parent,))]
        return names if self.base else ["base", *names]

    def parents(self, name: str) -> dict[str, str]:
        """Return the parents of an image, by the names in its Containerfile."""
        named = ("slurm",) if name == PMIX else PARENTS.get(name, ())
        return {parent.upper(): PMIX if self._precedes_pmix(parent) and name != PMIX else parent for parent in named}

    def tags(self) -> dict[str, str]:
        """Return the tags of all images: hashes of content, date, architecture and the parents' tags."""
        tags = {"base": self._tag("base", [self.base] if self.base else [])}
        for name in self.order():
            if name != "base":
                tags[name] = self._tag(name, [tags[parent] for parent in self.parents(name).values()])
        return tags

    def snapshot(self, folder: Path) -> "Recipe":
        """Copy the folders and return the recipe of the copy, so that edits during a build do not reach its images."""
        shared = {Path(name) for names in FOLDERS.values() for name in names}
        for path in (Path(), *(path for path in shared if path.parts[0] == "..")):
            target = Path(os.path.normpath(folder / "images" / path))
            if (self.folder / path).exists():
                shutil.copytree(self.folder / path, target, ignore=shutil.ignore_patterns(*_NOT_CONTENT))
        source = None if self.source is None else Path(shutil.copy(self.source, folder / "source.tar"))
        return replace(self, folder=folder / "images", source=source)

    def content(self, name: str) -> dict[str, Path]:
        """Return the files of an image's folders by their paths in its build."""
        files = _files(self.folder / name, Path())
        for shared in FOLDERS.get(name, ()):
            files |= _files(self.folder / shared, Path(Path(shared).name))
        return files | ({"source.tar": self.source} if self.source is not None and name == PMIX else {})

    def references(self, registry: str | None = None) -> dict[str, str]:
        """Return the full references of all published images."""
        tags = self.tags()
        repository = registry.rstrip("/") if registry else LOCAL_REPOSITORY
        return {name: f"{repository}/{name}:{tags[name]}" for name in self.published}

    def _precedes_pmix(self, name: str) -> bool:
        return self.source is not None and name == "slurm"

    def _tag(self, name: str, parents: Sequence[str]) -> str:
        digest = hashlib.sha256()
        pulled = name == "base" and self.base is not None
        content = {} if pulled else self.content(name)
        for part in (_FORMAT, self.suite, str(self.as_of), self.architecture, name, *parents, *_hashed(content)):
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()[:_TAG_LENGTH]


def recipes(slurm: str = DEFAULT_SLURM, base: str | None = None, source: Path | None = None) -> tuple[Recipe, ...]:
    """Return the recipes of all images of a cluster.

    Args:
        slurm: Version of Slurm.
        base: Image of its Debian release to build on.
        source: Archive of Slurm's sources, to build the plugin for PMIx.

    Raises:
        UserError: There is no such archive.

    """
    if source is not None and not source.is_file():
        raise UserError(f"{source} is not a file. Name an archive of Slurm's sources, such as slurm-26.05.5.tar.bz2.")
    if slurm == DEFAULT_SLURM and source is None:
        return (Recipe(base=base),)
    shared = Recipe(base=base if slurm == DEFAULT_SLURM else None, published=ONE_SUITE)
    return (shared, Recipe(base=base, slurm=slurm, published=WITH_SLURM, source=source))


def version_of(cluster: object) -> str:
    """Return the version of Slurm in an unchecked description of a cluster; the default if it has no images."""
    slurm = cluster.get("slurm") if isinstance(cluster, Mapping) else None
    version = slurm.get("version") if isinstance(slurm, Mapping) else None
    return version if isinstance(version, str) and version in SUITES else DEFAULT_SLURM


def references(
    registry: str | None = None,
    *,
    base: str | None = None,
    slurm: str = DEFAULT_SLURM,
    source: Path | None = None,
) -> dict[str, str]:
    """Return the images as a stack names them: `{"controller": "localhost/soperator/controller:<tag>", ...}`.

    Args:
        registry: Registry of the images, like `registry.example.org/hpc`; default: this machine.
        base: Image that they were built on; default: the bootstrapped one.
        slurm: Version of Slurm in them.
        source: Archive of Slurm's sources that the plugin for PMIx was built from.

    """
    named = {
        name: image for recipe in recipes(slurm, base, source) for name, image in recipe.references(registry).items()
    }
    return {name.replace("-", "_"): named[name] for name in PUBLISHED}


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
