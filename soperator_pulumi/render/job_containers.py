"""Settings of containers in jobs: a JSON file that the program for bringing images reads at every start."""

import json
from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.job_containers import ImageRegistrySpec, RegistryProxySpec

_GIB = 1024**3
_DAY = 86_400


def container_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the file of the ConfigMap; none if jobs may have no containers."""
    containers = spec.containers
    if containers is None:
        return {}
    settings = {
        "images_bytes": None if containers.images_gib is None else int(containers.images_gib * _GIB),
        "unused_seconds": None if containers.unused_days is None else containers.unused_days * _DAY,
        "registries": [_registry(registry) for registry in containers.registries],
        "allowed_registries": list(containers.allowed_registries),
        "variables": _variables(containers.proxy) if containers.proxy else {},
    }
    return {layout.CONTAINERS_FILE: json.dumps(settings, indent=1) + "\n"}


def _registry(registry: ImageRegistrySpec) -> dict[str, Any]:
    return {
        "host": registry.host,
        "mirrors": list(registry.mirrors),
        "authority": registry.authority or "",
        "insecure": registry.insecure,
    }


def _variables(proxy: RegistryProxySpec) -> dict[str, str]:
    return {"http_proxy": proxy.url, "https_proxy": proxy.url, "no_proxy": ",".join(proxy.direct)}
