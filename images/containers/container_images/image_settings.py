"""Settings of an image that the plugin gives to tasks: from the configuration of OCI, or from the files of enroot."""

import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_images.image_reference import ImageError

ODD = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""Errors of reading JSON that has an unexpected form."""

_MAX_BYTES = 256 * 1024
"""Size at which the plugin refuses a file of settings (`spank-plugin/image_settings.c`)."""

_SHOWN = 60
"""Characters of an image's words in a message."""

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(?:\"(.*)\"|'(.*)'|(.*))")

_DIRECTORY = re.compile(r'^cd "(/[^"$`\\]*)" && unset OLDPWD', re.MULTILINE)
_ENTRY_POINT = re.compile(r'^\s+exec (.*) "\$@"$', re.MULTILINE)
"""Lines of `/etc/rc` as `enroot import` writes them."""


@dataclass(frozen=True)
class GivenSettings:
    """Settings of an image.

    Attributes:
        variables: Variables, `NAME=VALUE`.
        entry_point: Words of the entry point; none if there is not an entry point.
        directory: Working directory.

    """

    variables: tuple[str, ...] = ()
    entry_point: tuple[str, ...] = ()
    directory: str = "/"


def write_settings(folder: Path, settings: GivenSettings) -> None:
    """Write settings into an image's folder, in the form that the plugin reads: a zero byte after every text."""
    for name, texts in (("environment", settings.variables), ("entrypoint", settings.entry_point)):
        (folder / name).write_bytes(b"".join(os.fsencode(f"{text}\0") for text in texts if "\0" not in text))
    (folder / "workdir").write_bytes(os.fsencode(settings.directory))


def settings_of_folder(folder: Path) -> GivenSettings:
    """Return the settings that `write_settings` wrote. Earlier versions of it wrote no entry point."""
    variables, entry_point = (
        tuple(text for text in os.fsdecode(path.read_bytes()).split("\0") if text) if path.exists() else ()
        for path in (folder / "environment", folder / "entrypoint")
    )
    return GivenSettings(variables, entry_point, os.fsdecode((folder / "workdir").read_bytes()))


def settings_of_layout(layout: Path) -> GivenSettings:
    """Return the settings of the only image in an OCI layout.

    Raises:
        ImageError: The configuration has another form than that of OCI.

    """
    try:
        config = _configuration(layout).get("config") or {}
        settings = GivenSettings(
            tuple(config.get("Env") or ()), tuple(config.get("Entrypoint") or ()), config.get("WorkingDir") or "/"
        )
        "".join((*settings.variables, *settings.entry_point, settings.directory)).encode()
    except ODD as error:
        message = (
            "the image's configuration is not one of OCI: its Env and Entrypoint are lists of texts, and its "
            "WorkingDir a text."
        )
        raise ImageError(message) from error
    return settings


def check_architecture(layout: Path, wanted: str) -> None:
    """Refuse the only image in an OCI layout if it is for other processors, where its first program would fail.

    Args:
        layout: The layout.
        wanted: Architecture of this node, as images name it. Jobs run no program of 32 bits
            (`spank-plugin/seccomp_filter.c`). An image that names no architecture passes.

    Raises:
        ImageError: The image is for another architecture, or another system than Linux.

    """
    try:
        configuration = _configuration(layout)
        system, architecture = configuration.get("os") or "linux", configuration.get("architecture") or wanted
    except ODD:
        return  # `settings_of_layout` tells it
    if system != "linux" or architecture != wanted:
        found = " ".join(f"{system}/{architecture}".split())[:_SHOWN]
        message = f"the image is for {found}, and programs on this node are for linux/{wanted}. Name an image for it."
        raise ImageError(message)


def settings_of_tree(root: Path) -> GivenSettings:
    """Return the settings that `enroot import` wrote into a tree. A tree from another program has variables only.

    These are `/etc/environment`, without quotes around values, and `/etc/rc`, as far as its lines have enroot's form.
    """
    lines = _text(root, "environment").splitlines()
    found = [_VARIABLE.fullmatch(line.strip()) for line in lines]
    script = _text(root, "rc")
    directory, entry_point = _DIRECTORY.search(script), _ENTRY_POINT.search(script)
    return GivenSettings(
        tuple(f"{match[1]}={match[2] or match[3] or match[4] or ''}" for match in found if match),
        _words(entry_point[1]) if entry_point else (),
        directory[1] if directory else "/",
    )


def write_for_enroot(folder: Path, settings: GivenSettings) -> None:
    """Write `environment` and `rc` into a folder, as `enroot import` does into `/etc` of a tree.

    Variables of several lines have no place there.
    """
    variables = "".join(f"{variable}\n" for variable in settings.variables if "\n" not in variable)
    command = " ".join(shlex.quote(word) for word in settings.entry_point)
    script = (
        f'cd "{settings.directory}" && unset OLDPWD || exit 1\n\n'
        "if [ $# -gt 0 ]; then\n"
        f'    exec {command} "$@"\n'
        "else\n"
        f"    exec {command} /bin/sh\n"
        "fi\n"
    )
    for name, text in (("environment", variables), ("rc", script)):
        (folder / name).write_bytes(os.fsencode(text))


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a shell command, or none if it needs a shell."""
    try:
        return () if "$" in text else tuple(shlex.split(text))
    except ValueError:
        return ()


def _text(root: Path, name: str) -> str:
    """Return the text of a file in `/etc` of a tree, or an empty text. Links are not followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        folder = os.open(root / "etc", flags | os.O_DIRECTORY)
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_MAX_BYTES).decode(errors="surrogateescape")
    except OSError:
        return ""


def _configuration(layout: Path) -> dict[str, Any]:
    index = json.loads((layout / "index.json").read_text())
    manifest = _blob(layout, index["manifests"][-1]["digest"])
    return _blob(layout, manifest["config"]["digest"])


def _blob(layout: Path, digest: str) -> dict[str, Any]:
    algorithm, _, name = digest.partition(":")
    content: dict[str, Any] = json.loads((layout / "blobs" / algorithm / name).read_text())
    return content
