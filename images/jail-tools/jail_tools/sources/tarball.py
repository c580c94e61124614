"""A tarball as the source of a tree, unpacked as it arrives. Complete files survive a broken stream."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zlib

from jail_tools.copying.copier import NEW_FILE, create, make
from jail_tools.copying.structure import link_file, make_folders
from jail_tools.copying.volume import Volume
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.files import Walker, split
from jail_tools.progress import MIB, Progress
from jail_tools.sources import TreeContent, acl, tar_header
from jail_tools.sources.download import Download
from jail_tools.sources.tar_header import Archive, Member
from jail_tools.tree import content
from jail_tools.tree.attributes import write_attributes, write_file_attributes
from jail_tools.tree.compare import FILE
from jail_tools.tree.entry import Entry, EntryKind

READ_BYTES = 1024 * 1024
SPOILT = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""Errors of reading a damaged archive, in addition to OSError from the bz2 module."""


def fill(url: str, sha256: str, volume: Volume, began_ns: int) -> TreeContent:
    """Unpack a tarball into a tree.

    Args:
        url: URL of the tarball.
        sha256: the tarball's checksum.
        volume: the volume to unpack it to.
        began_ns: time of folders that the archive does not name.

    Raises:
        RefusedError: it is another file than declared, or no tarball, or leads out of the tree.
        TryAgainError: the stream broke, or the volume does not take what comes.
    """
    with Download(url, sha256) as download:
        unpacker = Unpacker(volume, began_ns, download)
        try:
            unpacker.unpack()
        except SPOILT as error:
            download.finish(complaint=str(error) or type(error).__name__)
        download.finish()
    return unpacker.result()


def decompressed(stream: "io.BufferedReader[io.FileIO]") -> io.BufferedIOBase:
    """Return a stream's content, decompressed from gzip, xz, bzip2 or nothing.

    Raises:
        RefusedError: it is compressed with zstd, which Python cannot read yet.
    """
    begins = stream.peek(6)[:6]
    if begins.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if begins.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(stream)
    if begins.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if begins.startswith(b"\x28\xb5\x2f\xfd"):
        raise RefusedError("the tarball is compressed with zstd. Use gzip, xz, bzip2, or no compression.")
    return stream


