"""Properties that a jail needs of a volume: the check, the consequence if one is missing, and the remedy."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jail_tools.probing import extended, mounted, names_in_folders, open_files, owners_and_modes, speed
from jail_tools.probing.seen import FindingLevel, Seen

Check = Callable[[Path], Seen]


@dataclass(frozen=True)
class VolumeProperty:
    """A property of a volume."""

    name: str
    check: Check
    """Function that tests the property in an empty directory. An error of the volume is also a finding."""
    level: FindingLevel
    """Level of the finding if the property is missing."""
    needed: str
    consequence: str
    cure: str
    acceptable: bool = True
    """False if filling a tree fails without the property, so that no user can accept the finding."""


_SERVER = "Choose a file system of Linux or NFS for the claim, not SMB or an object store."
_SQUASH = "Export with no_root_squash; on EFS take a volume of the file system in place of an access point."
_FLOCK = "Mount Lustre with flock, NFS with version 4, without nolock."

ROOM = VolumeProperty(
    "room",
    speed.room,
    FindingLevel.REFUSED,
    f"{speed.LEAST_MIB} MiB and {speed.LEAST_FILES:,} files; {speed.ROOM_MIB:,} MiB and {speed.ROOM_FILES:,} for a "
    "root filesystem",
    "A root filesystem, or the second one of an upgrade, does not fit.",
    "Enlarge the volume, or its number of inodes.",
    acceptable=False,
)

PROPERTIES = (
    ROOM,
    VolumeProperty(
        "owners",
        owners_and_modes.owners,
        FindingLevel.REFUSED,
        "root gives files to any owner",
        "All files belong to one user: no tree can be filled, and homes are open to all users.",
        _SQUASH,
        acceptable=False,
    ),
    VolumeProperty(
        "modes",
        owners_and_modes.modes,
        FindingLevel.REFUSED,
        "all bits are kept, set-user-ID and sticky bits too",
        "The copy of a root filesystem never matches its source.",
        _SERVER,
        acceptable=False,
    ),
    VolumeProperty(
        "times",
        owners_and_modes.times,
        FindingLevel.REFUSED,
        f"times of files, to {owners_and_modes.STEP_SECONDS} seconds",
        "The copy of a root filesystem never matches its source.",
        _SERVER,
        acceptable=False,
    ),
    VolumeProperty(
        "symbolic_links",
        names_in_folders.symbolic_links,
        FindingLevel.REFUSED,
        f"links to anywhere, of {names_in_folders.TARGET_BYTES:,} bytes",
        "/bin and /lib of distributions, and the link to the active tree, do not work.",
        _SERVER,
        acceptable=False,
    ),
    VolumeProperty(
        "folder_flush",
        open_files.flushed_folder,
        FindingLevel.REFUSED,
        "fsync of a directory",
        "A marker of a whole tree can be lost in a crash.",
        _SERVER,
        acceptable=False,
    ),
    VolumeProperty(
        "hard_links",
        names_in_folders.hard_links,
        FindingLevel.REFUSED,
        "a second name of a file, in another directory",
        "A source with hard links cannot be copied; dpkg replaces no file.",
        _SERVER,
    ),
    VolumeProperty(
        "case",
        names_in_folders.case,
        FindingLevel.REFUSED,
        "names that differ only in case",
        "Files of a source hide each other.",
        "Choose a file system that distinguishes case.",
    ),
    VolumeProperty(
        "characters",
        names_in_folders.characters,
        FindingLevel.REFUSED,
        "any byte but / and NUL in names",
        "Packages' files such as libc6:amd64.list cannot be made.",
        _SERVER,
    ),
    VolumeProperty(
        "unlink_open",
        open_files.unlink_open,
        FindingLevel.REFUSED,
        "removed files stay for processes that have them open",
        "A removed package breaks running jobs.",
        _SERVER,
    ),
    VolumeProperty(
        "replace_open",
        open_files.replace_open,
        FindingLevel.REFUSED,
        "rename over an open file, whose readers keep the old one",
        "An updated library breaks running jobs; files of accounts cannot be replaced as a whole.",
        _SERVER,
    ),
    VolumeProperty(
        "execution",
        mounted.execution,
        FindingLevel.REFUSED,
        "programs and libraries start from it",
        "No program of the jail starts in the admin shell (make admin).",
        "Remove noexec from the mountOptions of the StorageClass or PersistentVolume.",
    ),
    VolumeProperty(
        "flock",
        open_files.flock,
        FindingLevel.REFUSED,
        "locks of whole files (flock)",
        "No other tree can become active, and two fillings do not exclude each other.",
        _FLOCK,
    ),
    VolumeProperty(
        "record_locks",
        open_files.record_locks,
        FindingLevel.REFUSED,
        "locks of records (fcntl)",
        "dpkg, rpm and SQLite do not work.",
        _FLOCK,
    ),
    VolumeProperty(
        "shared_locks",
        mounted.shared_locks,
        FindingLevel.WARNING,
        "locks between machines: no option that keeps them on one",
        "Two nodes can hold the same lock: SQLite databases and package databases can be damaged.",
        "Remove nolock, local_lock, localflock or nobrl from the mountOptions; Lustre takes flock.",
    ),
    VolumeProperty(
        "shared_map",
        open_files.shared_map,
        FindingLevel.WARNING,
        "maps into memory that processes share and write to",
        "Databases such as SQLite in WAL mode and LMDB, and apt's cache, fail or are slow.",
        "Mount FUSE file systems without direct_io, 9p with cache=mmap.",
    ),
    VolumeProperty(
        "hard_link_limit",
        names_in_folders.many_hard_links,
        FindingLevel.WARNING,
        f"{names_in_folders.LINKS} names of a file",
        "Package caches that link into many environments (conda, uv, pnpm) fail.",
        "Make these tools copy: UV_LINK_MODE=copy, conda config --set always_copy true.",
    ),
    VolumeProperty(
        "symlink_links",
        names_in_folders.hard_links_to_symlinks,
        FindingLevel.WARNING,
        "a second name of a symbolic link",
        "A source that has such links cannot be copied; cp -al fails on symbolic links.",
        "Make the source's image without hard links to symbolic links, or choose another system.",
    ),
    VolumeProperty(
        "name_length",
        names_in_folders.length,
        FindingLevel.WARNING,
        f"names of {names_in_folders.NAME_BYTES} bytes",
        "A source with longer names cannot be copied.",
        "Choose a volume without encryption of names (ecryptfs, gocryptfs).",
    ),
    VolumeProperty(
        "fifos_and_sockets",
        names_in_folders.fifos_and_sockets,
        FindingLevel.WARNING,
        "fifos and sockets",
        "gpg-agent, tmux and editors that keep a socket in the home fail.",
        "Make these programs use /tmp, or mount another volume at /home.",
    ),
    VolumeProperty(
        "user_attributes",
        extended.user_attributes,
        FindingLevel.WARNING,
        "extended attributes user.*",
        "Attributes of a source's files are left out, and programs that set some fail.",
        "Take NFS 4.2 on both ends (Linux 5.9), enable-xattr on JuiceFS.",
    ),
    VolumeProperty(
        "access_lists",
        extended.access_lists,
        FindingLevel.WARNING,
        "access control lists of POSIX",
        "setfacl fails: directories are shared by groups alone.",
        "Take CephFS, Lustre, WEKA or Nebius for projects that share by access lists.",
    ),
    VolumeProperty(
        "capabilities",
        extended.capabilities,
        FindingLevel.NOTED,
        "nothing: sessions and jobs have no-new-privileges",
        "File capabilities are left out.",
        "",
    ),
    VolumeProperty(
        "flags",
        mounted.flags,
        FindingLevel.NOTED,
        "nothing: a view is nosuid and nodev",
        "Set-user-ID programs have no effect in the admin shell either.",
        "",
    ),
    VolumeProperty(
        "flush_latency",
        speed.flushes,
        FindingLevel.WARNING,
        f"a median of {speed.SLOW_FLUSH_MS:.0f} ms (dpkg flushes each file that it unpacks)",
        "Installing packages and committing to databases are slow.",
        "Take a faster tier, or install packages in the image and not in the jail.",
    ),
    VolumeProperty(
        "file_creation",
        speed.new_files,
        FindingLevel.WARNING,
        f"{speed.SLOW_FILES_PER_SECOND} files a second (a root filesystem of 60,000 in 5 minutes)",
        "Filling a tree and creating Python environments are slow.",
        "Take a faster tier; keep environments in few large files (squashfs, conda-pack).",
    ),
)

EMPTIED = "emptied"
"""Finding of a claim without the jail that was filled before. It is about content, and so not in `PROPERTIES`."""

ACCEPTABLE = frozenset(
    [
        EMPTIED,
        *(
            volume_property.name
            for volume_property in PROPERTIES
            if volume_property.acceptable and volume_property.level is not FindingLevel.NOTED
        ),
    ]
)
"""Findings that a user may accept."""
