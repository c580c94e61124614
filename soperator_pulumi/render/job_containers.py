"""Settings of containers in jobs: a JSON file that the program for bringing images reads at every start."""

import json

from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.job_containers import ContainersSpec, LocalCopiesSpec
from soperator_pulumi.spec.types.quantity import GIB

_DAY = 86_400


def container_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the file of the ConfigMap; none if jobs may have no containers."""
    containers = spec.containers
    if containers is None:
        return {}
    local = containers.local
    variables = {}
    if proxy := containers.proxy:
        variables = {"http_proxy": proxy.url, "https_proxy": proxy.url, "no_proxy": ",".join(proxy.direct)}
    settings = {
        **_limits(containers),
        "registries": [
            {
                "host": registry.host,
                "mirrors": list(registry.mirrors),
                "authority": registry.authority or "",
                "insecure": registry.insecure,
            }
            for registry in containers.registries
        ],
        "allowed_registries": list(containers.allowed_registries),
        "variables": variables,
        "local": {**_limits(local), "free_percent": local.free_percent} if local else None,
    }
    return {layout.CONTAINERS_FILE: json.dumps(settings, indent=1) + "\n"}


def _limits(spec: ContainersSpec | LocalCopiesSpec) -> dict[str, float | None]:
    return {
        "images_bytes": None if spec.images_gib is None else int(spec.images_gib * GIB),
        "unused_seconds": None if spec.unused_days is None else spec.unused_days * _DAY,
    }
