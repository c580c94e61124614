"""Machines that admit pods: ready, chosen by labels and affinity, and without taints that the pods do not tolerate."""

from collections.abc import Mapping, Sequence

from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.planned import PlannedPods

MACHINES = "/api/v1/nodes"

_REPELS = ("NoSchedule", "NoExecute")


def usable(machines: Sequence[Json]) -> list[Json]:
    """Return the machines that accept new pods: ready, and not cordoned."""
    return [
        machine
        for machine in machines
        if not machine.get("spec", {}).get("unschedulable")
        and any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in machine.get("status", {}).get("conditions") or []
        )
    ]


def machines_for(pods: PlannedPods, machines: Sequence[Json]) -> list[Json]:
    """Return the usable machines on which the pods may run, regardless of size."""
    return [entry for entry in usable(machines) if is_chosen(pods.spec, entry) and not repelling(pods.spec, entry)]


def kind_of(machine: Json) -> str:
    """Return the kind of a machine. Machines of one kind give the same answers."""
    info = machine.get("status", {}).get("nodeInfo") or {}
    return " ".join(
        str(info.get(key, "")) for key in ("architecture", "osImage", "kernelVersion", "containerRuntimeVersion")
    )


def is_chosen(spec: Json, machine: Json) -> bool:
    """Return True if node_selector and required affinity of the pods allow the machine."""
    labels: Mapping[str, str] = machine["metadata"].get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    fields = {"metadata.name": machine["metadata"]["name"]}
    return not terms or any(
        all(_matches(rule, labels) for rule in term.get("matchExpressions") or [])
        and all(_matches(rule, fields) for rule in term.get("matchFields") or [])
        for term in terms
    )


def repelling(spec: Json, machine: Json) -> list[Json]:
    """Return the taints of a machine that the pods do not tolerate."""
    taints = machine.get("spec", {}).get("taints") or []
    hard = [taint for taint in taints if taint.get("effect") in _REPELS]
    return [item for item in hard if not any(_tolerates(rule, item) for rule in spec.get("tolerations") or [])]


def _matches(rule: Json, labels: Mapping[str, str]) -> bool:
    """Return True if a node affinity rule matches (kubernetes.io, Assigning Pods to Nodes)."""
    key, values, found = rule["key"], rule.get("values") or [], labels.get(rule["key"])
    match rule["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt":
            return found is not None and found.isdecimal() and int(found) > int(values[0])
        case "Lt":
            return found is not None and found.isdecimal() and int(found) < int(values[0])
    return True  # an operator of a later Kubernetes: the scheduler decides


def _tolerates(rule: Json, taint: Json) -> bool:
    if rule.get("effect") and rule["effect"] != taint.get("effect"):
        return False
    if rule.get("operator", "Equal") == "Exists":
        return not rule.get("key") or rule["key"] == taint["key"]
    return bool(rule.get("key") == taint["key"] and rule.get("value", "") == taint.get("value", ""))
