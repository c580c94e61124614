"""Accounting, the REST API, metrics and active checks, for which both projects have other keys."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.pod_parts import count_of, put_pods, whole_gib
from soperator_pulumi.convert.required_values import require_allowed_sources
from soperator_pulumi.convert.rules import Rule, cannot, needless
from soperator_pulumi.convert.slurm_text import read_options
from soperator_pulumi.convert.yaml_tree import Leaf, Section, defaults, overlaid
from soperator_pulumi.spec.accounting import NONE

ACCOUNTING = "no counterpart in `accounting`, which has its own database, ages of records, and pods"
REST = "no counterpart in `rest`, whose pods, ports and limits are fixed"
METRICS = "no counterpart in `metrics`: one pod here asks Slurm once a round, and its pages are fixed"
MACHINES = "node-exporter of platform.kube_prometheus_stack provides the metrics of machines"

_PURGED = {
    "purgeeventafter": "events",
    "purgejobafter": "jobs",
    "purgeresvafter": "reservations",
    "purgestepafter": "steps",
    "purgesuspendafter": "suspends",
    "purgetxnafter": "transactions",
    "purgeusageafter": "usage",
}
"""Keys of `accounting.purge`, by the parameters of slurmdbd.conf in lower case."""

_AGE = re.compile(r"(?P<number>[1-9]\d*)(?P<unit>hour|day|month)s?")


def put_no_accounting(work: Conversion, switch: Section) -> None:
    """Turn accounting off, as in the input or its chart."""
    is_given = any(not leaf.is_default for leaf in switch.leaves())
    where = "as in the input" if is_given else "the chart has it off, unless the input turns it on"
    work.put(work.stack, "accounting", NONE, switch, f"{where}; without the key, accounting is on")


def put_database(work: Conversion, place: Section, keys: Mapping[str, str], secret: Section) -> None:
    """Write an external database.

    Args:
        work: The conversion.
        place: The database in the input.
        keys: The keys here, by those of the input.
        secret: Name and key of the Secret with the password.
    """
    external: dict[str, Any] = work.mapping("accounting", "database", "external")
    for theirs, ours in keys.items():
        if place.at(theirs).text():
            work.put(external, ours, place.at(theirs).plain(), place.at(theirs))
    work.require(external, "host", "name or address of the database")
    password = work.mapping("password", of=external)
    for theirs, ours in {"name": "secret", "key": "key"}.items():
        if secret.at(theirs).text():
            work.put(password, ours, secret.at(theirs).text(), secret.at(theirs))
    work.require(password, "secret", "Secret in the cluster's namespace with the password of slurmdbd's user")


def put_operator_database(work: Conversion, place: Section) -> None:
    """Write a database for mariadb-operator, like the one that soperator's chart creates."""
    operator = work.mapping("accounting", "database", "mariadb_operator")
    count = count_of(place.at("replicas"))
    origin = [*place.at("enabled").leaves(), *place.at("replicas").leaves()]
    work.put(operator, "replicas", count if isinstance(count, int) else 1, origin)
    storage = place.at("storage")
    claim = storage.at("volumeClaimTemplate")
    for size in (storage.at("size"), claim.at("resources", "requests", "storage")):
        if (amount := whole_gib(size.plain())) is not None:
            work.put(operator, "size_gib", amount, size, f"{size.text()} in whole GiB")
    for storage_class in (storage.at("storageClassName"), claim.at("storageClassName")):
        if storage_class.text():
            work.put(operator, "storage_class", storage_class.text(), storage_class)
    if storage.at("ephemeral").plain() is False:
        work.needless(storage.at("ephemeral"), "the database is always on a claim")
    work.needless(claim.at("accessModes"), "access modes are fixed")


def put_purges(work: Conversion, parameters: Section) -> None:
    """Write the ages at which slurmdbd deletes records, from parameters of slurmdbd.conf in any case."""
    for key, value, leaves in read_options(work, parameters):
        ours = _PURGED.get(key.lower())
        match = _AGE.fullmatch(str(value).lower())
        if ours and match:
            work.put(work.mapping("accounting", "purge"), ours, f"{match['number']} {match['unit']}s", leaves)
        else:
            work.cannot(leaves, ACCOUNTING)


