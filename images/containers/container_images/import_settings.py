"""The admin's settings of containers in jobs, which `soperator_pulumi/render/job_containers.py` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from container_images.image_reference import ImageError
from container_images.local_copies import LocalLimits
from container_images.registry_settings import Registry
from container_images.store_cleaning import NO_LIMITS, StoreLimits

SETTINGS = Path("/etc/soperator/health/job_containers.json")
"""The worker's file, which the importer has at the same place (`spank-plugin/image_import.c`)."""


@dataclass(frozen=True)
class ImportSettings:
    """Settings of all imports of a cluster.

    Attributes:
        limits: Limits of a user's store.
        registries: Settings of registries.
        allowed_registries: Registries of images, or parts of them. Empty: any.
        variables: Variables of skopeo, such as `https_proxy`, if the job has none of that name.
        local: Limits of copies on nodes' disks. None: no node has a disk for them.

    """

    limits: StoreLimits = NO_LIMITS
    registries: tuple[Registry, ...] = ()
    allowed_registries: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    local: LocalLimits | None = None


def read_settings(path: Path) -> ImportSettings:
    """Return the settings; without a file, the defaults.

    Raises:
        ImageError: The file is of another version of the program than this image.

    """
    try:
        settings = json.loads(path.read_text())
    except FileNotFoundError:
        return ImportSettings()
    try:
        return _settings(settings)
    except (KeyError, TypeError) as error:
        message = "the cluster's settings of containers do not fit the version of this node's image. Tell its admin."
        raise ImageError(message) from error


def _settings(settings: Mapping[str, Any]) -> ImportSettings:
    return ImportSettings(
        limits=StoreLimits(settings["images_bytes"], settings["unused_seconds"]),
        registries=tuple(
            Registry(**{**registry, "mirrors": tuple(registry["mirrors"])}) for registry in settings["registries"]
        ),
        allowed_registries=tuple(settings["allowed_registries"]),
        variables=settings["variables"],
        local=_local_limits(settings.get("local")),  # missing in settings of an earlier version
    )


def _local_limits(local: Mapping[str, Any] | None) -> LocalLimits | None:
    if local is None:
        return None
    store = StoreLimits(local["images_bytes"], local["unused_seconds"], "containers.local.images_gib")
    return LocalLimits(store, local["free_percent"])
