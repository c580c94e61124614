"""Results of the long checks, read from the reports on the volume of the homes."""

import json
from collections.abc import Collection
from pathlib import Path

from slurm_exporter.samples import Samples, Sums


def read(folder: Path) -> Samples:
    """Return the last result of each node and check.

    Raises:
        OSError: The volume fails.
        ValueError: A report is not JSON.
    """
    sums = Sums()
    for file in sorted(folder.glob("*/last.json")):
        for node, result in json.loads(file.read_text())["nodes"].items():
            labels = (node, file.parent.name)
            sums.add("slurm_long_check_passed", labels, float(result["passed"]))
            sums.add("slurm_long_check_time_seconds", labels, float(result["time"]))
            if result["value"] is not None:
                sums.add("slurm_long_check_value", labels, float(result["value"]))
    return sums.samples()


def of_present_nodes(results: Samples, nodes: Collection[str]) -> Samples:
    """Return the results of these nodes, without those of nodes that have left."""
    kept = {name: [value for value in values if value[0][0] in nodes] for name, values in results.items()}
    return {name: values for name, values in kept.items() if values}
