"""The command `import-image JOB IMAGE [NAME FLAG]`: its last line is `image=` and a folder of the store.

If it has brought the image, a line before that is `brought=` and the image's bytes, for the count of starts
(`node_report.py`). `lock=` and `version=` are for the plugin, which starts an image again without this command
(`spank-plugin/found_image.h`).
"""

import hashlib
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from container_images import registry_passwords
from container_images.bringing import ImageBringer
from container_images.copies_on_disk import DISK
from container_images.image_reference import SQUASHFS, ImageError, ImageReference, parse
from container_images.image_store import STORE, ImageStore
from container_images.import_settings import SETTINGS, ImportSettings, read_settings
from container_images.local_copies import LocalCopies
from container_images.named_containers import NamedContainers
from container_images.published_images import PUBLISHED, PublishedImages
from container_images.registry_settings import check_allowed, in_mirrors, skopeo_home
from container_images.squashfs_files import SquashfsBringer
from container_images.store_cleaning import recorded_size

_STDIN = 0


def main(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    settings: Path = SETTINGS,
    published: Path = PUBLISHED,
    disk: Path = DISK,
) -> int:
    """Bring the image for the job, and print progress. Return the exit code: 1 after a message about the failure.

    With a name, this is the image of a named container; then the image may be empty.
    """
    try:
        folder = _import(arguments, environment, read_settings(settings), PublishedImages(published, say=_say), disk)
    except ImageError as error:
        print(error, flush=True)
        return 1
    except OSError as error:
        print(f"{error.filename or 'the store of images'}: {error.strerror}", flush=True)
        return 1
    print(f"image={folder}", flush=True)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _unique(job: str, environment: Mapping[str, str]) -> str:
    """Return a name of the job that no other job has: another cluster, or one with a new state, reuses job numbers."""
    marks = " ".join(environment.get(name, "") for name in ("SLURM_CLUSTER_NAME", "SLURM_JOB_START_TIME"))
    return f"{job}-{hashlib.sha256(os.fsencode(marks)).hexdigest()[:8]}"


def _import(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    settings: ImportSettings,
    published: PublishedImages,
    disk: Path,
) -> Path:
    job, text, name, flag = [*arguments, "", "auto"][:4]
    unique = _unique(job, environment)
    try:
        store = ImageStore(Path(environment["HOME"]) / STORE, _say, limits=settings.limits)
    except PermissionError as error:  # the home is root's, as that of the long checks' user
        if not name:
            wanted = parse(text, Path.cwd())
            if used := _published(wanted, settings, published):
                folder, lock = _copied(used, environment, settings, disk)
                _leave_to_step(lock, wanted)
                return folder
        message = f"{error.filename}: {error.strerror}. Without a store there, only shared images start"
        raise ImageError(message) from error

    def found(wanted: ImageReference) -> tuple[Path, int]:
        check_allowed(wanted, settings.allowed_registries)
        digest = published.digest(wanted)
        if digest is None:
            return _own(unique, wanted, environment, settings, store)
        # All nodes of a job start the image that its first one has found, and no registry is asked.
        first = store.digest_of_job(unique, _key(wanted), lambda: digest)
        if used := published.use(first):
            return used
        try:
            return _own(unique, wanted, environment, settings, store)
        except (ImageError, OSError) as error:
            if digest == first or not (used := published.use(digest)):
                raise
            _say(f"{error}. The image {first}, with which this job began, is not published any more: starts {digest}")
            return used

    if name:
        containers = NamedContainers(store, environment, _say)
        step = f"{unique}.{environment.get('SLURM_STEP_ID', '')}"
        folder, lock = containers.use(name, flag, step, (lambda: found(parse(text, Path.cwd()))[0]) if text else None)
        _check_source(folder, settings)
        _leave_to_step(lock)
    else:
        wanted = parse(text, Path.cwd())
        folder, lock = _copied(found(wanted), environment, settings, disk)
        _leave_to_step(lock, wanted)
    return folder


def _published(image: ImageReference, settings: ImportSettings, published: PublishedImages) -> tuple[Path, int] | None:
    """Return a published image's folder, and the descriptor that keeps it; None if it is not published."""
    check_allowed(image, settings.allowed_registries)
    digest = published.digest(image)
    return published.use(digest) if digest else None


def _copied(
    used: tuple[Path, int], environment: Mapping[str, str], settings: ImportSettings, disk: Path
) -> tuple[Path, int]:
    """Return an image's copy on this node's disk and its descriptor, if nodes have copies, or else the given ones."""
    return LocalCopies(settings.local, environment, _say, disk).use(*used) if settings.local else used


def _key(image: ImageReference) -> str:
    return f"{image.skopeo} {image.version}"


def _own(
    unique: str, image: ImageReference, environment: Mapping[str, str], settings: ImportSettings, store: ImageStore
) -> tuple[Path, int]:
    """Return the folder of an image in the user's store, and the descriptor that keeps it from being removed."""
    logins = {
        place.registry: registry_passwords.find(place, environment, _say)
        for place in (image, *in_mirrors(image, settings.registries))
    }
    authentication = registry_passwords.auth_file(logins)
    with skopeo_home(settings.registries) as home:
        variables = {**settings.variables, **environment, "HOME": str(home)}
        bringer: ImageBringer | SquashfsBringer = (
            SquashfsBringer(image, variables, _say)
            if image.skopeo.startswith(SQUASHFS)
            else ImageBringer(image, authentication, variables, _say)
        )
        digest = store.digest_of_job(unique, _key(image), bringer.digest)
        lock = store.use(digest)
        has_brought = False

        def bring(part: Path, new: Path) -> None:
            nonlocal has_brought
            bringer.bring(digest, part, new)
            has_brought = True

        folder = store.folder_of(digest, bring, bringer.least_bytes)
    if has_brought:
        _say(f"brought={recorded_size(folder)}")
    return folder, lock


def _check_source(container: Path, settings: ImportSettings) -> None:
    """Refuse a named container of an image that may no longer be started."""
    source = (container / "reference").read_text(errors="surrogateescape")
    if source.startswith("docker://"):
        check_allowed(parse(source, container), settings.allowed_registries)


def _leave_to_step(lock: int, image: ImageReference | None = None) -> None:
    """Send a lock to standard input if that is slurmstepd's socket, so that slurmstepd holds it until the step ends.

    With the image, the plugin learns how to take the lock for a later step.
    """
    if not stat.S_ISSOCK(os.fstat(_STDIN).st_mode):
        return
    with socket.socket(fileno=os.dup(_STDIN)) as step:
        socket.send_fds(step, [b"lock"], [lock])
    if image:
        if image.file:
            _say(f"version={image.version} {image.file}")
        _say(f"lock={Path(f'/proc/self/fd/{lock}').readlink()}")
