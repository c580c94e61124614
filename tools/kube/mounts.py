"""Mounts below a folder, as a killed run leaves them."""

from pathlib import Path

from tools.kube.process import output


def below(folder: Path, mountinfo: str | None = None) -> list[Path]:
    """Return the mount points at and below `folder`, the innermost first."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    points = [Path(_unescape(line.split()[4])) for line in text.splitlines()]
    return [point for point in reversed(points) if point == folder or folder in point.parents]


def remove_below(folder: Path) -> int:
    """Unmount all at and below `folder`, lazily where still in use; return how many there were."""
    points = below(folder)
    if points:
        output(
            ["umount", "--lazy", "--no-canonicalize", *points],
            what=f"unmounting {len(points)} mounts below {folder}",
        )
    return len(points)


def share(folder: Path) -> None:
    """Make `folder` a mount of its own that passes mounts on: pods may ask for that of volumes (mountPropagation)."""
    if folder not in below(folder):
        output(["mount", "--rbind", folder, folder], what=f"mounting {folder} on itself")
        output(["mount", "--make-rshared", folder], what=f"sharing the mounts of {folder}")


def _unescape(point: str) -> str:
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(escaped, plain)
    return point
