"""The manifest of a tree as populated: one JSON object per line, in order of paths."""

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jail_tools.files import write_atomically
from jail_tools.tree.entry import Entry, EntryKind

_ENCODER = json.JSONEncoder(separators=(",", ":"))


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Write a manifest atomically."""
    write_atomically(file, (line(entry) for entry in sorted(entries, key=lambda entry: entry.path)))


def read(file: Path) -> Iterator[Entry]:
    """Yield the entries of a manifest, in order of their paths.

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
    """Return one line, without fields that have no meaning for the kind. Bytes that are not UTF-8 are escaped."""
    fields: dict[str, Any] = {"path": entry.path, "kind": entry.kind.value}
    if entry.kind is not EntryKind.LINK:
        fields |= {"mode": f"{entry.mode:04o}", "uid": entry.uid, "gid": entry.gid, "mtime_ns": entry.mtime_ns}
    if entry.kind is EntryKind.FILE:
        fields |= {"size": entry.size, "sha256": entry.sha256}
    if entry.target:
        fields["target"] = entry.target
    if entry.sparse:
        fields["sparse"] = True
    if entry.xattrs:
        fields["xattrs"] = {name: base64.b64encode(value).decode() for name, value in entry.xattrs}
    return _ENCODER.encode(fields).encode() + b"\n"


def entry_of(fields: dict[str, Any]) -> Entry:
    """Return the entry that a line describes."""
    return Entry(
        path=fields["path"],
        kind=EntryKind(fields["kind"]),
        mode=int(fields.get("mode", "0"), 8),
        uid=fields.get("uid", 0),
        gid=fields.get("gid", 0),
        mtime_ns=fields.get("mtime_ns", 0),
        size=fields.get("size", 0),
        target=fields.get("target", ""),
        sparse=fields.get("sparse", False),
        sha256=fields.get("sha256", ""),
        xattrs=tuple((name, base64.b64decode(value)) for name, value in fields.get("xattrs", {}).items()),
    )
