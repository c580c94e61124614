"""Sources of a tree: a root filesystem or a tarball. Each returns a `TreeContent`."""

from collections import Counter
from dataclasses import dataclass, field

from jail_tools.copying.volume import Volume
from jail_tools.tree.attributes import Xattrs, kept, lost
from jail_tools.tree.entry import Entry


@dataclass
class TreeContent:
    """Content that a source brought into a tree."""

    entries: list[Entry] = field(default_factory=list)
    """All of it, with checksums and extended attributes. Folders have not got their own attributes yet."""
    left_out: list[str] = field(default_factory=list)
    """Sockets and devices."""
    unkept: Counter[str] = field(default_factory=Counter)
    """Files that lost extended attributes, by the class that the volume does not keep."""

    def kept(self, xattrs: Xattrs, volume: Volume) -> Xattrs:
        """Return those extended attributes that a volume keeps, and count the others."""
        if xattrs:
            self.unkept.update(lost(xattrs, volume.spaces))
        return kept(xattrs, volume.spaces)
