"""Bringing an image by skopeo, and unpacking it by umoci, as an ordinary user."""

import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from container_images.image_reference import ImageError, ImageReference, RegistryUnreachableError
from container_images.image_store import STORE
from container_images.store_cleaning import open_to_owner, size_of

_NAME = "image"
"""Tag in the OCI layout of one image."""

_DIES_WITH_IMPORTER = ("setpriv", "--pdeathsig", "KILL")
"""Start of a command that the kernel kills when this process dies."""

_PROGRESS_SECONDS = 10
_RETRIES = 3
_MIB = 1024 * 1024

_REFUSED = r"unauthorized|authentication required|denied|\b40[13]\b"
_UNREACHABLE = (
    r"dial tcp|connection (refused|reset)|timeout|deadline exceeded|unreachable|no route to host|\bEOF\b|"
    r"toomanyrequests|status ?(code)?( from registry)?:? (429|5\d\d)\b"
)

_HINTS = {
    _REFUSED: "Is the name right, and are credentials for the registry "
    "in ~/.docker/config.json, ~/.config/containers/auth.json or ~/.config/enroot/.credentials?",
    r"toomanyrequests|\b429\b": "The registry limits pulls: wait, or log in to it.",
    r"no space left|quota": f"The home is full: remove what is not needed, such as folders in ~/{STORE}/images.",
    r"x509|certificate": "Neither the jail's certificates (/etc/ssl) nor the cluster's settings "
    "(containers.registries) know the registry's authority.",
}
"""Next steps for words of a failed program, in the order in which they count."""


