"""Headers of tar: a member's path, times and attributes. Names that lead out of the tree are refused."""

import base64
import tarfile
import urllib.parse
from decimal import Decimal
from typing import Self

from jail_tools.errors import RefusedError
from jail_tools.tree.attributes import SPACES, Xattrs
from jail_tools.tree.entry import Entry, EntryKind

_STAR = "SCHILY.xattr."
_LIBARCHIVE = "LIBARCHIVE.xattr."
ACLS = {"SCHILY.acl.access": "system.posix_acl_access", "SCHILY.acl.default": "system.posix_acl_default"}
"""Keywords of pax headers that hold an ACL as text, and the attributes that the kernel has for them."""


class Member(tarfile.TarInfo):
    """A member of an archive. Unlike in tarfile, a damaged header is always an error, and never the archive's end."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Read the next header."""
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if type(error).__name__ in _ENDS:
                raise
            raise tarfile.ReadError(f"{error} at byte {archive.offset:,}") from None


_ENDS = {"EOFHeaderError", "EmptyHeaderError"}
"""Names of tarfile's private errors at a regular end: two blocks of zeros, or the end of the file."""


class Archive(tarfile.TarFile):
    """An archive that is read once, from start to end."""

    members: list[tarfile.TarInfo]
    """All members so far, as tarfile remembers them."""


def name_of(member: tarfile.TarInfo) -> str:
    """Return a member's name. GNU tar writes another one for sparse files, which tarfile sometimes returns."""
    return member.pax_headers.get("GNU.sparse.name", member.name)


def path_of(name: str) -> str:
    """Return the path in the tree for a name in an archive; "" is the tree's root.

    Raises:
        RefusedError: the name leads out of the tree.
    """
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in name:
        raise RefusedError(
            f"the archive has a member {name!r}, whose name leads out of the tree. Nothing of it was written."
        )
    return "/".join(parts)


def kind_of(member: tarfile.TarInfo) -> EntryKind | None:
    """Return the kind of a member; None for a kind that trees do not contain."""
    if member.isreg():
        return EntryKind.FILE
    if member.isdir():
        return EntryKind.DIRECTORY
    if member.issym():
        return EntryKind.SYMLINK
    if member.islnk():
        return EntryKind.LINK
    return EntryKind.FIFO if member.isfifo() else None


def entry_of(path: str, kind: EntryKind, member: tarfile.TarInfo) -> Entry:
    """Return the entry of a member, without its ACLs and checksum."""
    return Entry(
        path,
        kind,
        mode=member.mode & 0o7777,
        uid=member.uid,
        gid=member.gid,
        mtime_ns=mtime_ns(member),
        size=member.size if kind is EntryKind.FILE else 0,
        target=member.linkname if kind is EntryKind.SYMLINK else "",
        sparse=kind is EntryKind.FILE and member.issparse(),
        xattrs=xattrs(member),
    )


def mtime_ns(member: tarfile.TarInfo) -> int:
    """Return a member's modification time in ns since 1970, as precise as in the archive."""
    exact = member.pax_headers.get("mtime")
    return int(Decimal(exact if exact is not None else member.mtime) * 1_000_000_000)


def xattrs(member: tarfile.TarInfo) -> Xattrs:
    """Return the extended attributes in a member's pax headers, as star, GNU tar or bsdtar write them."""
    found = {}
    for keyword, value in member.pax_headers.items():
        if keyword.startswith(_STAR):
            found[keyword.removeprefix(_STAR)] = value.encode("utf-8", "surrogateescape")
        elif keyword.startswith(_LIBARCHIVE):
            name = urllib.parse.unquote(keyword.removeprefix(_LIBARCHIVE))
            found.setdefault(name, base64.b64decode(value + "=" * (-len(value) % 4)))
    return tuple((name, value) for name, value in sorted(found.items()) if name.startswith(SPACES))


def acls(member: tarfile.TarInfo) -> dict[str, str]:
    """Return the ACLs in a member's pax headers as text, by the name of the kernel's attribute."""
    return {name: member.pax_headers[keyword] for keyword, name in ACLS.items() if member.pax_headers.get(keyword)}
