"""Building images with buildah, each only when its tag is not there yet; loading and pushing them."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools import paths
from tools.console import UserError, step
from tools.images import apt, bootstrap
from tools.images.process import Runner
from tools.images.recipe import LOCAL_REPOSITORY, PARENTS, PUBLISHED, Recipe
from tools.images.store import Store
from tools.kube.debs import Tool, tool


_REFERENCE = re.compile(r"\S+/\S+:\S+")


class Kube(Protocol):
    """What loading needs of a Kubernetes on this machine."""

    def images(self) -> set[str]:
        """Return the names of the images that its node has."""

    def import_image(self, archive: Path) -> None:
        """Take in the images of an OCI archive."""


def build(*, base: str | None = None, mirror: str | None = None) -> None:
    """Build the images whose tags are not in the cache yet.

    Args:
        base: Reference of the Debian trixie image to build on; bootstrapped from Debian's packages without.
        mirror: URL of the Debian mirror; the one of this machine's apt without.

    Raises:
        UserError: A step failed: which, and its last words.

    """
    recipe, store = Recipe(base=base), _store()
    tags = recipe.tags()
    if not _missing(store, tags):
        return
    with store.lock() as lock:
        missing = _missing(store, tags)
        if missing:
            with store.work_folder() as work:
                _Build(recipe, store, work, lock, mirror).run(missing)
        for name in PUBLISHED:
            store.use(name, tags[name])
        store.prune({name: tags[name] for name in PUBLISHED})


def load(kube: Kube, *, base: str | None = None) -> None:
    """Import the images that the Kubernetes on this machine does not have yet. They must have been built."""
    recipe, store = Recipe(base=base), _store()
    tags, present = recipe.tags(), kube.images()
    wanted = {
        f"{name}/{tags[name]}": reference
        for name, reference in recipe.references().items()
        if reference not in present
    }
    if not wanted:
        return
    with step(f"Loading images into Kubernetes: {_listed(wanted)}"), store.lock(), store.work_folder() as work:
        archive = work / "images.tar"
        store.archive(wanted, archive)
        kube.import_image(archive)


def _store() -> Store:
    return Store(paths.cache_dir() / "images")


def _missing(store: Store, tags: Mapping[str, str]) -> list[str]:
    return [name for name in PUBLISHED if not store.has(name, tags[name])]


def _listed(images: Mapping[str, str]) -> str:
    return ", ".join(image.partition("/")[0] for image in images)


class Buildah:
    """buildah on a storage of our own: nothing of this machine's containers is read or changed."""

    def __init__(self, storage: Path, run: Runner, program: Tool) -> None:
        self._program = program.path
        self._storage = storage
        self._run = run
        storage.mkdir(exist_ok=True)
        self._policy = storage / "policy.json"
        self._policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        # Without one, this machine's /etc/containers/storage.conf would be read. The flags say the rest.
        (storage / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
        self._driver = "overlay"
        try:
            self("Trying overlay storage", "info")
        except UserError:
            # No overlay on this file system, or not for us. vfs copies a parent for each image: slower, works anywhere.
            self._driver = "vfs"

    def __call__(
        self, what: str, *arguments: str, progress: Callable[[str], None] = lambda _: None
    ) -> list[str]:
        """Run one command and return its lines."""
        command = [
            str(self._program),
            f"--root={self._storage / self._driver}",
            f"--runroot={self._storage / self._driver}-run",
            f"--storage-driver={self._driver}",
            *arguments,
        ]
        return self._run(what, command, progress, prefix="STEP ")

    def images(self) -> set[str]:
        """Return the references of the images in the storage."""
        lines = self("Listing images", "images", "--format={{.Name}}:{{.Tag}}")
        return {line for line in lines if _REFERENCE.fullmatch(line)}

    def remove_containers(self) -> None:
        """Remove the working containers of killed builds."""
        self("Removing left-over builds", "rm", "--all")

    def keep_only(self, references: Sequence[str]) -> None:
        """Remove the other images."""
        old = sorted(self.images() - set(references))
        if old:
            self("Removing old images", "rmi", "--force", *old)

    def build(self, reference: str, folder: Path, options: Sequence[str], progress: Callable[[str], None]) -> None:
        """Build the Containerfile of a folder."""
        self(
            f"Building {reference}",
            "build",
            *("--isolation=chroot", "--network=host", "--format=oci", "--layers=false"),
            f"--signature-policy={self._policy}",
            *options,
            f"--tag={reference}",
            str(folder),
            progress=progress,
        )

    def export(self, reference: str, layout: Path) -> None:
        """Write an image into an OCI layout."""
        self(f"Writing {reference}", "push", f"--signature-policy={self._policy}", reference, f"oci:{layout}")


@dataclass
class _Build:
    """One run: what is missing, parents first."""

    recipe: Recipe
    store: Store
    work: Path
    lock: int
    mirror: str | None

    def run(self, missing: Sequence[str]) -> None:
        tags = self.recipe.tags()
        buildah = Buildah(self.store.folder / "storage", self._runner("buildah"), tool("buildah"))
        buildah.remove_containers()
        steps = self._steps(missing, buildah.images())
        parents = [self._reference(name) for name in tags if name not in PUBLISHED]
        build_apt = self._apt()
        for number, name in enumerate(steps, start=1):
            with step(f"Image {number} of {len(steps)}: {name}") as progress:
                folder = self._bootstrap(build_apt, progress) if name == "base" else self.recipe.folder / name
                buildah.build(self._reference(name), folder, self._options(name, build_apt), progress)
                if name in PUBLISHED:
                    with self.store.new_layout(name, tags[name], self.work) as layout:
                        buildah.export(self._reference(name), layout)
        buildah.keep_only(parents)

    def _steps(self, missing: Sequence[str], stored: set[str]) -> list[str]:
        """Return what to build in order: the missing images, and what they stand on where it is not stored."""
        wanted = set(missing)
        for name in reversed(self.recipe.order()):
            parent = PARENTS.get(name)
            if name in wanted and parent in self.recipe.order() and self._reference(str(parent)) not in stored:
                wanted.add(str(parent))
        return [name for name in self.recipe.order() if name in wanted]

    def _reference(self, name: str) -> str:
        if name == "base" and self.recipe.base:
            return self.recipe.base
        return f"{LOCAL_REPOSITORY}/{name}:{self.recipe.tags()[name]}"

    def _options(self, name: str, build_apt: apt.BuildApt) -> list[str]:
        options = [f"--timestamp={self.recipe.as_of}"]
        if name in PARENTS:
            options.append(f"--build-arg=BASE={self._reference(PARENTS[name])}")
            options.append(f"--build-arg=SOURCE_DATE_EPOCH={self.recipe.as_of}")
            options += [f"--volume={volume}" for volume in build_apt.volumes()]
        return options

    def _apt(self) -> apt.BuildApt:
        found = apt.sources(self.mirror)
        if not found:
            mmdebstrap = tool("mmdebstrap")
            lines = self._runner("mmdebstrap", mmdebstrap)(
                "Asking mmdebstrap for its mirror", [str(mmdebstrap.path), *bootstrap.default_sources_arguments()]
            )
            found = list(apt.parse_list("\n".join(lines)))
        return apt.prepare(self.work / "apt", found)

    def _bootstrap(self, build_apt: apt.BuildApt, progress: Callable[[str], None]) -> Path:
        """Make the base's packages into a folder that its Containerfile can be built in."""
        source, context, mmdebstrap = self.recipe.folder / "base", self.work / "base", tool("mmdebstrap")
        context.mkdir()
        arguments = bootstrap.mmdebstrap_arguments(context / "base.tar", source / "dpkg.cfg", build_apt)
        self._runner("mmdebstrap", mmdebstrap)(
            "Bootstrapping Debian", [str(mmdebstrap.path), *arguments], progress, prefix="I: "
        )
        (context / "Containerfile").write_bytes((source / "Containerfile").read_bytes())
        return context

    def _runner(self, log: str, program: Tool | None = None) -> Runner:
        environment = {
            **os.environ,
            **(program or tool("buildah")).environment,
            "SOURCE_DATE_EPOCH": str(self.recipe.as_of),
            "TMPDIR": str(self._cache()),
            "CONTAINERS_STORAGE_CONF": str(self.store.folder / "storage" / "storage.conf"),
            "CONTAINERS_CONF": os.devnull,
        }
        return Runner(environment, self.store.folder / f"{log}.log", [self.lock])

    def _cache(self) -> Path:
        """Return where buildah puts the `RUN --mount=type=cache` folders, here apt's, and its temporary files."""
        folder = self.store.folder / "apt"
        folder.mkdir(exist_ok=True)
        return folder
