"""Settings of the quick checks: a JSON file per node set, which its pods read every round, and slurm.conf lines."""

import json
from collections.abc import Iterator
from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.render.jail import submounts
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.gpus import Vendor
from soperator_pulumi.spec.health_checks import DEFAULTS, Bound, HealthCheck, Needs, allowed, default_limit, of_board
from soperator_pulumi.spec.node_health import CheckSpec, HealthSpec, merged_checks
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.quantity import whole_mib

_LEAST_LINKED = {"v100": 8}
"""Number of a node's GPUs from which all have their model's number of links, if it is not 2. V100s are linked directly,
so a virtual machine with some of them has fewer links. A single GPU of any model may have none."""

FORMAT = 1
"""Format of the files (`images/health/node_health/check_settings.py`)."""

PROGRAM_FILE = "program.sh"

SMI_SECONDS = 40
"""Time limit of nvidia-smi. Without persistence mode it first loads the driver: 10 to 30 s with eight GPUs."""


def health_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of the ConfigMap: the settings of each node set, and the user's own program."""
    settings = {
        f"{node_set.name}.json": json.dumps(node_settings(spec, node_set), indent=1) + "\n"
        for node_set in spec.node_sets
    }
    program = spec.health.program
    return {**settings, **({PROGRAM_FILE: program.script} if program and spec.health.enabled else {})}


def health_parameters(health: HealthSpec) -> dict[str, str]:
    """Return the slurm.conf parameters that make slurmd run the checks; none if they are off."""
    if not health.enabled:
        return {}
    states = [*health.node_states, *(["CYCLE"] if health.spread else [])]
    return {
        "HealthCheckProgram": layout.HEALTH_CHECK,
        "HealthCheckInterval": f"{health.interval.total_seconds():.0f}",
        "HealthCheckNodeState": ",".join(dict.fromkeys(states)),
    }


def node_settings(spec: ClusterSpec, node_set: NodeSetSpec) -> dict[str, Any]:
    """Return the settings of a node set's checks."""
    health, gpus = spec.health, node_set.gpus
    return {
        "format": FORMAT,
        "seconds": health.timeout.total_seconds(),
        "interval_seconds": health.interval.total_seconds(),
        "gpus": gpus.count if gpus and not gpus.mig else 0,
        "gpu_type": (gpus.type or "") if gpus else "",
        "memory_mib": _own_memory_mib(node_set),
        "process_limit": node_set.process_limit,
        "volumes": [*_volumes(spec, node_set)],
        "jail": layout.ACTIVE_TREE,
        "program": ["/bin/sh", f"{layout.HEALTH_SETTINGS}/{PROGRAM_FILE}"] if health.program else [],
        "smi_seconds": SMI_SECONDS,
        "program_seconds": health.program.timeout.total_seconds() if health.program else 0,
        "checks": {name.value: entry for name, entry in _checks(health, node_set)} if health.enabled else {},
    }


def _own_memory_mib(node_set: NodeSetSpec) -> int:
    """Return the pod's own memory: what Slurm schedules, or less if the pod requests less."""
    if node_set.pod_resources is None:
        return node_set.scheduled_memory_mib
    return min(node_set.memory_mib, whole_mib(node_set.pod_resources.requests.memory or "0"))


def _checks(health: HealthSpec, node_set: NodeSetSpec) -> Iterator[tuple[HealthCheck, dict[str, Any]]]:
    """Yield the checks that apply to a node set, in the order of their defaults."""
    changes = merged_checks(health)
    for name in DEFAULTS:
        limit = _limit(name, changes[name], node_set)
        has_limit = DEFAULTS[name].bound is Bound.NONE or not DEFAULTS[name].needs_limit or limit is not None
        if changes[name].enabled and has_limit and _applies(DEFAULTS[name].needs, health, node_set):
            yield name, _settings(name, changes[name], limit)


def _applies(needs: Needs, health: HealthSpec, node_set: NodeSetSpec) -> bool:
    gpus = node_set.gpus if node_set.gpus and node_set.gpus.vendor is Vendor.NVIDIA else None
    return {
        Needs.ALL: True,
        Needs.NVIDIA: gpus is not None,
        Needs.WHOLE_GPUS: gpus is not None and gpus.count > 0 and not gpus.mig,
        Needs.RDMA: node_set.rdma is not None,
        Needs.PROGRAM: health.program is not None,
    }[needs]


def _limit(name: HealthCheck, change: CheckSpec, node_set: NodeSetSpec) -> float | None:
    if name is HealthCheck.GPU_COUNT:
        return node_set.gpus.count if node_set.gpus else None
    if change.limit is not None:
        return change.limit
    gpus = node_set.gpus
    if name is HealthCheck.NVLINK_LINKS and gpus and gpus.count < of_board(_LEAST_LINKED, gpus.type, 2):
        return None
    return default_limit(name, gpus.type if gpus else None)


def _settings(name: HealthCheck, change: CheckSpec, limit: float | None) -> dict[str, Any]:
    defaults = DEFAULTS[name]
    every = defaults.every_minutes * 60 if change.every is None else change.every.total_seconds()
    return {
        "limit": limit,
        "allowed": allowed(name, limit),
        "action": (change.action or defaults.action).value,
        "undrain": (change.undrain or defaults.undrain).value,
        "failures": change.failures or defaults.failures,
        "passes": change.passes or defaults.passes,
        "every_seconds": every,
        "states": [node_use.value for node_use in change.node_use or defaults.uses],
        "source": defaults.source,
    }


def _volumes(spec: ClusterSpec, node_set: NodeSetSpec) -> Iterator[dict[str, Any]]:
    """Yield the volumes of a worker. A directory of the machine counts as shared storage: it may be a mount."""
    mounted = submounts(spec, SubmountRole.WORKER, node_set.name)
    replaced = {submount.path for submount in mounted}
    for path in (layout.RUN_DIR, layout.SPOOL_DIR, layout.TEMPORARY_DIR, layout.SHARED_MEMORY_DIR):
        if path not in replaced:
            in_memory = path in {layout.TEMPORARY_DIR, layout.SHARED_MEMORY_DIR}
            yield {"path": path, "shared": False, "read_only": False, "in_memory": in_memory}
    for path in (layout.JAIL_DIR, layout.HOMES_DIR):
        if path not in replaced:
            yield {"path": path, "shared": True, "read_only": False, "in_memory": False}
    for submount in mounted:
        in_memory = submount.memory_gib is not None
        own = submount.scratch_gib is not None or in_memory
        yield {"path": submount.path, "shared": not own, "read_only": submount.read_only, "in_memory": in_memory}
