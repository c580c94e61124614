"""Sources of a tree: a root filesystem or a tarball. Both return a `TreeContent`."""

from collections import Counter
from dataclasses import dataclass, field

from jail_tools.copying.volume import Volume
from jail_tools.tree.attributes import Xattrs, kept, lost
from jail_tools.tree.entry import Entry


@dataclass
class TreeContent:
    """Content that a source put into a tree."""

    entries: list[Entry] = field(default_factory=list)
    """All entries, with checksums and extended attributes. Folders do not have their own attributes yet."""
    left_out: list[str] = field(default_factory=list)
    """Paths that were left out, with the reason: sockets, devices, mounts."""
    unkept: Counter[str] = field(default_factory=Counter)
    """Numbers of files that lost extended attributes, by the class that the volume does not keep."""

    def kept(self, xattrs: Xattrs, volume: Volume) -> Xattrs:
        """Return the extended attributes that a volume keeps, and count the others."""
        if xattrs:
            self.unkept.update(lost(xattrs, volume.spaces))
        return kept(xattrs, volume.spaces)
