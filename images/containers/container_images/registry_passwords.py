"""Passwords of registries, read from the files of Docker, podman and enroot. They are never arguments."""

import base64
import json
import netrc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from container_images.image_reference import DOCKER_HUB, ImageError, ImageReference

_HUB_NAMES = ("docker.io", "index.docker.io", "registry-1.docker.io", "auth.docker.io", "https://index.docker.io/v1/")
"""Names of Docker Hub: in image names, in Docker's file, and in enroot's file."""


Login = dict[str, str]
"""Entry of Docker's file: `auth`, the base64 of `user:password`, and perhaps `identitytoken` in place of a password."""


def find(image: ImageReference, environment: Mapping[str, str], say: Callable[[str], None]) -> Login | None:
    """Return the login for an image's registry, or None to ask without.

    Args:
        image: The image.
        environment: HOME, and variables that name other files: REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG.
        say: Tells the user of helpers, which are not run.

    Raises:
        ImageError: A file is not understood, or has no password of the user that the image names.

    """
    if image.registry is None:
        return None
    names, helpers = _names(image), []
    for path in _files(environment):
        found, helper = _in_netrc(path, names) if path.name == ".credentials" else _in_json(path, names)
        if found and (image.user is None or base64.b64decode(found["auth"]).split(b":")[0] == os.fsencode(image.user)):
            return found
        if helper:
            helpers.append(
                f"{path} leaves the login of {image.registry} to the helper {helper}, and helpers are not run"
            )
    if image.user is None:
        for words in helpers:
            say(f"{words}: asks without a password. To log in, add a line to ~/.config/enroot/.credentials.")
        return None
    files = ", ".join(str(path) for path in _files(environment))
    message = f"no password of {image.user} for {image.registry} is in {files}. Log in, or add it there."
    raise ImageError(". ".join([message, *helpers]))


def auth_file(logins: Mapping[str | None, Login | None]) -> int:
    """Return a descriptor of a file in memory that skopeo inherits, so that no password is stored.

    Args:
        logins: Login of every registry that is asked.
    """
    descriptor = os.memfd_create("auth.json", 0)
    os.write(descriptor, json.dumps({"auths": {host: login for host, login in logins.items() if login}}).encode())
    return descriptor


def _names(image: ImageReference) -> list[str]:
    """Return the keys of a login in files, the most specific first: podman has logins for parts of a registry."""
    parts = image.repository.removeprefix("docker://").split("/")
    longer = ["/".join(parts[:count]) for count in range(len(parts), 1, -1)]
    hosts = _HUB_NAMES if image.registry == DOCKER_HUB else (parts[0], f"https://{parts[0]}")
    return [*longer, *hosts]


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


def _in_json(path: Path, names: Sequence[str]) -> tuple[Login | None, str | None]:
    """Return the login in a Docker or podman file, or else the helper that the file names."""
    if (text := _read(path)) is None:
        return None, None
    try:
        config: dict[str, Any] = json.loads(text)
        logins, helpers = config.get("auths") or {}, config.get("credHelpers") or {}
        for name in names:
            login = logins.get(name, {})
            if login.get("auth"):
                base64.b64decode(login["auth"], validate=True)
                return dict(login), None
            if login.get("username") and login.get("password"):  # the kubelet's other form
                return _login(login["username"], login["password"]), None
        helpers = dict.fromkeys(logins, config.get("credsStore")) | helpers
        return None, next((helpers[name] for name in names if name in helpers), None)
    except (ValueError, AttributeError, TypeError) as error:
        # Not the error itself: it could show a part of a password.
        message = f"{path} is not a file of `docker login` or `podman login`. Log in again."
        raise ImageError(message) from error


def _in_netrc(path: Path, names: Sequence[str]) -> tuple[Login | None, None]:
    if _read(path) is None:
        return None, None
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
            return _login(login, password), None
    return None, None


def _login(user: str, password: str | None) -> Login:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}
