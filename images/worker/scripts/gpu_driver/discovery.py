"""Find a GPU driver among the mounts of the container runtime.

A runtime (NVIDIA's hook, CDI, a device plugin) mounts a driver into a container, file by file or as a folder, at places
that differ between runtimes, distributions and versions. So no list of names is used: each mount counts, but for the
pod's own volumes and what is in /dev, /proc and /sys. Content and place decide:

- a shared library (ELF without an interpreter) goes to lib64, one of 32 bits to lib, as in NVIDIA's images;
- a program (ELF with an interpreter, or a script, that may be executed) goes to bin;
- a file of /usr/share goes to share, and a text of /etc that names one of the libraries, such as a Vulkan
  manifest, to etc;
- nothing else: a token, a key or the pod's /etc/hosts is none of these.

Of a folder the same is taken from where libraries and programs lie in it. A folder with a C library or an os-release is
the root of a whole system: of it only what carries the version of its libcuda counts. Symbolic links that lead to a
library stay names of that library. What others than root may write to is left out.
"""

import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_CLOSED = ("dev", "proc", "sys")
_LARGEST_TEXT_BYTES = 1 << 16
_TRIPLET = f"{os.uname().machine}-linux-gnu"
_LIBRARY_FOLDERS = ("", "lib", "lib64", f"lib/{_TRIPLET}", "usr/lib", "usr/lib64", f"usr/lib/{_TRIPLET}")
_PROGRAM_FOLDERS = ("", "bin", "sbin", "usr/bin", "usr/sbin")
_SYSTEM_FILES = ("etc/os-release", "usr/lib/os-release")
_C_LIBRARY = "libc.so.6"
_CUDA = re.compile(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)")
_PT_INTERP = 3


class Kind(Enum):
    """Kinds of driver files. The value is the folder in the driver's tree."""

    LIBRARY = "lib64"
    LIBRARY_32 = "lib"
    PROGRAM = "bin"


@dataclass
class Driver:
    """Files of a driver and symbolic links, by their paths in the tree."""

    files: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def take(self, path: Path, kind: Kind) -> None:
        """Take a library or program, and the links in its folder that lead to it. The first file of a name counts."""
        if self.files.setdefault(f"{kind.value}/{path.name}", path) is path and kind is not Kind.PROGRAM:
            for alias in _aliases(path):
                self.links.setdefault(f"{kind.value}/{alias}", path.name)


def mount_points(mountinfo: str) -> list[Path]:
    """Return the mount points, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5))."""

    def unescape(text: str) -> str:
        return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)

    return [Path(unescape(line.split()[4])) for line in mountinfo.splitlines()]


def find(points: Iterable[Path], volumes: Iterable[Path], root: Path = Path("/")) -> Driver:
    """Return the driver.

    Args:
        points: Places where something is mounted.
        volumes: Places of the pod's own volumes. Nothing in them is looked at.
        root: The container's root.
    """
    closed = [*volumes, *(root / name for name in _CLOSED)]
    open_points = [
        point
        for point in dict.fromkeys(points)
        if point != root and not any(point.is_relative_to(place) for place in closed)
    ]
    driver = Driver()
    for point in open_points:
        files = _of_folder(point) if point.is_dir() else [point]
        for path, kind in _classified(files):
            driver.take(path, kind)
    if driver.files:
        for point in open_points:
            _take_data(driver, point, root)
    return driver


def kind_of(path: Path) -> Kind | None:
    """Return a file's kind; None if it is neither library nor program, or if users other than root may write to it."""
    status = path.lstat()
    if not _is_roots_alone(status) or not stat.S_ISREG(status.st_mode):
        return None
    executable = bool(status.st_mode & stat.S_IXOTH)
    with path.open("rb") as file:
        head = file.read(64)
        if head[:2] == b"#!" and executable:
            return Kind.PROGRAM
        wide = head[4:5] == b"\x02"
        if head[:4] != b"\x7fELF" or len(head) < (64 if wide else 52):
            return None
        offset, size, count = _program_headers(head, wide=wide)
        file.seek(offset)
        table = file.read(size * count)
    if len(table) < size * count:  # the file is cut short
        return None
    types = {struct.unpack_from("<I", table, at)[0] for at in range(0, len(table), size or 1)}
    if _PT_INTERP in types and path.name != _C_LIBRARY:
        return Kind.PROGRAM if executable else None
    return Kind.LIBRARY if wide else Kind.LIBRARY_32


def _program_headers(head: bytes, *, wide: bool) -> tuple[int, int, int]:
    """Return offset, size and number of an ELF file's program headers (elf(5))."""
    (offset,) = struct.unpack_from("<Q", head, 32) if wide else struct.unpack_from("<I", head, 28)
    size, count = struct.unpack_from("<HH", head, 54 if wide else 42)
    return offset, size, count


def _of_folder(folder: Path) -> list[Path]:
    """Return the files of a folder that may belong to the driver."""
    places = dict.fromkeys(folder / name for name in (*_LIBRARY_FOLDERS, *_PROGRAM_FOLDERS))
    safe = [place for place in places if place.is_dir() and _is_roots_alone(place.lstat()) and not place.is_symlink()]
    files = [path for place in safe for path in sorted(place.iterdir()) if path.is_file() and not path.is_symlink()]
    if not any((folder / name).exists() for name in _SYSTEM_FILES) and _C_LIBRARY not in {path.name for path in files}:
        return files
    version = next((found[1] for path in files if (found := _CUDA.fullmatch(path.name))), None)
    return [path for path in files if _carries(path, version)] if version else []


def _carries(path: Path, version: str) -> bool:
    """Return True if a file has the driver's version: libraries in their name, programs in their content."""
    if ".so" in path.name:
        return path.name.endswith(f".so.{version}")
    return kind_of(path) is Kind.PROGRAM and version.encode() in path.read_bytes()


def _classified(files: Iterable[Path]) -> Iterator[tuple[Path, Kind]]:
    for path in files:
        if path.is_file() and (kind := kind_of(path)):
            yield path, kind


def _aliases(library: Path) -> list[str]:
    return [
        other.name
        for other in sorted(library.parent.iterdir())
        if other.is_symlink() and other.name != library.name and other.resolve() == library.resolve()
    ]


def _take_data(driver: Driver, path: Path, root: Path) -> None:
    """Take a file that the driver's libraries read."""
    if not path.is_file() or kind_of(path) or not _is_roots_alone(path.lstat()):
        return
    if path.is_relative_to(root / "usr/share"):
        driver.files.setdefault(f"share/{path.relative_to(root / 'usr/share')}", path)
    elif path.is_relative_to(root / "etc") and path.stat().st_size <= _LARGEST_TEXT_BYTES:
        text = path.read_bytes()
        libraries = {place.partition("/")[2] for place in driver.files if place.startswith("lib")}
        if any(name.partition(".so")[0].encode() + b".so" in text for name in libraries):
            driver.files.setdefault(f"etc/{path.relative_to(root / 'etc')}", path)


def _is_roots_alone(status: os.stat_result) -> bool:
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
