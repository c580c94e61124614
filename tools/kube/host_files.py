"""Writing files so that a kill at any moment leaves the old or the new content, never half of it."""

import os
from pathlib import Path


def link(path: Path, target: Path) -> None:
    """Make `path` a symbolic link to `target`, in place of what it was."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.rename(path)


def write(path: Path, content: str | bytes, mode: int = 0o600) -> bool:
    """Write `content` atomically and return whether the file changed; folders are made, for their owner only."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    temporary.rename(path)
    return True
