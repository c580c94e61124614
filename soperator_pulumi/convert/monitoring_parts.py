"""Metrics and active checks, for which both projects have other keys."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.rules import Rule, cannot, needless
from soperator_pulumi.convert.yaml_tree import Leaf, Section, defaults, overlaid

METRICS = "no counterpart in `metrics`: one pod here asks Slurm once a round, and its pages are fixed"
MACHINES = "node-exporter of platform.kube_prometheus_stack provides the metrics of machines"

_ACTIVE_CHECKS = {
    "enabled": True,
    "overrideValues": {
        "checks": {
            "gpu-checks": {
                "enabled": True,
                "schedule": "0 0,12 * * *",
                "suspend": False,
                "slurmJobSpec": {"maxNumberOfJobs": 200},
                "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}},
            },
            "dcgmi-diag-r3": {
                "enabled": False,
                "suspend": True,
                "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}},
            },
        }
    },
}
"""Checks of the chart soperator-activechecks (5.0.0) that have a counterpart."""

_COUNTERPARTS = {"gpu-checks": "nccl_bandwidth", "dcgmi-diag-r3": "gpu_diagnostics"}
_LEVEL = 3
"""Level of dcgmi diag, by the name of soperator's check."""

_UPKEEP = (
    "create-user-*",
    "ensure-healthy-nodes",
    "manage-jail-state*",
    "nccl-profiles-cleaner",
    "retrigger-checks",
    "wait-for-*",
)
"""Checks of the chart that do not check nodes."""

_OWN_CHECK = "no counterpart: long checks have fixed programs; your own script can be a quick check, health.program"

_PREFIX = "overrideValues.checks.*.failureReactions.drainSlurmNode.drainReasonPrefix"

ACTIVE_CHECK_RULES: tuple[Rule, ...] = (
    *needless("soperator's upkeep of its jail and users", *(f"overrideValues.checks.{check}.**" for check in _UPKEEP)),
    *needless("a node's gpus.count sets its GPUs", "overrideValues.slurmJob.gpusPerNode"),
    *cannot("reasons of drains are fixed: `health <check>: <value>, allowed <limit>`", _PREFIX),
    *cannot(_OWN_CHECK, "overrideValues.checks.**"),
    *cannot("pods of long checks are fixed", "overrideValues.**"),
)
"""Accounts of values that `put_active_checks` does not convert."""


def put_metrics(
    work: Conversion, switches: Sequence[Section], intervals: Sequence[Section], monitor: Sequence[Section] = ()
) -> None:
    """Turn on metrics if one of the switches is on.

    Args:
        work: The conversion.
        switches: Switches of exporters.
        intervals: Intervals of scrapes and rounds; the last given one counts.
        monitor: Switches of the monitor, if the exporter's switch does not turn it on.
    """
    on = [switch for switch in switches if switch.is_on()]
    if not on:
        return
    metrics = work.mapping("metrics")
    monitored = not monitor or any(switch.is_on() for switch in monitor)
    leaves = [leaf for switch in (*on, *monitor) for leaf in switch.leaves()]
    work.put(metrics, "pod_monitor", monitored, leaves, "one exporter for both versions of Slurm")
    for interval in intervals:
        if interval.text():
            work.put(metrics, "interval", interval.text(), interval)


def put_active_checks(work: Conversion, given: Section, keys: tuple[str, ...]) -> Section:
    """Write the active checks that have a counterpart, and return the release with the chart's defaults.

    Args:
        work: The conversion.
        given: The Helm release of the checks.
        keys: Keys from the file's document down to the release.
    """
    release = Section(overlaid(defaults(_ACTIVE_CHECKS, keys, ".".join(keys)), given.tree), given.path)
    if not release.at("enabled").is_on():
        return release
    node_sets = work.stack.get("node_sets", [])
    with_gpus = isinstance(node_sets, list) and any("gpus" in node_set for node_set in node_sets)
    for name, ours in _COUNTERPARTS.items():
        check = release.at("overrideValues", "checks", name)
        if not check.at("enabled").is_on() or check.at("suspend").is_on():
            work.needless(_given(check), "the check is off, or never runs on its own")
        elif not with_gpus:
            work.needless(_given(check), "no node set has GPUs")
        else:
            _put_check(work, work.mapping("health", "long_checks", ours), check)
            work.needless(check.at("checkType"), "a long check is a job of Slurm")
    work.needless(_given(release.at("enabled")), "converted to health.long_checks, for node sets with GPUs")
    return release


def _given(place: Section) -> list[Leaf]:
    return [leaf for leaf in place.leaves() if not leaf.is_default]


def _put_check(work: Conversion, place: dict[str, Any], check: Section) -> None:
    how = "runs programs of the jail, or of the key `image`; a node that passed is checked again after a day"
    schedule, jobs = check.at("schedule"), check.at("slurmJobSpec", "maxNumberOfJobs")
    work.put(place, "enabled", value=True, origin=[*check.at("enabled").leaves(), *check.at("suspend").leaves()])
    if schedule.text():
        work.put(place, "schedule", schedule.text(), schedule, how)
    if isinstance(jobs.plain(), int):
        work.put(place, "nodes_per_run", jobs.plain(), jobs)
    drains = check.at("failureReactions", "drainSlurmNode")
    if not drains:
        work.put(place, "action", "log", check.at("failureReactions"))
    if check.path.endswith("dcgmi-diag-r3"):
        work.put(work.mapping("arguments", of=place), "level", _LEVEL)
