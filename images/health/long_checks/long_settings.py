"""Settings of one long check, as the cluster's configuration has them (`soperator_pulumi/render/long_checks.py`)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

FORMAT = 1


class NodeSetLimits(NamedTuple):
    """Limits of a node set's nodes."""

    alone: float | None
    """Lowest value of one node. None: the value is reported, and only wrong results fail."""
    together: float | None
    """Lowest value of several nodes."""
    gpus: int
    first: Sequence[str] = ()
    """Checks that a new node must pass before users' jobs start on it."""
    without_nvls: float | None = None
    """Lowest value of one node if NCCL does not reduce in the switches. None: as `alone`."""

    @property
    def plain(self) -> float | None:
        """Return the lowest value of one node that does not use the switches."""
        return self.alone if self.without_nvls is None else self.without_nvls


class LongSettings(NamedTuple):
    """Settings of one long check."""

    check: str
    program: str
    """Program that measures: a key of `programs.PROGRAMS`."""
    unit: str
    size: int
    """Nodes of one job: 1, 2 for pairs, or more for groups."""
    nodes_per_run: int
    every_seconds: float
    """Time until a node that passed is checked again."""
    start_seconds: float
    """Time that a job may wait in the queue."""
    time_limit_seconds: float
    action: str
    """`log` or `drain`."""
    undrain: str
    """`auto`: the run that finds the node healthy again undrains it. `never`: an admin does."""
    verifies: tuple[str, ...]
    """Quick checks whose drains this check ends, once the node passes."""
    settle_seconds: float
    """Time within which a quick check that still fails drains its node again; 0 without quick checks."""
    node_sets: Mapping[str, NodeSetLimits]
    """Node sets whose nodes are checked."""
    partition: str
    """Partition of the jobs. Empty: the first partition of each node."""
    qos: str
    reservation: str
    nice: int
    user: str
    uid: int
    folder: str
    """Folder for the jobs' outputs and the reports, at the same path in this pod and in the jail."""
    arguments: Mapping[str, float]
    """Sizes and times of the program."""
    image: str = ""
    """Published image of a container for the program. Empty: it runs in the jail."""


def parse_long(text: str) -> LongSettings:
    """Return the settings in a file's text.

    Raises:
        ValueError: The text does not have this format.
    """
    given: dict[str, Any] = json.loads(text)
    if given.pop("format", None) != FORMAT:
        raise ValueError(
            f"the settings do not have format {FORMAT}: the image has another version than the program that wrote them"
        )
    sets = {name: NodeSetLimits(**value) for name, value in given.pop("node_sets").items()}
    return LongSettings(**{**given, "verifies": tuple(given["verifies"])}, node_sets=sets)