class Unpacker:
    """Writes the members of an archive into a tree, never through a symbolic link."""

    def __init__(self, volume: Volume, began_ns: int, download: Download) -> None:
        """Set the tree to unpack into."""
        self._volume = volume
        self._began_ns = began_ns
        self._download = download
        self._walker = Walker(volume.tree)
        self._entries: dict[str, Entry] = {}
        self._acls: dict[str, dict[str, str]] = {}
        self._linked: set[str] = set()
        self._filled = TreeContent()
        self._progress = Progress("populate")

    def unpack(self) -> None:
        """Unpack all members."""
        stream = decompressed(self._download.stream)
        with Archive.open(
            fileobj=stream, mode="r|", bufsize=READ_BYTES, tarinfo=Member, encoding="utf-8", errors="surrogateescape"
        ) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # tarfile remembers all of them
                self._take(archive, member)
                self._tell()

    def result(self) -> TreeContent:
        """Return the content of the tree after setting its ACLs, which needs all of /etc."""
        self._give_acls()
        self._walker.close()
        self._tell(now=True)
        self._filled.entries = list(self._entries.values())
        return self._filled

    def _tell(self, *, now: bool = False) -> None:
        received = self._download.received() // MIB
        length = self._download.length
        of_length = "" if length is None else f" of {length // MIB:,}"
        self._progress.report(f", {received:,}{of_length} MiB of the tarball", now=now)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Unpack one member into the tree."""
        path = tar_header.path_of(tar_header.name_of(member))
        kind = tar_header.kind_of(member)
        if kind is None:
            self._filled.left_out.append(f"{path}: {'device' if member.isdev() else 'unknown kind'}")
        elif path:
            entry = tar_header.entry_of(path, kind, member)
            entry = self._volume.timed(entry)._replace(xattrs=self._filled.kept(entry.xattrs, self._volume))
            try:
                self._write(archive, member, entry)
            except OSError as error:
                raise TryAgainError(f"{path} cannot be written: {reason(error)}") from None

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry) -> None:
        self._make_parents(entry.path)
        parent, name = split(entry.path)
        folder = self._walker.open(parent)
        if entry.path in self._entries:
            self._replace(entry, folder, name)
        if entry.kind is EntryKind.DIRECTORY:
            make_folders(self._walker, [entry])
        elif entry.kind is EntryKind.LINK:
            entry = self._link(member, entry, folder, name)
        elif entry.kind is EntryKind.FILE:
            entry = self._write_file(archive, member, entry, folder, name)
        elif create(folder, name, entry, lambda: make(folder, name, entry)):
            write_attributes(folder, name, entry)
        self._entries[entry.path] = entry
        self._acls[entry.path] = tar_header.acls(member)
        self._progress.add_files(entry.kind is not EntryKind.DIRECTORY)

    def _make_parents(self, path: str) -> None:
        """Make the folders above a path that the archive has not listed."""
        above = []
        parent, _ = split(path)
        while parent and parent not in self._entries:
            above.append(Entry(parent, EntryKind.DIRECTORY, 0o755, mtime_ns=self._began_ns))
            parent, _ = split(parent)
        if parent and self._entries[parent].kind is not EntryKind.DIRECTORY:
            raise RefusedError(
                f"the archive has a member {path!r} below {parent!r}, which is a {self._entries[parent].kind}."
            )
        above.reverse()
        make_folders(self._walker, above)
        self._entries.update((entry.path, entry) for entry in above)

    def _replace(self, entry: Entry, folder: int, name: str) -> None:
        """Remove an earlier member of the same path: the later one counts."""
        earlier = self._entries[entry.path]
        if EntryKind.DIRECTORY in {earlier.kind, entry.kind} and earlier.kind is not entry.kind:
            raise RefusedError(f"the archive has {entry.path!r} twice, as a {earlier.kind} and as a {entry.kind}.")
        if entry.path in self._linked:
            raise RefusedError(f"the archive has {entry.path!r} twice, with hard links to the first of them.")
        if entry.kind is not EntryKind.DIRECTORY:
            os.unlink(name, dir_fd=folder)

    def _link(self, member: tarfile.TarInfo, entry: Entry, folder: int, name: str) -> Entry:
        first = self._entries.get(tar_header.path_of(member.linkname))
        if first is not None and first.kind is EntryKind.LINK:
            first = self._entries[first.target]
        if first is None or first.kind is EntryKind.DIRECTORY or first.path == entry.path:
            raise RefusedError(
                f"the archive has a hard link {entry.path!r} to {member.linkname!r}, which is not a file before it."
            )
        self._linked.add(first.path)
        first_folder, first_name = split(first.path)
        walker = Walker(self._volume.tree)
        link_file(walker.open(first_folder), first_name, folder, name)
        walker.close()
        return Entry(entry.path, EntryKind.LINK, target=first.path)

    def _write_file(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry, folder: int, name: str
    ) -> Entry:
        data = archive.extractfile(member)
        if data is None:
            raise tarfile.ReadError(f"{entry.path} has no content")
        target = create(folder, name, entry, lambda: os.open(name, NEW_FILE, 0o600, dir_fd=folder))
        try:
            sha256 = content.receive(data, target, entry.size, sparse=entry.sparse, pace=self._pace)
            if target is not None:
                write_file_attributes(target, entry)
        finally:
            if target is not None:
                os.close(target)
        return entry._replace(sha256=sha256)

    def _pace(self, size: int) -> None:
        self._volume.limit.pace(size)
        self._progress.add_bytes(size)
        self._tell()

    def _give_acls(self) -> None:
        """Set the ACLs of files and folders. They may name the tree's own users and groups."""
        users, groups = self._numbers("etc/passwd"), self._numbers("etc/group")
        for path, texts in self._acls.items():
            for name, text in texts.items():
                try:
                    value = acl.attribute_of(text, users, groups)
                except ValueError as error:
                    raise RefusedError(f"{self._download.name}: {path}: {error}.") from None
                entry = self._entries[path]
                xattrs = {**dict(entry.xattrs), **dict(self._filled.kept(((name, value),), self._volume))}
                self._entries[path] = entry = entry._replace(xattrs=tuple(sorted(xattrs.items())))
                parent, last = split(path)
                if entry.kind is not EntryKind.DIRECTORY:
                    write_attributes(self._walker.open(parent), last, entry)

    def _numbers(self, path: str) -> dict[str, int]:
        """Return the ids of the names in the tree's passwd or group; empty if the file is missing."""
        if path not in self._entries or self._entries[path].kind is not EntryKind.FILE:
            return {}
        parent, name = split(path)
        file = os.open(name, FILE, dir_fd=self._walker.open(parent))
        with os.fdopen(file, encoding="utf-8", errors="surrogateescape") as lines:
            records = [line.split(":") for line in lines]
        return {record[0]: int(record[2]) for record in records if len(record) > 2 and record[2].isdecimal()}
