"""Starts of containers and copies of images by node, from the nodes' reports (`container_images/node_report.py`)."""

import json
from pathlib import Path

from slurm_exporter.samples import Samples, Sums

RESULTS = ("present", "brought", "failed")

Values = dict[tuple[str, ...], float]
"""Values of a node, by the metric's name and its labels after the node."""


def read(store: Path) -> Samples:
    """Return what the nodes have reported into the store of shared images.

    A node whose report is missing, empty after a loss of power, or of another version has no values.

    Raises:
        OSError: The volume fails.
    """
    sums = Sums()
    for file in sorted((store / "nodes").glob("*.json")):
        try:
            values = _values(file)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue
        for (name, *labels), value in values.items():
            sums.add(name, (file.stem, *labels), value)
    return sums.samples()


def _values(file: Path) -> Values:
    report = json.loads(file.read_text())
    values: Values = {
        ("slurm_container_brought_bytes_total",): float(report["brought_bytes"]),
        ("slurm_container_brought_seconds_total",): float(report["brought_seconds"]),
    }
    for result in RESULTS:
        values["slurm_container_starts_total", result] = float(report["starts"][result])
    if copies := report["copies"]:
        values["slurm_container_copies",] = float(copies["images"])
        values["slurm_container_copies_bytes",] = float(copies["bytes"])
    return values
