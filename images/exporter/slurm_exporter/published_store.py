"""Sizes of the shared images, from their store on the jail's volume (`container_images/published_images.py`).

Stores of users are in their homes, closed to all others: this process has no right on them.
"""

import json
from pathlib import Path

from slurm_exporter.samples import Samples, Sums


def read(store: Path) -> Samples:
    """Return the size and the age of every published image, and the size of all images in the store.

    Raises:
        OSError: The volume fails.
        ValueError: A file has another form.
    """
    sums = Sums()
    sums.add("slurm_container_store_images", value=0)
    sums.add("slurm_container_store_bytes", value=0)
    sizes = dict[str, tuple[int, float]]()
    for file in (store / "images").glob("*/size"):
        try:
            found = int(file.read_text()), file.stat().st_mtime
        except (FileNotFoundError, ValueError):
            continue  # it has just been removed, or a loss of power has left it empty
        sizes[file.parent.name.partition(".")[0]] = found
        sums.add("slurm_container_store_images")
        sums.add("slurm_container_store_bytes", value=found[0])
    for name, digest in _names(store).items():
        size, filled_at = sizes.get(digest.removeprefix("sha256:"), (None, 0.0))
        if size is not None:
            sums.add("slurm_container_image_bytes", (name,), size)
            sums.add("slurm_container_image_time_seconds", (name,), filled_at)
    return sums.samples()


def _names(store: Path) -> dict[str, str]:
    try:
        names: dict[str, str] = json.loads((store / "names.json").read_text())
    except FileNotFoundError:
        return {}  # nothing was published yet
    return names
