"""Version and settings of a platform's existing parts, read from the live cluster.

Nothing is changed. Requirements are data, which `soperator_pulumi.platform.requirements` provides for every part.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import Problem
from soperator_pulumi.kube.verbs import Json, Kube

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
    """Annotation with the version of the part, if no workload shows it."""


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
    """False if the path is that of one object."""
    called: str
    """Name of the objects in a message, in the singular: `ClusterPolicy`."""
    allowed: dict[str, tuple[str, ...]] = {}
    """Allowed values by the path of a field, in JSON's notation, text without quotes. `unset` is an absent field."""
    every: bool = True
    """True if the rule applies to every object, False if one object is enough."""
    optional: bool = False
    """True if the object may be absent."""
    labels: dict[str, tuple[str, ...]] = {}
    """Allowed values of labels, by label."""
    unless: dict[str, tuple[str, ...]] = {}
    """Values of fields, by path, that exempt an object."""
    cure: str
    """Next step, in sentences."""


class Requirement(_Frozen):
    """Requirement on an installed part."""

    part: str
    """Key of the part in the spec."""
    title: str
    """Name of the product."""
    minimum: str
    """Lowest version known to work."""
    definitions: tuple[Definition, ...] = ()
    workload: Workload | None = None
    rules: tuple[ObjectRule, ...] = ()


def installed_problems(kube: Kube, requirements: Sequence[Requirement]) -> Iterator[Problem]:
    """Yield the problems of all parts.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    for requirement in requirements:
        missing = [*_definition_problems(kube, requirement)]
        yield from missing
        yield from _version_problems(kube, requirement)
        if not missing:  # if a kind is missing, so are its objects
            found = [problem for rule in requirement.rules for problem in _rule_problems(kube, requirement, rule)]
            yield from dict.fromkeys(found)


def installed_versions(kube: Kube, requirements: Sequence[Requirement]) -> dict[str, str]:
    """Return the installed versions by part; a part that is not found has an empty version.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    return {
        requirement.part: _version(kube, requirement)
        for requirement in requirements
        if requirement.definitions or requirement.workload
    }


def _definition_problems(kube: Kube, wanted: Requirement) -> Iterator[Problem]:
    for definition in wanted.definitions:
        body = kube.get(f"{_DEFINITIONS}/{definition.name}")
        if body is None:
            text = f"exists: true, but {wanted.title} has no definition {definition.name} here. {_install(wanted)}"
            yield Problem(wanted.part, text)
            continue
        served = [version["name"] for version in body["spec"]["versions"] if version.get("served")]
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
        for found_workload in found:
            if not _is_ready(wanted.workload.kind, found_workload):
                yield Problem(
                    wanted.part,
                    f"{wanted.workload.kind} {_full_name(found_workload)} has no ready pod, or some are not ready. "
                    "See: kubectl "
                    f"describe {wanted.workload.kind.lower()} -n {found_workload['metadata']['namespace']} "
                    f"{found_workload['metadata']['name']}",
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
    judged = [item for item in objects if not (rule.unless and _has(item, rule.unless))]
    if not objects and rule.optional:
        return
    yield from _label_problems(wanted, rule, judged)
    if not objects:
        step = f"Create it: without it {wanted.title} does nothing." if rule.allowed else rule.cure
        yield Problem(wanted.part, f"there is no {rule.called}. {step}")
    elif rule.every:
        for item in judged:
            for field, allowed in rule.allowed.items():
                if (value := _field(item, field)) not in allowed:
                    name, needs = _full_name(item), " or ".join(allowed)
                    yield Problem(wanted.part, f"{rule.called} {name}: {field} is {value}, needs {needs}. {rule.cure}")
    elif not any(_has(item, rule.allowed) for item in judged):
        fields = ", ".join(f"{field} {allowed[0]}" for field, allowed in rule.allowed.items())
        yield Problem(wanted.part, f"no {rule.called} has {fields}. {rule.cure}")


def _label_problems(wanted: Requirement, rule: ObjectRule, judged: Sequence[Json]) -> Iterator[Problem]:
    for item in judged:
        labels = item["metadata"].get("labels") or {}
        for label, allowed in rule.labels.items():
            if (value := labels.get(label, "unset")) not in allowed:
                found = f"{rule.called} {_full_name(item)}: label {label} is {value}, needs {' or '.join(allowed)}."
                yield Problem(wanted.part, f"{found} {rule.cure}")


def _install(wanted: Requirement) -> str:
    return f"Install {wanted.title}, or remove exists: true so that the platform installs it."


def _version(kube: Kube, wanted: Requirement) -> str:
    """Return the version of a part; empty if none is found."""
    for definition in wanted.definitions:
        body = kube.get(f"{_DEFINITIONS}/{definition.name}") if definition.release_annotation else None
        if body is not None:
            return str((body["metadata"].get("annotations") or {}).get(definition.release_annotation, ""))
    workload = wanted.workload
    for found in _workloads(kube, workload) if workload else ():
        containers = found["spec"]["template"]["spec"]["containers"]
        image = next((one["image"] for one in containers if workload and one["name"] == workload.container), "")
        tag = str(image).partition("@")[0].rpartition(":")[2]
        label = (found["metadata"].get("labels") or {}).get("app.kubernetes.io/version", "")
        return tag if _VERSION.match(tag) else str(label)
    return ""


def _workloads(kube: Kube, wanted: Workload) -> list[Json]:
    return kube.find(_WORKLOADS[wanted.kind], wanted.labels)


def _is_ready(kind: str, body: Json) -> bool:
    status = body.get("status") or {}
    if kind == "DaemonSet":
        # A machine that joins or leaves is not the agent's fault: one of ten may be about to become ready.
        ready, wanted = int(status.get("numberReady") or 0), int(status.get("desiredNumberScheduled") or 0)
        return ready >= wanted - wanted // 10
    return int(status.get("readyReplicas") or 0) > 0


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(int(group or 0) for group in found.groups()) if found else ()


def _has(body: Mapping[str, Any], values: Mapping[str, Sequence[str]]) -> bool:
    return all(_field(body, field) in allowed for field, allowed in values.items())


def _field(body: object, path: str) -> str:
    """Return the value at a dotted path in the notation of rules."""
    for key in path.split("."):
        body = body.get(key) if isinstance(body, Mapping) else None
    return "unset" if body is None else body if isinstance(body, str) else json.dumps(body)


def _full_name(body: Json) -> str:
    namespace, name = body["metadata"].get("namespace"), body["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else str(name)
