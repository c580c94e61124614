"""Settings of a node's checks, as the cluster's configuration has them (`soperator_pulumi/render/node_health.py`)."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

FORMAT = 1

SMI_SECONDS = 40.0
"""Bound of nvidia-smi. Without persistence mode it loads the driver first, which takes up to 30 s for eight GPUs
(Azure/aks-gpu#105). slurmd ends a round after 60 s."""

_IN_MEMORY = ("/tmp", "/dev/shm")  # noqa: S108 - the pod's own volumes


class CheckSettings(NamedTuple):
    """Settings of one check."""

    limit: float | None
    allowed: str
    """Limit in words."""
    action: str
    """`log`, `drain` or `drain_and_replace`."""
    undrain: str
    """`auto`, `verify` or `never`."""
    failures: int
    """Consecutive failed rounds before the action."""
    passes: int
    """Consecutive passed rounds that end a drain."""
    every_seconds: float
    states: tuple[str, ...]
    """`idle`, `busy`."""
    source: str = ""
    """Origin of limit and action, for a person."""

    @property
    def drains(self) -> bool:
        """Return True if a failure takes the node out of service."""
        return self.action != "log"

    @property
    def replaces(self) -> bool:
        """Return True if a failure asks for another machine."""
        return self.action == "drain_and_replace"


class PodVolume(NamedTuple):
    """A volume of the pod."""

    path: str
    shared: bool
    """Other nodes use it as well, so that its failure is not the node's."""
    read_only: bool
    in_memory: bool
    """Files in it use the pod's memory, not a disk."""


class NodeSettings(NamedTuple):
    """Settings of a node."""

    checks: Mapping[str, CheckSettings]
    seconds: float
    """Bound of a round."""
    interval_seconds: float
    gpus: int
    """Whole GPUs that the node must have; 0 for none, or for MIG instances only."""
    gpu_type: str
    memory_mib: int
    """Memory that the pod requests; 0 if it requests none."""
    volumes: tuple[PodVolume, ...]
    jail: str
    """Root directory of new jobs."""
    program: tuple[str, ...]
    """Command of the user's own check; empty if there is none."""
    program_seconds: float
    smi_seconds: float = SMI_SECONDS
    """Bound of nvidia-smi."""
    process_limit: int = 0
    """Processes and threads that a user may have; 0 if an earlier version wrote the configuration."""


def parse(text: str) -> NodeSettings:
    """Return the settings in a file's text.

    Raises:
        ValueError: The text is not JSON, or the settings have the format of another version.
    """
    given = json.loads(text)
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(
            f"the settings do not have format {FORMAT}: the image has another version than the program that wrote them"
        )
    try:
        return _settings(given)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"key missing or of another type: {error}") from error


def _settings(given: Mapping[str, Any]) -> NodeSettings:
    return NodeSettings(
        checks={name: _check(check) for name, check in given["checks"].items()},
        seconds=given["seconds"],
        interval_seconds=given["interval_seconds"],
        gpus=given["gpus"],
        gpu_type=given["gpu_type"],
        memory_mib=given["memory_mib"],
        volumes=tuple(_volume(volume) for volume in given["volumes"]),
        jail=given["jail"],
        program=tuple(given["program"]),
        program_seconds=given["program_seconds"],
        smi_seconds=given.get("smi_seconds", SMI_SECONDS),
        process_limit=given.get("process_limit", 0),
    )


def _volume(given: Mapping[str, Any]) -> PodVolume:
    path = given["path"]
    # Settings from before this field meet a new image for a while.
    return PodVolume(path, given["shared"], given["read_only"], given.get("in_memory", path in _IN_MEMORY))


def _check(given: Mapping[str, Any]) -> CheckSettings:
    return CheckSettings(
        limit=given["limit"],
        allowed=given["allowed"],
        action=given["action"],
        undrain=given["undrain"],
        failures=given["failures"],
        passes=given["passes"],
        every_seconds=given["every_seconds"],
        states=tuple(given["states"]),
        source=given.get("source", ""),
    )
