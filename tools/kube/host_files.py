"""Files, links and mounts of this machine. A killed program leaves old or new content, never a part."""

from pathlib import Path

from soperator_pulumi.whole_files import write_whole
from tools.kube.process import output


def link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`, replacing what exists."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.rename(path)


def write(path: Path, content: str | bytes) -> bool:
    """Write `content` atomically and return True if the file changed. File and missing folders are for the owner."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, data)
    return True


def mounts_below(folder: Path, mountinfo: str | None = None) -> list[Path]:
    """Return the mount points at and below `folder`, the innermost first."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    points = [Path(_unescape(line.split()[4])) for line in text.splitlines()]
    return [point for point in reversed(points) if point == folder or folder in point.parents]


def unmount_below(folder: Path) -> int:
    """Unmount everything at and below `folder`, lazily if in use; return the number of mounts."""
    points = mounts_below(folder)
    if points:
        output(
            ["umount", "--lazy", "--no-canonicalize", *points],
            what=f"unmounting {len(points)} mounts below {folder}",
        )
    return len(points)


def share_mounts(folder: Path) -> None:
    """Make `folder` a mount that propagates mounts, as pods may require of volumes (mountPropagation)."""
    if folder not in mounts_below(folder):
        output(["mount", "--rbind", folder, folder], what=f"mounting {folder} on itself")
        output(["mount", "--make-rshared", folder], what=f"sharing the mounts of {folder}")


def _unescape(point: str) -> str:
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(escaped, plain)
    return point
