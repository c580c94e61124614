"""Parts of a platform that somebody else installed: version and settings, read from the live cluster.

Nothing is changed. Requirements are data, as `soperator_pulumi.platform.requirements` writes them for each part.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import Problem
from soperator_pulumi.operations.kube import Json, Kube

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WORKLOADS = {"Deployment": "/apis/apps/v1/deployments", "DaemonSet": "/apis/apps/v1/daemonsets"}
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Definition(_Frozen):
    """A CustomResourceDefinition, and the version in which its objects are read and written."""

    name: str
    """Name: `clusterpolicies.nvidia.com`."""
    version: str
    """Served version."""
    release_annotation: str = ""
    """Annotation with the version of the part, where no workload has it."""


class Workload(_Frozen):
    """Pods of an operator or agent, found by their labels in any namespace."""

    kind: str
    """`Deployment` or `DaemonSet`."""
    labels: dict[str, str]
    """Labels of the object."""
    container: str
    """Container whose image's tag is the version."""


class ObjectRule(_Frozen):
    """A rule for an object, or for the objects of a collection."""

    path: str
    """Path in the API."""
    collection: bool = True
    """False where the path is that of one object."""
    called: str
    """Name of the objects in a message: `ClusterPolicy`."""
    allowed: dict[str, tuple[str, ...]] = {}
    """Allowed values by the path of a field, as JSON writes them, and text as it is. `unset` is the absence of it."""
    every: bool = True
    """True where the rule holds for every object, False where one is enough."""
    optional: bool = False
    """True where the absence of the object is no problem."""
    labels: dict[str, tuple[str, ...]] = {}
    """Allowed values of labels."""
    unless: dict[str, tuple[str, ...]] = {}
    """Values of fields with which an object is left out."""
    cure: str
    """Next step, as sentences."""


class Requirement(_Frozen):
    """Needs of ours of an installed part."""

    part: str
    """Key of the part in the spec."""
    title: str
    """Name of the product."""
    minimum: str
    """Lowest version that is known to work."""
    definitions: tuple[Definition, ...] = ()
    workload: Workload | None = None
    rules: tuple[ObjectRule, ...] = ()


def installed_problems(kube: Kube, requirements: Sequence[Requirement]) -> Iterator[Problem]:
    """Yield the problems of all parts.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    for each in requirements:
        missing = [*_definition_problems(kube, each)]
        yield from missing
        yield from _version_problems(kube, each)
        if not missing:  # objects of a kind that is missing are missing, too
            found = [problem for rule in each.rules for problem in _rule_problems(kube, each, rule)]
            yield from dict.fromkeys(found)


def installed_versions(kube: Kube, requirements: Sequence[Requirement]) -> dict[str, str]:
    """Return the installed version of each part; empty where it is not found.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    return {each.part: _version(kube, each) for each in requirements if each.definitions or each.workload}


def _definition_problems(kube: Kube, wanted: Requirement) -> Iterator[Problem]:
    for definition in wanted.definitions:
        body = kube.get(f"{_DEFINITIONS}/{definition.name}")
        if body is None:
            text = f"exists: true, but {wanted.title} has no definition {definition.name} here. {_install(wanted)}"
            yield Problem(wanted.part, text)
            continue
        served = [each["name"] for each in body["spec"]["versions"] if each.get("served")]
        if definition.version not in served:
            there = ", ".join(served) or "none"
            text = f"{definition.name} is served as {there}, needs {definition.version}. Upgrade {wanted.title}."
            yield Problem(wanted.part, text)


def _version_problems(kube: Kube, wanted: Requirement) -> Iterator[Problem]:
    if wanted.workload is not None:
        found = _workloads(kube, wanted.workload)
        if not found:
            labels = ",".join(f"{key}={value}" for key, value in wanted.workload.labels.items())
            text = f"exists: true, but no {wanted.workload.kind} has the labels {labels}. {_install(wanted)}"
            yield Problem(wanted.part, text)
            return
        for each in found:
            if not _is_ready(wanted.workload.kind, each):
                yield Problem(
                    wanted.part,
                    f"{wanted.workload.kind} {_full_name(each)} has no ready pod, or not all of them. See: kubectl "
                    f"describe {wanted.workload.kind.lower()} -n {each['metadata']['namespace']} "
                    f"{each['metadata']['name']}",
                )
    version = _version(kube, wanted)
    if version and _numbers(version) < _numbers(wanted.minimum):
        text = f"{wanted.title} is {version}, needs {wanted.minimum} or newer. Upgrade it."
        yield Problem(wanted.part, text)


