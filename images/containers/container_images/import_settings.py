"""The admin's settings of containers in jobs, which `soperator_pulumi/render/job_containers.py` writes."""

import json
from dataclasses import dataclass
from pathlib import Path

from container_images.store_cleaning import NO_LIMITS, StoreLimits

SETTINGS = Path("/etc/soperator/health/job_containers.json")
"""The worker's file, which the importer has at the same place (`spank-plugin/image_import.c`)."""


@dataclass(frozen=True)
class ImportSettings:
    """Settings of all imports of a cluster.

    Attributes:
        limits: Limits of a user's store.

    """

    limits: StoreLimits = NO_LIMITS


def read_settings(path: Path) -> ImportSettings:
    """Return the settings; without a file, the defaults."""
    try:
        settings = json.loads(path.read_text())
    except FileNotFoundError:
        return ImportSettings()
    return ImportSettings(limits=StoreLimits(settings["images_bytes"], settings["unused_seconds"]))
