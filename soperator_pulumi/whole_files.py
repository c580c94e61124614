"""Files that are written as a whole or not at all."""

import os
import stat
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_whole(file: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Write a file in an existing folder, so that other programs read the old content or the new one, never a part.

    This holds if the program is killed, the machine loses power, or two programs write at the same time. A link is
    replaced; to write the file that it names, resolve it first.

    Args:
        file: The file.
        content: Its new content. A text becomes UTF-8.
        mode: Permissions of a new file. A file that exists keeps its own. Default: for the owner only.

    Raises:
        OSError: The file cannot be written. It is unchanged.
    """
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}-", delete=False) as fresh:
        whole = Path(fresh.name)
        try:
            fresh.write(content.encode() if isinstance(content, str) else content)
            fresh.flush()
            os.fsync(fresh.fileno())
            whole.chmod(stat.S_IMODE(file.stat().st_mode) if file.exists() else mode)
            whole.replace(file)
        finally:
            whole.unlink(missing_ok=True)
