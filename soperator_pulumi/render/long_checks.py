"""Settings of the long checks: one JSON file per check, which the pods of its CronJob read."""

import json
from collections.abc import Iterator
from typing import Any

from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.health_checks import DEFAULTS, UndrainRule
from soperator_pulumi.spec.long_checks import (
    LONG_DEFAULTS,
    LongCheck,
    LongCheckSpec,
    applies,
    first_checks,
    long_limit,
    verifies,
)
from soperator_pulumi.spec.node_health import merged_checks
from soperator_pulumi.spec.node_set import NodeSetSpec

FORMAT = 1
"""Format of the files (`images/health/long_checks/long_settings.py`)."""


def enabled_checks(spec: ClusterSpec) -> dict[LongCheck, LongCheckSpec]:
    """Return the enabled long checks that have nodes."""
    checks = spec.health.long_checks
    return {name: check for name, check in checks.items() if check.enabled and [*_node_sets(spec, name)]}


def long_check_files(spec: ClusterSpec) -> dict[str, str]:
    """Return the files of the ConfigMap: the settings of every check."""
    return {
        f"{name}.json": json.dumps(long_settings(spec, name, check), indent=1) + "\n"
        for name, check in enabled_checks(spec).items()
    }


def long_settings(spec: ClusterSpec, name: LongCheck, check: LongCheckSpec) -> dict[str, Any]:
    """Return the settings of a check."""
    defaults = LONG_DEFAULTS[name]
    return {
        "format": FORMAT,
        "check": name.value,
        "program": defaults.program,
        "unit": defaults.unit,
        "size": check.group or defaults.size,
        "nodes_per_run": check.nodes_per_run,
        "every_seconds": check.every.total_seconds(),
        "start_seconds": check.start_within.total_seconds(),
        "time_limit_seconds": time_limit_seconds(name, check),
        "action": check.action.value,
        "undrain": check.undrain.value,
        "verifies": [*_verified(spec, name)],
        "settle_seconds": _settle_seconds(spec),
        "node_sets": {node_set.name: _limits(spec, name, check, node_set) for node_set in _node_sets(spec, name)},
        "partition": check.partition or "",
        "qos": check.qos or "",
        "reservation": check.reservation or "",
        "nice": check.nice,
        "user": layout.HEALTH_USER,
        "uid": layout.HEALTH_UID,
        "folder": layout.HEALTH_FOLDER,
        "arguments": {**defaults.arguments, **check.arguments},
        **({"image": check.image} if check.image else {}),
    }


def time_limit_seconds(name: LongCheck, check: LongCheckSpec) -> float:
    """Return the time limit of a check's jobs."""
    if check.time_limit is not None:
        return check.time_limit.total_seconds()
    return LONG_DEFAULTS[name].time_limit_minutes * 60


def _settle_seconds(spec: ClusterSpec) -> float:
    """Return the time within which a quick check that still fails drains its node again: two rounds."""
    health = spec.health
    return 2 * health.interval.total_seconds() + health.timeout.total_seconds() if health.enabled else 0


def _verified(spec: ClusterSpec, long_check: LongCheck) -> Iterator[str]:
    """Yield the quick checks whose drains end when this long check passes."""
    if spec.health.enabled:
        for name, change in merged_checks(spec.health).items():
            if (
                change.enabled
                and verifies(long_check, name)
                and (change.undrain or DEFAULTS[name].undrain) is UndrainRule.VERIFY
            ):
                yield name.value


def _node_sets(spec: ClusterSpec, name: LongCheck) -> Iterator[NodeSetSpec]:
    """Return the node sets that a check applies to."""
    return (node_set for node_set in spec.node_sets if applies(name, node_set))


def _limits(spec: ClusterSpec, name: LongCheck, check: LongCheckSpec, node_set: NodeSetSpec) -> dict[str, Any]:
    limit = long_limit(name, check.limit, node_set.gpus)
    gpus = node_set.gpus.count if node_set.gpus and LONG_DEFAULTS[name].needs.of_gpus else 0
    first = first_checks(spec.health.long_checks, node_set) if spec.health.verify_new_nodes else []
    plain = long_limit(name, check.limit, node_set.gpus, nvls=False)
    without = {} if plain == limit else {"without_nvls": plain}
    return {"alone": limit, "together": limit, "gpus": gpus, "first": [one.value for one in first], **without}