_ODD = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""Errors of JSON that is another thing than what was asked for."""


class ImageBringer:
    """Brings one image.

    Args:
        image: The image.
        authentication: Descriptor of the file with credentials.
        environment: Variables of the programs.
        say: Tells the user how far it is.

    """

    def __init__(
        self,
        image: ImageReference,
        authentication: int,
        environment: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._image = image
        self._authentication = authentication
        self._environment = environment
        self._say = say
        self.least_bytes = 0
        """Bytes of the layers, which are compressed; 0 if they are not known."""

    def digest(self) -> str:
        """Return the digest of the image's manifest, or of its list for several platforms.

        Raises:
            RegistryUnreachableError: The registry gives no answer now.
            ImageError: There is no such image for the user.

        """
        raw = self._skopeo("inspect", "--raw", self._image.skopeo)
        self.least_bytes = size_of_layers(raw)
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"

    def bring(self, digest: str, part: Path, new: Path) -> None:
        """Make `rootfs` and the settings (`write_settings`) in the folder `new`, from what is pulled into `part`."""
        began = time.monotonic()
        layout, root = part / "oci", new / "rootfs"
        (part / "tmp").mkdir(mode=0o700, exist_ok=True)
        keep_whole_blobs(layout)
        of_all = f" of {self.least_bytes / _MIB:.0f} MiB" if self.least_bytes else ""
        self._say(f"pulls {self._image.skopeo}{of_all}")
        self._skopeo(
            *("copy", "--retry-times", str(_RETRIES)),
            *(self._pinned(digest), f"oci:{layout}:{_NAME}"),
            temporary=part / "tmp",
            progress=lambda: self._say(f"has {size_of(layout) / _MIB:.0f} MiB{of_all}"),
        )
        self._say("unpacks it")
        self._run(
            ["umoci", "raw", "unpack", "--rootless", "--image", f"{layout}:{_NAME}", str(root)],
            progress=lambda: self._say("still unpacks it"),
        )
        open_to_owner(root)
        root.chmod(root.stat().st_mode & 0o7777 | 0o700)
        write_settings(layout, new)
        (new / "reference").write_bytes(os.fsencode(self._image.skopeo))
        self._say(f"has brought it in {time.monotonic() - began:.0f} s")

    def _pinned(self, digest: str) -> str:
        """Return the image by its digest: what has been looked up is what is brought."""
        if self._image.registry is None:
            return self._image.skopeo
        return f"{self._image.repository}@{digest}"

    def _skopeo(
        self,
        verb: str,
        *arguments: str,
        temporary: Path | None = None,
        progress: Callable[[], None] | None = None,
    ) -> bytes:
        # Users' own images count as good as the registry's: whoever runs one runs it as the own user.
        own = ["skopeo", "--insecure-policy", *(["--tmpdir", str(temporary)] if temporary else []), verb]
        credentials = ["--authfile", f"/proc/self/fd/{self._authentication}"]
        return self._run([*own, *credentials, *arguments], progress=progress)

    def _run(self, command: Sequence[str], *, progress: Callable[[], None] | None = None) -> bytes:
        with (
            tempfile.TemporaryFile() as errors,
            tempfile.TemporaryFile() as output,
            subprocess.Popen(
                [*_DIES_WITH_IMPORTER, *command],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                close_fds=False,  # it has the file with credentials, and the store's lock as long as it lives
            ) as process,
        ):
            while True:
                try:
                    process.wait(_PROGRESS_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if progress:
                        progress()
            if process.returncode:
                errors.seek(0)
                raise _failure(command[0], errors.read().decode(errors="replace"))
            output.seek(0)
            return output.read()


def keep_whole_blobs(layout: Path) -> None:
    """Remove all from an OCI layout but blobs that have their digest: skopeo takes blobs that are there by their name.

    A node that goes down in the middle may leave files of the right size without their content.
    """
    for path in layout.glob("*"):
        if path.name != "blobs":
            path.unlink()  # skopeo writes the index anew, and reads a broken one before; the others are halves of blobs
    for blob in (layout / "blobs/sha256").glob("*"):
        with blob.open("rb") as content:
            whole = hashlib.file_digest(content, "sha256").hexdigest() == blob.name
        if not whole:
            blob.unlink()


def size_of_layers(manifest: bytes) -> int:
    """Return the bytes of all layers, or 0 if the manifest does not say: if it is odd, skopeo tells the user."""
    try:
        total = sum(int(layer["size"]) for layer in json.loads(manifest)["layers"])
    except _ODD:
        return 0
    return total if 0 < total < 1 << 63 else 0


def write_settings(layout: Path, folder: Path) -> None:
    """Write what the plugin needs of an image's configuration.

    These are variables and the words of the entry point, a zero byte after every one, and the directory.

    Raises:
        ImageError: The configuration has another form than that of OCI.

    """
    try:
        index = json.loads((layout / "index.json").read_text())
        manifest = _blob(layout, index["manifests"][-1]["digest"])
        config = _blob(layout, manifest["config"]["digest"]).get("config") or {}
        variables = "".join(f"{variable}\0" for variable in config.get("Env") or [] if "\0" not in variable).encode()
        entry_point = "".join(f"{word}\0" for word in config.get("Entrypoint") or [] if "\0" not in word).encode()
        directory = (config.get("WorkingDir") or "/").encode()
    except _ODD as error:
        message = (
            "the image's configuration is not one of OCI: its Env and Entrypoint are lists of texts, and its "
            "WorkingDir a text."
        )
        raise ImageError(message) from error
    (folder / "environment").write_bytes(variables)
    (folder / "workdir").write_bytes(directory)
    (folder / "entrypoint").write_bytes(entry_point)


def _failure(program: str, errors: str) -> ImageError:
    words = in_words(program, errors)
    unreachable = re.search(_UNREACHABLE, words, re.IGNORECASE) and not re.search(_REFUSED, words, re.IGNORECASE)
    return RegistryUnreachableError(words) if unreachable else ImageError(words)


def in_words(program: str, errors: str) -> str:
    """Return the last line of a program's errors without its log's marks, and what to do next."""
    lines = [line for line in errors.splitlines() if line.strip()] or ["it said nothing"]
    last = re.sub(r'^(FATA\[\d+\]\s*|time="[^"]*" level=\w+ msg=)', "", lines[-1]).strip().strip('"')
    hint = next((words for pattern, words in _HINTS.items() if re.search(pattern, last, re.IGNORECASE)), "")
    return f"{program}: {last}{'.' if hint else ''} {hint}".strip()


def _blob(layout: Path, digest: str) -> dict[str, Any]:
    algorithm, _, name = digest.partition(":")
    content: dict[str, Any] = json.loads((layout / "blobs" / algorithm / name).read_text())
    return content
