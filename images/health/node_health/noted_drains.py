"""Drains in the name of a check that a job hook made. The next round takes them over.

A healthy node asks slurmctld nothing, so a round would not see such a drain.
"""

import os
from collections.abc import MutableMapping
from typing import Any

from node_health.kernel_files import read

RUN = "/run/slurm"
_FILE = "health-noted-drain"


def note(check: str, folder: str = RUN) -> None:
    """Note that a check has drained the node."""
    beside = f"{folder}/{_FILE}.new"
    with open(beside, "w") as file:  # noqa: PTH123 - pathlib takes longer to import than a round's checks
        file.write(check)
    os.replace(beside, f"{folder}/{_FILE}")  # noqa: PTH105 - as above


def take_over(memory: MutableMapping[str, Any], folder: str = RUN) -> None:
    """Make this round ask slurmctld, and let no earlier pass count towards the end of the drain."""
    check = read(f"{folder}/{_FILE}")
    if check:
        os.unlink(f"{folder}/{_FILE}")  # noqa: PTH108 - as above
        memory.pop("asked", None)
        memory.get("tallies", {}).pop(check, None)
