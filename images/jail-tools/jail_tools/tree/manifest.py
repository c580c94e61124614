"""What a tree had when it was populated: one JSON object a line, in order of paths."""

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jail_tools.files import write_atomically
from jail_tools.tree.entry import Entry, Kind

_ENCODER = json.JSONEncoder(separators=(",", ":"))


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Write a manifest, whole or not at all."""
    write_atomically(file, (line(entry) for entry in sorted(entries, key=lambda entry: entry.path)))


def read(file: Path) -> Iterator[Entry]:
    """Give the entries of a manifest, in order of their paths.

    Raises:
        ValueError: the file is not a manifest; the message names the line.
    """
    with file.open("rb") as stream:
        for number, text in enumerate(stream, 1):
            try:
                yield entry_of(json.loads(text))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{file}:{number}: not an entry of a manifest: {error!r}") from None


def line(entry: Entry) -> bytes:
    """Return one line. What says nothing for an entry's kind is left out; bytes that are not UTF-8 are escaped."""
    said: dict[str, Any] = {"path": entry.path, "kind": entry.kind.value}
    if entry.kind is not Kind.LINK:
        said |= {"mode": f"{entry.mode:04o}", "uid": entry.uid, "gid": entry.gid, "mtime_ns": entry.mtime_ns}
    if entry.kind is Kind.FILE:
        said |= {"size": entry.size, "sha256": entry.sha256}
    if entry.target:
        said["target"] = entry.target
    if entry.sparse:
        said["sparse"] = True
    if entry.xattrs:
        said["xattrs"] = {name: base64.b64encode(value).decode() for name, value in entry.xattrs}
    return _ENCODER.encode(said).encode() + b"\n"


def entry_of(said: dict[str, Any]) -> Entry:
    """Return the entry that a line says."""
    return Entry(
        path=said["path"],
        kind=Kind(said["kind"]),
        mode=int(said.get("mode", "0"), 8),
        uid=said.get("uid", 0),
        gid=said.get("gid", 0),
        mtime_ns=said.get("mtime_ns", 0),
        size=said.get("size", 0),
        target=said.get("target", ""),
        sparse=said.get("sparse", False),
        sha256=said.get("sha256", ""),
        xattrs=tuple((name, base64.b64decode(value)) for name, value in said.get("xattrs", {}).items()),
    )
