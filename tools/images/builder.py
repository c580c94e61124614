"""Builds the images whose tags are not in the cache yet."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tools import paths
from tools.console import UserError, step
from tools.images import apt, bootstrap
from tools.images.buildah import Buildah, tls_verify
from tools.images.mirror import parse_list, sources
from tools.images.recipe import LOCAL_REPOSITORY, PARENTS, PUBLISHED, Recipe
from tools.images.runner import Progress, Runner
from tools.images.store import Store
from tools.kube.debs import tool


def cache() -> Store:
    """Return the store of finished images in this user's cache."""
    return Store(paths.cache_dir() / "images")


def are_built() -> bool:
    """Return whether the cache has all images of this checkout."""
    return not _missing(cache(), Recipe().tags())


def build(*, base: str | None = None, mirror: str | None = None) -> None:
    """Build the images whose tags are not in the cache yet.

    Args:
        base: Reference of the Debian trixie image to build on; default: bootstrapped from Debian's packages.
        mirror: URL of the Debian mirror; default: that of this machine's apt.

    Raises:
        UserError: A step failed; the message has its name and last lines.

    """
    build_missing(Recipe(base=base), cache(), mirror)


def build_missing(recipe: Recipe, store: Store, mirror: str | None = None) -> None:
    """Build the images of a recipe that a store does not have yet, and prune the store."""
    tags = recipe.tags()
    if _missing(store, tags):
        if os.geteuid() != 0:
            raise UserError("Building images needs root, for the owners of files in them. Rerun with sudo.")
        with store.lock() as lock, store.work_folder() as work:
            recipe = recipe.snapshot(work / "recipe")
            tags = recipe.tags()
            # Another build may have made them during the wait for the lock.
            Build(recipe, store, work, lock, mirror).run(_missing(store, tags))
            store.prune({name: tags[name] for name in PUBLISHED})


def _missing(store: Store, tags: Mapping[str, str]) -> list[str]:
    return [name for name in PUBLISHED if not store.use(name, tags[name])]


@dataclass
class Build:
    """One run of a build.

    Attributes:
        recipe: Inputs of the images.
        store: Store of finished images.
        work: Folder for temporary files.
        lock: Descriptor of the store's lock.
        mirror: URL of the Debian mirror; None for that of this machine's apt.

    """

    recipe: Recipe
    store: Store
    work: Path
    lock: int
    mirror: str | None = None

    def run(self, missing: Sequence[str]) -> None:
        """Build the missing images, and those of their parents that are no longer stored."""
        self.buildah.remove_containers()
        steps = to_build(self.recipe, missing, self.buildah.images())
        for number, name in enumerate(steps, start=1):
            with step(f"Building image {number} of {len(steps)}: {name}") as progress:
                self._build(name, progress)
        self.buildah.keep_only([self._reference(name) for name in self.recipe.tags() if name not in PUBLISHED])

    @cached_property
    def buildah(self) -> Buildah:
        """Builder on the storage that is kept between builds."""
        return Buildah(
            tool("buildah"),
            self.store.folder / "storage",
            lambda environment: self._runner("buildah", environment),
        )

    def _build(self, name: str, progress: Progress) -> None:
        reference = self._reference(name)
        folder = self._bootstrap(progress) if name == "base" else self._context(name)
        self.buildah.build(reference, folder, self._options(name), progress)
        if name in PUBLISHED:
            with self.store.new_layout(name, self.recipe.tags()[name], self.work) as layout:
                self.buildah.export(reference, layout)

    def _reference(self, name: str) -> str:
        if name == "base" and self.recipe.base:
            return self.recipe.base
        return f"{LOCAL_REPOSITORY}/{name}:{self.recipe.tags()[name]}"

    def _options(self, name: str) -> list[str]:
        options = [f"--timestamp={self.recipe.as_of}"]
        if name in PARENTS:
            parents = {parent: self._reference(parent) for parent in PARENTS[name]}
            options += [f"--build-arg={parent.upper()}={reference}" for parent, reference in parents.items()]
            options.append(tls_verify(next(iter(parents.values()))))
            options.append(f"--build-arg=SOURCE_DATE_EPOCH={self.recipe.as_of}")
            options += [f"--volume={volume}" for volume in self._apt.volumes]
        return options

    def _context(self, name: str) -> Path:
        """Copy the content of an image into its build folder, with the same modes on every machine."""
        context = self.work / name
        for path, source in self.recipe.content(name).items():
            (context / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, context / path)
            (context / path).chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
        return context

    @cached_property
    def _apt(self) -> apt.BuildApt:
        found = sources(self.mirror)
        if not found:
            lines = self._mmdebstrap("Reading mmdebstrap's default mirror", bootstrap.default_sources_arguments())
            found = list(parse_list("\n".join(lines)))
        keyring = bootstrap.keyring(tool("mmdebstrap").path)
        keyed = [replace(source, signed_by=source.signed_by or keyring) for source in found]
        return apt.prepare(self.work / "apt", keyed)

    def _bootstrap(self, progress: Progress) -> Path:
        """Write the base's packages into a folder with its Containerfile, and return the folder."""
        source, context = self.recipe.folder / "base", self.work / "base"
        context.mkdir()
        shutil.copy(source / "Containerfile", context)
        arguments = bootstrap.mmdebstrap_arguments(context / "base.tar", source / "dpkg.cfg", self._apt)
        self._mmdebstrap("Bootstrapping Debian", arguments, progress)
        return context

    def _mmdebstrap(self, what: str, arguments: Sequence[str], progress: Progress = lambda _: None) -> list[str]:
        program = tool("mmdebstrap")
        run = self._runner("mmdebstrap", program.environment)
        return run(what, [str(program.path), *arguments], progress, bootstrap.interesting_line)

    def _runner(self, log: str, environment: Mapping[str, str]) -> Runner:
        ours = {"SOURCE_DATE_EPOCH": str(self.recipe.as_of), "TMPDIR": str(self.store.temporary)}
        return Runner({**os.environ, **environment, **ours}, self.store.folder / f"{log}.log", self.lock)


def to_build(recipe: Recipe, missing: Sequence[str], stored: set[str]) -> list[str]:
    """Return the names of the images to build, parents first.

    Args:
        recipe: Inputs of the images.
        missing: Names of the wanted images.
        stored: References that buildah has, whose images need no building.

    """
    tags, order = recipe.tags(), recipe.order()
    wanted = set(missing)
    for name in reversed(order):
        parents = [parent for parent in PARENTS.get(name, ()) if parent in order] if name in wanted else []
        wanted.update(p for p in parents if f"{LOCAL_REPOSITORY}/{p}:{tags[p]}" not in stored)
    return [name for name in order if name in wanted]
