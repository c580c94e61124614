"""The command `list-images`: shared images, sizes of users' stores and of nodes' copies, as a JSON object, for root.

Files of a store are its user's, who may have put anything there: no link is followed, and nothing is waited for.
"""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from container_images.image_store import STORE, digest_of_folder
from container_images.published_images import PUBLISHED, read_former, read_names
from container_images.store_sizes import names_in, size_of_image, sizes_below

_HOMES = Path("/home")

_REPORT_SECONDS = 3600
"""Age at which a node's report doesn't count: the node has left. It reports every ten minutes at least."""


def main(published: Path = PUBLISHED, homes: Path = _HOMES) -> int:
    """Print the object, and return the exit code."""
    found = {"published": _published(published), "users": _users(homes), "nodes": _nodes(published)}
    print(json.dumps({name: [*items] for name, items in found.items()}))
    return 0


def _published(store: Path) -> Iterator[dict[str, Any]]:
    """Yield the published images, and without a name those whose files are kept until a task ends."""
    names, former = read_names(store), read_former(store)
    for folder in names_in(store / "images"):
        try:
            filled_at = (store / "images" / folder / "size").stat().st_mtime
        except OSError:
            continue  # it has just been removed
        digest = digest_of_folder(folder)
        yield {
            "names": [
                *sorted(name for name, known in names.items() if known == digest),
                *sorted({f"{name.rpartition(':')[0]}@{digest}" for name, known in former.items() if digest in known}),
            ],
            "digest": digest,
            "architecture": folder.partition(".")[2],
            "size_bytes": size_of_image(store, Path("images", folder)),
            "filled_at": int(filled_at),
            "in_use": _in_use(store / "uses" / folder),
        }


def _users(homes: Path) -> Iterator[dict[str, Any]]:
    for user in names_in(homes):
        images, named = (sizes_below(homes / user, Path(STORE, kind)) for kind in ("images", "named"))
        if images or named:
            yield {
                "user": user,
                "images": len(images),
                "named_containers": len(named),
                "size_bytes": sum(size for size in (*images, *named) if size),
            }


def _nodes(store: Path) -> Iterator[dict[str, Any]]:
    """Yield the nodes that have copies on a disk (`node_report.py`)."""
    for report in sorted((store / "nodes").glob("*.json")):
        # It has just been removed, a loss of power has left it empty, or it is of another version.
        with suppress(OSError, ValueError, KeyError, TypeError):
            copies = json.loads(report.read_text())["copies"]
            if copies and report.stat().st_mtime > time.time() - _REPORT_SECONDS:
                yield {"node": report.stem, "images": copies["images"], "size_bytes": copies["bytes"]}


def _in_use(mark: Path) -> bool | None:
    """Return True if a task of any node runs in an image, or None if the file system does not say."""
    try:
        with mark.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False
