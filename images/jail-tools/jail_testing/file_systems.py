"""Small real file systems: of the kernel on loop devices and in memory, and in user space (FUSE)."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.debian_packages import missing_with_requirements, unpacked_packages
from tools.kube.debs import Unpacked

PACKAGES = ("bindfs", "btrfs-progs", "e2fsprogs", "exfat-fuse", "exfatprogs", "fuse2fs", "mount", "xfsprogs")
_SECONDS = 60


@dataclass(frozen=True)
class FileSystem:
    """A file system that commands make and mount.

    In the commands, `{image}` is a file of the size, `{device}` a loop device for it, `{below}` an empty directory, and
    `{mount}` the mount point.
    """

    commands: tuple[str, ...]
    needs: str
    """File system type that the kernel must support (/proc/filesystems)."""
    size_mib: int = 64


EXT4 = FileSystem(("mkfs.ext4 -q {image}", "mount -o loop {image} {mount}"), "ext4")
XFS = FileSystem(("mkfs.xfs -q {image}", "mount -o loop {image} {mount}"), "xfs", 300)
BTRFS = FileSystem(("mkfs.btrfs -q {image}", "mount -o loop {image} {mount}"), "btrfs", 110)
FEW_LINKS = FileSystem(("mkfs.btrfs -q -n 4096 -O ^extref {image}", "mount -o loop {image} {mount}"), "btrfs", 110)
OVERLAY = FileSystem(
    (
        "mkdir {below}/lower {below}/upper {below}/work",
        "mount -t overlay -o lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work overlay {mount}",
    ),
    "overlay",
)
FUSE_EXT4 = FileSystem(("mkfs.ext4 -q {image}", "fuse2fs {image} {mount}"), "fuse")
EXFAT = FileSystem(("mkfs.exfat {image}", "mount.exfat-fuse {device} {mount}"), "fuseblk")


def in_memory_with(options: str) -> FileSystem:
    """Return a tmpfs with mount options."""
    return FileSystem((f"mount -t tmpfs -o {options} none {{mount}}",), "tmpfs")


NO_ATTRIBUTES = FileSystem(("mount -t ramfs none {mount}",), "ramfs")


def passed_through(*options: str) -> FileSystem:
    """Return a directory passed through user space, with bindfs options that remove a property."""
    return FileSystem((f"bindfs {' '.join(options)} {{below}} {{mount}}",), "fuse")


def numbers_names() -> bool:
    """Return True if fuse2fs gives every name of a file its own inode number, as on Debian 13."""
    return "fuse2fs 1.47.2 " in _about("fuse2fs", "-V")


def takes_direct_io() -> bool:
    """Return True if bindfs accepts `direct_io`, which FUSE 3 does not have."""
    return "linked version 2." in _about("bindfs", "--fuse-version")


@contextmanager
def mounted(system: FileSystem, folder: Path) -> Iterator[Path]:
    """Mount a file system below an empty folder, and unmount it at the end.

    Raises:
        AssertionError: the machine cannot mount it; with the reason and the cure.
    """
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    if system.needs not in known:
        raise AssertionError(
            f"The kernel of this machine does not know {system.needs}. Load its module (modprobe {system.needs}), "
            "or run the tests on a machine with it."
        )
    places = {name: folder / name for name in ("image", "below", "mount")}
    places["below"].mkdir()
    places["mount"].mkdir()
    with places["image"].open("wb") as image:
        image.truncate(system.size_mib * 2**20)
    with ExitStack() as stack:
        device = ""
        if any("{device}" in command for command in system.commands):
            device = _run(f"losetup --find --show {places['image']}").strip()
            stack.callback(_run, f"losetup --detach {device}")
        for command in system.commands:
            _run(command.format(device=device, **places))
        stack.callback(_run, f"umount --lazy {places['mount']}")
        yield places["mount"]


def _run(command: str) -> str:
    done = subprocess.run(
        command.split(), env=_environment(), capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        raise AssertionError(
            f"`{command}` gave {done.returncode}: {done.stderr.strip()}\nTests of file systems need root with "
            "SYS_ADMIN, free loop devices (/dev/loop*) and /dev/fuse."
        )
    return done.stdout


def _about(*command: str) -> str:
    """Return what a program prints about itself."""
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False, timeout=_SECONDS)
    return done.stdout + done.stderr


@cache
def _environment() -> dict[str, str]:
    """Return the variables with which the test's programs are found."""
    root = unpacked_packages("file-systems", PACKAGES, missing_with_requirements(PACKAGES))
    return {**os.environ, **Unpacked(root).environment}
