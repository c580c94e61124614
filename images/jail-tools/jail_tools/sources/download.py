"""Download of a file that is read as it arrives; its checksum is checked at the end."""

import hashlib
import http.client
import io
import os
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from types import TracebackType
from typing import Self

from jail_tools.errors import RefusedError, TryAgainError

CHUNK_BYTES = 256 * 1024
TIMEOUT_SECONDS = 60.0
"""Time without data after which a download fails."""
LATER = {408, 425, 429}
"""Statuses below 500 that a retry may overcome."""


class Download:
    """A download under way, in a thread: `stream` gives its bytes in order, `finish` checks them."""

    def __init__(self, url: str, sha256: str) -> None:
        """Open the download at the server.

        Args:
            url: http or https. Messages show it without what may be secret in it.
            sha256: the file's checksum, 64 hexadecimal digits.

        Raises:
            RefusedError: the URL or the checksum is none, or the server refuses.
            TryAgainError: the server does not answer.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise RefusedError(f"--sha256: got {sha256!r}. A checksum is 64 hexadecimal digits (0-9, a-f).")
        self.name = without_secrets(url)
        self._wanted = sha256
        self._got = hashlib.sha256()
        self._size = 0
        self._broken = ""
        self._response = self._ask(url)
        length = self._response.headers.get("Content-Length")
        self.length = int(length) if length else None
        """Length in bytes; None if the server does not announce it."""
        reading, writing = os.pipe()
        self.stream = io.BufferedReader(io.FileIO(reading), CHUNK_BYTES)
        self._writing = io.FileIO(writing, "w")
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stream.close()  # the thread finds a broken pipe and ends
        self._thread.join(TIMEOUT_SECONDS)

    def finish(self, complaint: str = "") -> None:
        """Read the rest and compare the checksum.

        Args:
            complaint: error in the content, if any: the download may have caused it, or the file itself.

        Raises:
            TryAgainError: the download broke off.
            RefusedError: the file is another one, or is the right one and still wrong.
        """
        while self.stream.read(CHUNK_BYTES):
            pass
        self._thread.join()
        if self._broken:
            raise TryAgainError(f"{self.name} broke off after {self._size:,} bytes: {self._broken}.")
        got = self._got.hexdigest()
        if got != self._wanted:
            raise RefusedError(
                f"{self.name} has sha256 {got}, but {self._wanted} is declared. Declare or serve the right one."
            )
        if complaint:
            raise RefusedError(f"{self.name} cannot be unpacked: {complaint}.")

    def received(self) -> int:
        """Return the number of bytes received."""
        return self._size

    def _ask(self, url: str) -> http.client.HTTPResponse:
        if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
            raise RefusedError(f"--tarball: got {self.name!r}. It must begin with http:// or https://.")
        try:
            response = urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS)  # noqa: S310 - the scheme was looked at
        except urllib.error.HTTPError as error:
            error.close()
            message = f"{self.name}: the server answers {error.code} {error.reason}."
            if error.code >= 500 or error.code in LATER:
                raise TryAgainError(message) from None
            raise RefusedError(message) from None
        except (OSError, http.client.HTTPException) as error:
            raise TryAgainError(f"{self.name}: the server cannot be reached: {error}.") from None
        except ValueError as error:
            raise RefusedError(f"--tarball: {self.name!r} is not a URL: {error}.") from None
        if not isinstance(response, http.client.HTTPResponse):
            raise TypeError(response)
        return response

    def _receive(self) -> None:
        try:
            with self._writing, self._response:
                while chunk := self._response.read(CHUNK_BYTES):
                    self._got.update(chunk)
                    self._size += len(chunk)
                    view = memoryview(chunk)
                    while view:
                        view = view[self._writing.write(view) :]
                if self.length is not None and self._size < self.length:
                    self._broken = f"{self.length:,} bytes were announced"
        except (OSError, http.client.HTTPException) as error:
            self._broken = str(error) or type(error).__name__


def without_secrets(url: str) -> str:
    """Return a URL without the parts that may be secret: user, password and query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))