def put_slinky_accounting(work: Conversion, place: Section, pod: Section) -> None:
    """Write the accounting of Slinky's chart or custom resource, whose database is external."""
    if place.at("external").is_on():
        work.cannot(place, "slurmdbd is always the cluster's own; its database may be outside")
        return
    put_pods(work, work.mapping("accounting", "slurmdbd"), place.at("slurmdbd", "resources"), pod)
    storage = place.at("storageConfig")
    keys = {"host": "host", "port": "port", "database": "database", "username": "user"}
    put_database(work, storage, keys, storage.at("passwordKeyRef"))
    if place.at("extraConf").text():
        work.needless(place.at("extraConfMap"), "extraConf is given, and that counts")
        put_purges(work, place.at("extraConf"))
    else:
        put_purges(work, place.at("extraConfMap"))


def put_slinky_rest(work: Conversion, place: Section, pod: Section) -> None:
    """Write the REST API of Slinky's chart or custom resource."""
    put_rest(work, Section(None), place.at("replicas"))
    rest = work.mapping("rest")
    put_pods(work, rest, place.at("slurmrestd", "resources"), pod)
    put_service(work, rest, place.at("service"))


def put_service(work: Conversion, role: dict[str, Any], service: Section) -> None:
    """Write the type, the annotations and the allowed sources of a Service in the form of Kubernetes.

    People's files have the type next to `spec`, too, as it was until 0.3, and the annotations next to `metadata`.
    """
    kind = service.at("spec", "type") or service.at("type")
    if kind.text():
        work.put(role, "service", kind.text(), kind)
    for annotations in (service.at("annotations"), service.at("metadata", "annotations")):
        for key, value in annotations.entries():
            work.put(work.mapping("service_annotations", of=role), key, value.text(), value)
    for source in service.at("spec", "loadBalancerSourceRanges").items():
        work.add(work.listed("allowed_sources", of=role), source.text(), source)
    if kind.text() in {"LoadBalancer", "NodePort"}:
        require_allowed_sources(work, role)


def put_login_service(work: Conversion, role: dict[str, Any], service: Section) -> None:
    """Write the Service of login nodes, with its port on the machines and the class of its load balancer."""
    put_service(work, role, service)
    kind, port, balancer = role.get("service"), service.at("nodePort"), service.at("spec", "loadBalancerClass")
    kind = kind.value if kind else ""
    if kind in {"LoadBalancer", "NodePort"} and isinstance(port.plain(), int):
        work.put(role, "node_port", port.plain(), port)
    if kind == "LoadBalancer" and balancer.text():
        work.put(role, "load_balancer_class", balancer.text(), balancer)


def put_rest(work: Conversion, switch: Section, replicas: Section) -> None:
    """Write a REST API with its number of pods."""
    rest = work.mapping("rest")
    count = count_of(replicas)
    work.put(rest, "replicas", count if isinstance(count, int) else 1, [*switch.leaves(), *replicas.leaves()])


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

_CHECK_COUNTERPARTS = {"gpu-checks": "nccl_bandwidth", "dcgmi-diag-r3": "gpu_diagnostics"}
_DIAGNOSTICS_LEVEL = 3
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

_OTHER_CHECK = "no counterpart: long checks have fixed programs; your own script can be a quick check, health.program"

_DRAIN_REASON = "overrideValues.checks.*.failureReactions.drainSlurmNode.drainReasonPrefix"

ACTIVE_CHECK_RULES: tuple[Rule, ...] = (
    *needless("soperator's upkeep of its jail and users", *(f"overrideValues.checks.{check}.**" for check in _UPKEEP)),
    *needless("a node's gpus.count sets its GPUs", "overrideValues.slurmJob.gpusPerNode"),
    *cannot("reasons of drains are fixed: `health <check>: <value>, allowed <limit>`", _DRAIN_REASON),
    *cannot(_OTHER_CHECK, "overrideValues.checks.**"),
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
    for name, ours in _CHECK_COUNTERPARTS.items():
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
        work.put(work.mapping("arguments", of=place), "level", _DIAGNOSTICS_LEVEL)
