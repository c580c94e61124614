"""Delivery of finished images: to a Kubernetes cluster on this machine, or to a registry."""

from pathlib import Path
from typing import Protocol

from tools.console import UserError, step
from tools.images.builder import Build, cache
from tools.images.recipe import DEFAULT_SLURM, Recipe, recipes
from tools.images.store import Store


class ImageImporter(Protocol):
    """A Kubernetes node on this machine that can import images."""

    def images(self) -> set[str]:
        """Return the names of the images that the node has."""

    def import_image(self, archive: Path) -> None:
        """Import the images of an OCI archive."""


def load(
    kube: ImageImporter, *, base: str | None = None, slurm: str = DEFAULT_SLURM, source: Path | None = None
) -> None:
    """Import the images that a Kubernetes cluster on this machine lacks, as one archive.

    Args:
        kube: Kubernetes to import into.
        base: Image that they were built on; default: the bootstrapped one.
        slurm: Version of Slurm in them.
        source: Archive of Slurm's sources that the plugin for PMIx was built from.

    Raises:
        UserError: An image is not built.
    """
    store, present = cache(), kube.images()
    for recipe in recipes(slurm, base, source):
        missing = {name: image for name, image in recipe.references().items() if image not in present}
        if missing:
            with step(f"Loading images: {', '.join(missing)}"), store.lock(), store.work_folder() as work:
                kube.import_image(_archive(recipe, store, missing, work))


def push(registry: str, *, base: str | None = None, slurm: str = DEFAULT_SLURM, source: Path | None = None) -> None:
    """Push the images to a registry, with the credentials of `docker login` or `podman login`.

    Args:
        registry: Host and path in the registry: `registry.example.org/hpc`.
        base: Image that they were built on; default: the bootstrapped one.
        slurm: Version of Slurm in them.
        source: Archive of Slurm's sources that the plugin for PMIx was built from.

    Raises:
        UserError: An image is not built, or the registry refused, with its message.

    """
    store = cache()
    for recipe in recipes(slurm, base, source):
        _push(recipe, store, registry)


def _push(recipe: Recipe, store: Store, registry: str) -> None:
    local, remote = recipe.references(), recipe.references(registry)
    with store.lock() as lock, store.work_folder() as work:
        buildah = Build(recipe, store, work, lock).buildah
        stored = buildah.images()
        for number, name in enumerate(local, start=1):
            with step(f"Pushing image {number} of {len(local)}: {remote[name]}"):
                archive = _archive(recipe, store, {name: local[name]}, work)
                buildah.push(archive, local[name], remote[name])
        buildah.keep_only(stored)


def _archive(recipe: Recipe, store: Store, references: dict[str, str], work: Path) -> Path:
    """Write an OCI archive of the images, named by their references."""
    tags = recipe.tags()
    for name, reference in references.items():
        if not store.use(name, tags[name]):
            raise UserError(f"The image {reference} is not built yet. Run `make images`.")
    archive = work / "images.tar"
    store.archive({f"{name}/{tags[name]}": reference for name, reference in references.items()}, archive)
    return archive
