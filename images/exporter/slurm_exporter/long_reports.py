"""Results of the long checks, from the reports that their runs keep on the volume of the homes."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

from slurm_exporter.samples import Samples, Sums


def read(folder: Path) -> Samples:
    """Return the last result of each node and check.

    Raises:
        OSError: The volume fails.
        ValueError: A report is no JSON.
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


class LongReports:
    """The last results, read in a thread of their own: a volume that hangs holds no round."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._folder, self._report = folder, report
        self._found: Samples = {}
        self._problem = ""
        self._ended = threading.Event()

    def start(self, interval: float) -> None:
        """Start the thread. It ends with the process."""
        threading.Thread(target=self._run, args=(interval,), daemon=True).start()

    def _run(self, interval: float) -> None:
        while not self._ended.wait(interval):
            self.take()

    def take(self) -> None:
        """Read the reports once. A failure is reported when it begins; its results are those from before."""
        try:
            self._found, problem = read(self._folder), ""
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"long checks: {type(error).__name__}: {error}"
        if problem and problem != self._problem:
            self._report(problem)
        self._problem = problem

    def samples(self, nodes: set[str]) -> Samples:
        """Return the results of these nodes: others have left."""
        kept = {name: [value for value in values if value[0][0] in nodes] for name, values in self._found.items()}
        return {name: values for name, values in kept.items() if values}
