"""Bringing finished images to where they run: a Kubernetes on this machine, or a registry."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from tools.console import step
from tools.images.builder import Build, cache
from tools.images.recipe import Recipe


class Kube(Protocol):
    """What loading needs of a Kubernetes on this machine."""

    def images(self) -> set[str]:
        """Return the names of the images that its node has."""

    def import_image(self, archive: Path) -> None:
        """Take in the images of an OCI archive."""


def load(kube: Kube, *, base: str | None = None) -> None:
    """Import the images that the Kubernetes on this machine does not have yet. They must have been built."""
    recipe, store = Recipe(base=base), cache()
    present = kube.images()
    missing = {name: reference for name, reference in recipe.references().items() if reference not in present}
    if not missing:
        return
    with step(f"Loading images: {_listed(missing)}"), store.lock(), store.work_folder() as work:
        archive = work / "images.tar"
        store.archive(_by_layout(recipe, missing), archive)
        kube.import_image(archive)


def push(registry: str, *, base: str | None = None) -> None:
    """Push the images to a registry. They must have been built.

    Args:
        registry: A registry's host and where in it the images go: `registry.example.org/hpc`.
        base: The image that they were built on, when not on the bootstrapped one.

    Raises:
        UserError: The registry refused, with its words.

    """
    recipe, store = Recipe(base=base), cache()
    local, remote = recipe.references(), recipe.references(registry)
    with store.lock() as lock, store.work_folder() as work:
        build = Build(recipe, store, work, lock)
        stored = build.buildah.images()
        for number, name in enumerate(local, start=1):
            with step(f"Pushing image {number} of {len(local)}: {remote[name]}"):
                archive = work / f"{name}.tar"
                store.archive(_by_layout(recipe, {name: local[name]}), archive)
                build.buildah.push(archive, local[name], remote[name])
        build.buildah.keep_only(stored)


def _by_layout(recipe: Recipe, references: dict[str, str]) -> dict[str, str]:
    """Return references by the folder of the image in the store."""
    tags = recipe.tags()
    return {f"{name}/{tags[name]}": reference for name, reference in references.items()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
