"""Starts of containers and copies of images by node, from the nodes' reports (`container_images/node_report.py`)."""

import json
from pathlib import Path

from slurm_exporter.samples import Samples, Sums

RESULTS = ("present", "brought", "failed")


def read(store: Path) -> Samples:
    """Return what the nodes have reported into the store of shared images. No report: no value of the node.

    Raises:
        OSError: The volume fails.
        KeyError: A report has another form.
    """
    sums = Sums()
    for file in sorted((store / "nodes").glob("*.json")):
        try:
            report = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            continue  # it has just been removed, or a loss of power has left it empty
        node = (file.stem,)
        for result in RESULTS:
            sums.add("slurm_container_starts_total", (file.stem, result), float(report["starts"][result]))
        sums.add("slurm_container_brought_bytes_total", node, float(report["brought_bytes"]))
        sums.add("slurm_container_brought_seconds_total", node, float(report["brought_seconds"]))
        if copies := report["copies"]:
            sums.add("slurm_container_copies", node, float(copies["images"]))
            sums.add("slurm_container_copies_bytes", node, float(copies["bytes"]))
    return sums.samples()
