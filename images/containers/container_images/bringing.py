"""Bring an image with skopeo, and unpack it with umoci, as an ordinary user."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from container_images.image_reference import ImageReference
from container_images.image_settings import ODD, check_architecture, settings_of_layout, write_settings
from container_images.program_running import USER_HINTS, run_program
from container_images.store_cleaning import mib, open_to_owner, size_of

_NAME = "image"
"""Tag in the OCI layout of one image."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Architectures as images name them, by the kernel's name. Others have the same name, such as ppc64le."""

_RETRIES = 3


class ImageBringer:
    """Brings one image.

    Args:
        image: The image.
        authentication: Descriptor of the file with credentials.
        environment: Variables of the programs.
        say: Tells the user how far it is.
        hints: Next steps for words of a failed program. Default: those of a user.
        check_room: Called with the bytes that are still to be written at least, and every 10 s with 0. It raises
            ImageError to end the bringing. Default: nothing is checked.
        machine: Architecture whose image is wanted, as the kernel names it. Default: this machine's.

    """

    def __init__(
        self,
        image: ImageReference,
        authentication: int,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        *,
        hints: Mapping[str, str] = USER_HINTS,
        check_room: Callable[[int], None] = lambda _: None,
        machine: str = platform.machine(),
    ) -> None:
        self._image = image
        self._architecture = _ARCHITECTURES.get(machine, machine)
        self._authentication = authentication
        self._environment = environment
        self._say = say
        self._hints = hints
        self._check_room = check_room
        self.least_bytes = 0
        """Bytes of the layers, which are compressed; 0 if they are not known."""

    def digest(self) -> str:
        """Return the digest of the image's manifest, or of its list for several platforms.

        Raises:
            RegistryUnreachableError: The registry does not answer now.
            ImageError: There is no such image for the user.

        """
        # An archive of an OCI layout is unpacked: the default, /var/tmp, is not in the importer's root.
        unpacked = Path(self._environment["HOME"])
        raw = self._skopeo("inspect", "--raw", self._image.skopeo, temporary=unpacked)
        self.least_bytes = size_of_layers(raw)
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"

    def bring(self, digest: str, part: Path, new: Path) -> None:
        """Make `rootfs` and the settings (`write_settings`) in the folder `new`, from what is pulled into `part`.

        Raises:
            ImageError: The image cannot be pulled or unpacked, is for other processors, or there is no room for it.

        """
        began = time.monotonic()
        layout, root = part / "oci", new / "rootfs"
        (part / "tmp").mkdir(mode=0o700, exist_ok=True)
        keep_whole_blobs(layout)
        # Files are as large as the compressed layers, or larger.
        self._check_room(max(2 * self.least_bytes - size_of(layout), 0))
        of_all = f" of {mib(self.least_bytes)}" if self.least_bytes else ""
        self._say(f"pulls {self._image.skopeo}{of_all}")
        self._skopeo(
            *("copy", "--retry-times", str(_RETRIES)),
            *(self._pinned(digest), f"oci:{layout}:{_NAME}"),
            temporary=part / "tmp",
            progress=lambda: self._go_on(f"has {mib(size_of(layout))}{of_all}"),
        )
        check_architecture(layout, self._architecture)
        self._check_room(size_of(layout))
        self._say("unpacks it")
        run_program(
            ["umoci", "raw", "unpack", "--rootless", "--image", f"{layout}:{_NAME}", str(root)],
            self._environment,
            progress=lambda: self._go_on(f"has unpacked {mib(size_of(root))}"),
            hints=self._hints,
        )
        self._say("opens its files to their owner")
        open_to_owner(root)
        write_settings(new, settings_of_layout(layout))
        (new / "reference").write_bytes(os.fsencode(self._image.skopeo))
        self._say(f"has brought it in {time.monotonic() - began:.0f} s")

    def _go_on(self, text: str) -> None:
        self._check_room(0)
        self._say(text)

    def _pinned(self, digest: str) -> str:
        """Return the image with its digest, so that what was looked up is what is pulled."""
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
        own = ["skopeo", "--insecure-policy", "--override-arch", self._architecture]
        own += [*(["--tmpdir", str(temporary)] if temporary else []), verb]
        credentials = ["--authfile", f"/proc/self/fd/{self._authentication}"]
        return run_program([*own, *credentials, *arguments], self._environment, progress=progress, hints=self._hints)


def keep_whole_blobs(layout: Path) -> None:
    """Remove everything from an OCI layout except blobs that match their digest, as skopeo trusts a blob by its name.

    A node that goes down in the middle may leave files of the right size without their content.
    """
    for path in layout.glob("*"):
        if path.name != "blobs":
            path.unlink()  # skopeo reads the old index first, even a broken one; other files are halves of blobs
    for blob in (layout / "blobs/sha256").glob("*"):
        with blob.open("rb") as content:
            whole = hashlib.file_digest(content, "sha256").hexdigest() == blob.name
        if not whole:
            blob.unlink()


def size_of_layers(manifest: bytes) -> int:
    """Return the bytes of all layers, or 0 if the manifest does not state them. skopeo reports a malformed manifest."""
    try:
        total = sum(int(layer["size"]) for layer in json.loads(manifest)["layers"])
    except ODD:
        return 0
    return total if 0 < total < 1 << 63 else 0
