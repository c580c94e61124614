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
from tools.images.mirror import AptSource, parse_list, sources
from tools.images.recipe import DEFAULT_SLURM, LOCAL_REPOSITORY, PMIX, PUBLISHED, SUITE, SUITES, Recipe, recipes
from tools.images.runner import Progress, Runner
from tools.images.store import Store
from tools.kube.debs import tool


def cache() -> Store:
    """Return the store of finished images in the user's cache."""
    return Store(paths.cache_dir() / "images")


def are_built(slurm: str = DEFAULT_SLURM) -> bool:
    """Return True if the cache has all images of this checkout with a version of Slurm."""
    return not any(_missing(cache(), recipe) for recipe in recipes(slurm))


def build(
    *,
    base: str | None = None,
    mirror: str | None = None,
    slurm: str = DEFAULT_SLURM,
    source: Path | None = None,
) -> None:
    """Build the images whose tags are not in the cache yet.

    Args:
        base: Reference of the image to build on, of the Debian release with that Slurm; default: bootstrapped from
            Debian's packages.
        mirror: URL of the Debian mirror; default: that of this machine's apt.
        slurm: Version of Slurm in the images.
        source: Archive of Slurm's sources to build the plugin for PMIx from.

    Raises:
        UserError: A step failed; the message has its name and last lines.

    """
    for recipe in recipes(slurm, base, source):
        build_missing(recipe, cache(), mirror)


def build_missing(recipe: Recipe, store: Store, mirror: str | None = None) -> None:
    """Build the images of a recipe that a store does not have yet, and prune the store."""
    if _missing(store, recipe):
        if os.geteuid() != 0:
            raise UserError("Building images needs root, for the owners of files in them. Rerun with sudo.")
        with store.lock() as lock, store.work_folder() as work:
            recipe = recipe.snapshot(work / "recipe")
            # Another build may have made them during the wait for the lock.
            Build(recipe, store, work, lock, mirror).run(_missing(store, recipe))
            tags = recipe.tags()
            store.prune({name: tags[name] for name in recipe.published})


def _missing(store: Store, recipe: Recipe) -> list[str]:
    tags = recipe.tags()
    return [name for name in recipe.published if not store.use(name, tags[name])]


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
        """Build the missing images, and their parents if they are no longer stored."""
        self.buildah.remove_containers()
        steps = to_build(self.recipe, missing, self.buildah.images())
        for number, name in enumerate(steps, start=1):
            with step(f"Building image {number} of {len(steps)}: {name}") as progress:
                self._build(name, progress)
        self.buildah.keep_only(_parents_of_all_versions(self.recipe))

    @cached_property
    def buildah(self) -> Buildah:
        """Builder with the storage that is kept between builds."""
        return Buildah(
            tool("buildah"),
            self.store.folder / "storage",
            lambda environment: self._runner("buildah", environment),
        )

    def _build(self, name: str, progress: Progress) -> None:
        reference = self._reference(name)
        folder = self._bootstrap(progress) if name == "base" else self._context(name)
        self.buildah.build(reference, folder, self._options(name), progress)
        if name in self.recipe.published:
            with self.store.new_layout(name, self.recipe.tags()[name], self.work) as layout:
                self.buildah.export(reference, layout)

    def _reference(self, name: str) -> str:
        if name == "base" and self.recipe.base:
            return self.recipe.base
        return f"{LOCAL_REPOSITORY}/{name}:{self.recipe.tags()[name]}"

    def _options(self, name: str) -> list[str]:
        options = [f"--timestamp={self.recipe.as_of}"]
        if name != "base":
            parents = {argument: self._reference(parent) for argument, parent in self.recipe.parents(name).items()}
            options += [f"--build-arg={argument}={reference}" for argument, reference in parents.items()]
            options.append(tls_verify(next(iter(parents.values()))))
            options.append(f"--build-arg=SOURCE_DATE_EPOCH={self.recipe.as_of}")
            options.append(f"--build-arg=SLURM_VERSION={self.recipe.slurm}")
            options += [f"--volume={volume}" for volume in (self._apt_of_pmix if name == PMIX else self._apt).volumes]
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
        return self._prepared_apt(self.recipe.suite)

    @cached_property
    def _apt_of_pmix(self) -> apt.BuildApt:
        """Return the packages of the images, and PMIx of the release whose PMIx every version of Slurm knows."""
        return self._apt if self.recipe.suite == SUITE else self._prepared_apt(self.recipe.suite, SUITE)

    def _prepared_apt(self, *suites: str) -> apt.BuildApt:
        found = [source for suite in suites for source in self._sources(suite)]
        keyring = bootstrap.keyring(tool("mmdebstrap").path)
        keyed = [replace(source, signed_by=source.signed_by or keyring) for source in found]
        folder = self.work / "-".join(["apt", *suites])
        return apt.prepare(folder, keyed, stale=any(suite in apt.TESTING for suite in suites))

    def _sources(self, suite: str) -> list[AptSource]:
        found = sources(self.mirror, suite=suite)
        if not found:
            lines = self._mmdebstrap("Reading mmdebstrap's default mirror", bootstrap.default_sources_arguments(suite))
            found = list(parse_list("\n".join(lines)))
        return found

    def _bootstrap(self, progress: Progress) -> Path:
        """Write the base's packages into a folder with its Containerfile, and return the folder."""
        source, context = self.recipe.folder / "base", self.work / "base"
        context.mkdir()
        shutil.copy(source / "Containerfile", context)
        arguments = bootstrap.mmdebstrap_arguments(
            context / "base.tar", source / "dpkg.cfg", self._apt, self.recipe.suite
        )
        self._mmdebstrap("Bootstrapping Debian", arguments, progress)
        return context

    def _mmdebstrap(self, what: str, arguments: Sequence[str], progress: Progress = lambda _: None) -> list[str]:
        program = tool("mmdebstrap")
        run = self._runner("mmdebstrap", program.environment)
        return run(what, [str(program.path), *arguments], progress, bootstrap.interesting_line)

    def _runner(self, log: str, environment: Mapping[str, str]) -> Runner:
        ours = {"SOURCE_DATE_EPOCH": str(self.recipe.as_of), "TMPDIR": str(self.store.temporary)}
        return Runner({**os.environ, **environment, **ours}, self.store.folder / f"{log}.log", self.lock)


def _parents_of_all_versions(recipe: Recipe) -> list[str]:
    """Return the references of images that are only parents, so that builds of several versions keep them."""
    versions = [replace(recipe, slurm=slurm).tags() for slurm in SUITES]
    return [
        f"{LOCAL_REPOSITORY}/{name}:{tags[name]}" for tags in versions for name in tags if name not in PUBLISHED
    ] + ([recipe.base] if recipe.base else [])


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
        parents = [parent for parent in recipe.parents(name).values() if parent in order] if name in wanted else []
        wanted.update(p for p in parents if f"{LOCAL_REPOSITORY}/{p}:{tags[p]}" not in stored)
    return [name for name in order if name in wanted]
