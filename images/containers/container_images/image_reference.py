"""Images as users write them after `--container-image`, in the words of skopeo."""

import os
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

_DIGEST = r"sha256:[0-9a-f]{64}"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_NAME = r"[a-z0-9](?:[a-z0-9._/-]*[a-z0-9])?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_IMAGE = re.compile(rf"(?P<name>{_NAME})(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?")
_USER = re.compile(r"(?P<user>[^@/#\s]+)@(?!sha256:)(?P<rest>.+)")

FORMS = (
    "Give [USER@][REGISTRY#]IMAGE[:TAG], IMAGE@sha256:DIGEST, docker://IMAGE, or the path (with a '/' or './' "
    "in front) of an OCI layout, of an archive of `docker save` or `podman save`, or of a file of squashfs."
)

SQUASHFS = "squashfs:"
"""Prefix of the name of an image in a squashfs file. skopeo does not know it."""

_SQUASHFS_MAGIC = b"hsqs"

DOCKER_HUB = "docker.io"
"""Registry of images that name none."""


class ImageError(Exception):
    """An image that cannot be brought. The message is for the user."""


class RegistryUnreachableError(ImageError):
    """A registry that does not answer now, because of the network or a fault of its own."""


@dataclass(frozen=True)
class ImageReference:
    """An image, and where it comes from.

    Attributes:
        skopeo: Its name for skopeo, or `SQUASHFS` and a path.
        registry: The host of its registry, with a port if one is given; None for a file.
        user: The user whose password the registry wants; None for any.
        version: A text that changes with a file; empty for a registry.
        tag: A tag in front of a digest, which the name for skopeo lacks; None for any other image.
        file: The file whose version this is; None for a registry.
    """

    skopeo: str
    registry: str | None = None
    user: str | None = None
    version: str = ""
    tag: str | None = None
    file: Path | None = None

    @property
    def repository(self) -> str:
        """The name for skopeo without tag and digest."""
        return re.sub(rf"(@{_DIGEST}|:[^:/]+)$", "", self.skopeo)

    @property
    def full_name(self) -> str:
        """Name of an image with its registry, the same for all spellings: Docker Hub's has `library`."""
        name = self.skopeo.removeprefix("docker://")
        if self.registry == DOCKER_HUB and name.count("/") == 1:
            return name.replace("/", "/library/")
        return name

    @property
    def full_names(self) -> list[str]:
        """The full name, followed by the name with the tag alone if the image has both a tag and a digest."""
        by_tag = [f"{self.full_name.partition('@')[0]}:{self.tag}"] if self.tag else []
        return [self.full_name, *by_tag]


def parse(text: str, directory: Path) -> ImageReference:
    """Return the image that a user means.

    Args:
        text: The value of `--container-image`.
        directory: Directory from which a relative path counts.

    Raises:
        ImageError: There is not an image of that form, or the file is not an image.

    """
    if text.startswith(("/", "./", "../")):
        return _in_file(Path(os.path.realpath(directory / text)))
    return _in_registry(text.removeprefix("docker://"), text)


def _in_registry(rest: str, text: str) -> ImageReference:
    user = None
    if match := _USER.fullmatch(rest):
        user, rest = match["user"], match["rest"]
    if "#" in rest:
        registry, rest = rest.split("#", 1)
    else:  # Docker's rule: a first part with a dot or a port is a host
        first, slash, others = rest.partition("/")
        is_host = slash and (first == "localhost" or "." in first or ":" in first)
        registry, rest = (first, others) if is_host else (DOCKER_HUB, rest)
    image = _IMAGE.fullmatch(rest)
    if not image or not re.fullmatch(_HOST, registry):
        message = f'"{text}" is not an image. {FORMS}'
        raise ImageError(message)
    version = f"@{image['digest']}" if image["digest"] else f":{image['tag'] or 'latest'}"
    tag = image["tag"] if image["digest"] else None
    return ImageReference(f"docker://{registry}/{image['name']}{version}", registry, user, tag=tag)


def version_of(status: os.stat_result) -> str:
    """Return a text that changes when the file changes."""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"


def _is_squashfs(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQUASHFS_MAGIC)) == _SQUASHFS_MAGIC


def _in_file(path: Path) -> ImageReference:
    if ":" in str(path):
        message = f"{path}: the path of an image must have no ':'. Rename it."
        raise ImageError(message)
    try:
        is_folder = path.is_dir()
        names = {entry.name for entry in path.iterdir()} if is_folder else set()
        file = path / "index.json" if "oci-layout" in names else path
        version = version_of(file.stat())
        if not is_folder:
            if _is_squashfs(path):
                return ImageReference(f"{SQUASHFS}{path}", version=version, file=file)
            with tarfile.open(path) as archive:
                names = {name.removeprefix("./") for name in archive.getnames()}
    except (OSError, tarfile.TarError) as error:
        message = f"{path} cannot be read as an image: {getattr(error, 'strerror', None) or error}. {FORMS}"
        raise ImageError(message) from error
    if "oci-layout" in names:
        return ImageReference(f"{'oci' if is_folder else 'oci-archive'}:{path}", version=version, file=file)
    if "manifest.json" in names and not is_folder:
        return ImageReference(f"docker-archive:{path}", version=version, file=file)
    message = f"{path} is not an image: it has no oci-layout and no manifest.json. {FORMS}"
    raise ImageError(message)