def _rule_problems(kube: Kube, wanted: Requirement, rule: ObjectRule) -> Iterator[Problem]:
    if rule.collection:
        objects = kube.find(rule.path)
    else:
        found = kube.get(rule.path)
        objects = [] if found is None else [found]
    judged = [each for each in objects if not (rule.unless and _has(each, rule.unless))]
    if not objects and rule.optional:
        return
    yield from _label_problems(wanted, rule, judged)
    if not objects:
        step = f"Create it: without it {wanted.title} does nothing." if rule.allowed else rule.cure
        yield Problem(wanted.part, f"there is no {rule.called}. {step}")
    elif rule.every:
        for each in judged:
            for field, allowed in rule.allowed.items():
                if (value := _field(each, field)) not in allowed:
                    name, needs = _full_name(each), " or ".join(allowed)
                    yield Problem(wanted.part, f"{rule.called} {name}: {field} is {value}, needs {needs}. {rule.cure}")
    elif not any(_has(each, rule.allowed) for each in judged):
        fields = ", ".join(f"{field} {allowed[0]}" for field, allowed in rule.allowed.items())
        yield Problem(wanted.part, f"no {rule.called} has {fields}. {rule.cure}")


def _label_problems(wanted: Requirement, rule: ObjectRule, judged: Sequence[Json]) -> Iterator[Problem]:
    for each in judged:
        labels = each["metadata"].get("labels") or {}
        for label, allowed in rule.labels.items():
            if (value := labels.get(label, "unset")) not in allowed:
                found = f"{rule.called} {_full_name(each)}: label {label} is {value}, needs {' or '.join(allowed)}."
                yield Problem(wanted.part, f"{found} {rule.cure}")


def _install(wanted: Requirement) -> str:
    return f"Install {wanted.title}, or remove exists: true to have it installed."


def _version(kube: Kube, wanted: Requirement) -> str:
    """Return the version of a part; empty where none is found."""
    for definition in wanted.definitions:
        body = kube.get(f"{_DEFINITIONS}/{definition.name}") if definition.release_annotation else None
        if body is not None:
            return str((body["metadata"].get("annotations") or {}).get(definition.release_annotation, ""))
    workload = wanted.workload
    for each in _workloads(kube, workload) if workload else ():
        containers = each["spec"]["template"]["spec"]["containers"]
        image = next((one["image"] for one in containers if workload and one["name"] == workload.container), "")
        tag = str(image).partition("@")[0].rpartition(":")[2]
        label = (each["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "")
        return tag if _VERSION.match(tag) else str(label)
    return ""


def _workloads(kube: Kube, wanted: Workload) -> list[Json]:
    return kube.find(_WORKLOADS[wanted.kind], wanted.labels)


def _is_ready(kind: str, body: Json) -> bool:
    status = body.get("status") or {}
    if kind == "DaemonSet":
        # A machine that joins or leaves is no fault of the agent: one of ten may be about to become ready.
        ready, wanted = int(status.get("numberReady") or 0), int(status.get("desiredNumberScheduled") or 0)
        return ready >= wanted - wanted // 10
    return int(status.get("readyReplicas") or 0) > 0


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(int(each or 0) for each in found.groups()) if found else ()


def _has(body: Mapping[str, Any], values: Mapping[str, Sequence[str]]) -> bool:
    return all(_field(body, field) in allowed for field, allowed in values.items())


def _field(body: object, path: str) -> str:
    """Return the value at a dotted path as a rule writes it."""
    for key in path.split("."):
        body = body.get(key) if isinstance(body, Mapping) else None
    return "unset" if body is None else body if isinstance(body, str) else json.dumps(body)


def _full_name(body: Json) -> str:
    namespace, name = body["metadata"].get("namespace"), body["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)
