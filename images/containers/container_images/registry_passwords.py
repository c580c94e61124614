"""Passwords of registries, from where Docker, podman and enroot keep those of a user. They are never arguments."""

import base64
import json
import netrc
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from container_images.image_reference import DOCKER_HUB, ImageError, ImageReference

_HUB_NAMES = ("docker.io", "index.docker.io", "registry-1.docker.io", "auth.docker.io", "https://index.docker.io/v1/")
"""Docker Hub's names: of images, in Docker's file, and in enroot's."""


def find(image: ImageReference, environment: Mapping[str, str]) -> str | None:
    """Return the base64 of `user:password` for an image's registry, or None to ask without.

    Args:
        image: The image.
        environment: HOME, and variables that name other files: REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG.

    Raises:
        ImageError: A file is not understood, or has no password of the user that the image names.

    """
    if image.registry is None:
        return None
    names = _HUB_NAMES if image.registry == DOCKER_HUB else (image.registry, f"https://{image.registry}")
    for path in _files(environment):
        found = _in_netrc(path, names) if path.name == ".credentials" else _in_json(path, names)
        if found and (image.user is None or base64.b64decode(found).split(b":")[0].decode() == image.user):
            return found
    if image.user is None:
        return None
    files = ", ".join(str(path) for path in _files(environment))
    message = f"no password of {image.user} for {image.registry} is in {files}. Log in, or add it there."
    raise ImageError(message)


def auth_file(image: ImageReference, credentials: str | None) -> int:
    """Return a descriptor of a file in memory, as skopeo reads it and inherits it: nothing stays of it."""
    auths = {image.registry: {"auth": credentials}} if credentials else {}
    descriptor = os.memfd_create("auth.json", 0)
    os.write(descriptor, json.dumps({"auths": auths}).encode())
    return descriptor


def _files(environment: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environment["HOME"])
    if named := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers/auth.json"
    yield home / ".config/containers/auth.json"
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    yield home / ".config/enroot/.credentials"


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read: {error}"
        raise ImageError(message) from error


def _in_json(path: Path, names: tuple[str, ...]) -> str | None:
    if (text := _read(path)) is None:
        return None
    try:
        auths: dict[str, Any] = json.loads(text).get("auths", {})
        found = next((auths[name]["auth"] for name in names if auths.get(name, {}).get("auth")), None)
        return str(found) if found and base64.b64decode(found, validate=True) else None
    except (ValueError, AttributeError, TypeError) as error:
        # Not the error itself: it could show a part of a password.
        message = f"{path} is not a file of `docker login` or `podman login`. Log in again."
        raise ImageError(message) from error


def _in_netrc(path: Path, names: tuple[str, ...]) -> str | None:
    if _read(path) is None:
        return None
    try:
        hosts = netrc.netrc(str(path)).hosts
    except netrc.NetrcParseError as error:
        message = f"{path}, line {error.lineno}: needs `machine HOST login USER password PASSWORD`."
        raise ImageError(message) from None
    for name in names:
        if name in hosts:
            login, _, password = hosts[name]
            if "$(" in (password or "") or "`" in (password or ""):
                message = f"{path}: the password for {name} is a command, and commands are not run. Write the password."
                raise ImageError(message)
            return base64.b64encode(f"{login}:{password}".encode()).decode()
    return None
