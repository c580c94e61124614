"""Admission of the planned objects: the server judges the real pods with all of its policies, and keeps none."""

import copy
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.verbs import Json, Kube, pods_path
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import PlannedCluster, PlannedPods
from soperator_pulumi.spec.types.quantity import amount
from soperator_pulumi.wording import listed

CHECK = "admission"

_COLLECTIONS = {
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}
_RIGHTS = ("securityContext", "capabilities", "privileged", "appArmorProfile", "seccompProfile")


def admission_findings(kube: Kube, planned: PlannedCluster, namespace: str) -> Iterator[Diagnosis]:
    """Yield objects that the server refuses, and pods that it changes, in an existing namespace."""
    refusals = [*_refused_objects(kube, planned, namespace)]
    yield from refusals
    admitted = 0
    for pods in planned.pods:
        try:
            body = kube.create(pods_path(namespace), pod_of(pods, namespace), dry_run=True)
        except KubernetesError as error:
            yield _refusal(pods.place, "a pod", error)
            continue
        changes = [*changed(pods.spec, body["spec"])]
        admitted += not changes
        if changes:
            yield _mutation(pods.place, changes)
    if not refusals and admitted == len(planned.pods):
        yield passed(CHECK, f'namespace "{namespace}"', f"pods of {admitted} templates are admitted as they are")


def pod_of(pods: PlannedPods, namespace: str) -> Json:
    """Return a pod as its controller would create it."""
    template = copy.deepcopy(pods.template)
    metadata = {**template["metadata"], "name": f"preflight-{pods.component}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def changed(wanted: Any, got: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 any tree of values
    """Yield the paths of values that the server has changed, and of containers that it has added.

    Values that a program leaves unset get defaults, and count as unchanged.
    """
    match wanted, got:
        case dict(), dict():
            for key, value in wanted.items():
                yield from changed(value, got.get(key), f"{path}.{key}".removeprefix("."))
        case list(), list():
            yield from _changed_items(wanted, got, path)
        case _:
            if not _is_same(wanted, got):
                yield path


def _changed_items(wanted: list[Any], got: list[Any], path: str) -> Iterator[str]:
    """Yield changes of a list. Items are matched by name, or else by equality with an existing item."""
    names = [item.get("name") if isinstance(item, dict) else None for item in wanted]
    if all(names) and len({*names}) == len(names):
        there = {item["name"]: item for item in got}
        for item in wanted:
            yield from changed(item, there.get(item["name"]), f"{path}[{item['name']}]")
        if path in {"containers", "initContainers"}:
            yield from (f"{path}[{name}] (added)" for name in there if name not in names)
    elif any(all([*changed(item, other)] for other in got) for item in wanted):
        yield path


def _is_same(wanted: object, got: object) -> bool:
    if wanted == got or (not wanted and not got):
        return True
    first, second = _amount(wanted), _amount(got)
    return first is not None and first == second


def _amount(value: object) -> Decimal | None:
    """Return a quantity in a form that is independent of its spelling: 1024Mi is 1Gi."""
    try:
        return amount(str(value))
    except ValueError:
        return None


def _refused_objects(kube: Kube, planned: PlannedCluster, namespace: str) -> Iterator[Diagnosis]:
    for body in planned.objects:
        if body["kind"] not in _COLLECTIONS:
            continue
        metadata = {**body["metadata"], "name": f"{body['metadata']['name']}-preflight", "namespace": namespace}
        try:
            kube.create(_COLLECTIONS[body["kind"]].format(namespace), {**body, "metadata": metadata}, dry_run=True)
        except KubernetesError as error:
            yield _refusal(f"{body['kind']} {body['metadata']['name']}", "it", error)


def _refusal(place: str, subject: str, error: KubernetesError) -> Diagnosis:
    words = str(error).partition(": ")[2] or str(error)
    return refused(
        CHECK,
        place,
        f"the API server refuses {subject}: {words}".removesuffix("."),
        "admission as it is",
        "Exclude the namespace from the policy in the message. docs/security.md lists the rights of containers.",
    )


def _mutation(place: str, changes: list[str]) -> Diagnosis:
    rights = [change for change in changes if any(word in change for word in _RIGHTS)]
    return (refused if rights else warned)(
        CHECK,
        place,
        f"a webhook or policy changes its pods: {listed(changes, 5)}",
        "pods as they are planned",
        "Exclude the namespace from the webhook (kubectl get mutatingwebhookconfigurations).",
    )
