"""Policies on objects that protect pods: NetworkPolicies and PodDisruptionBudgets."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, WithJsonSchema

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy, not_known
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched, selects
from soperator_pulumi.policy.pod_view import PodView, pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, whole_number
from soperator_pulumi.policy.view import ResourceView

_NEVER_EVICTED = ("Controller", "NodeSet")
"""Parts that must not be evicted: the queue would lose its controller, or jobs their nodes."""


_WHOLE = 100
_ALL = 1 << 31
"""More pods than any workload has."""


class NetworkSettings(PolicySettings):
    """Settings of `network-policies`."""

    directions: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        WithJsonSchema({"type": "array", "items": {"enum": ["Ingress", "Egress"]}, "minItems": 1}),
    ] = ("Ingress", "Egress")
    """Directions that NetworkPolicies must cover for every pod. Default: `Ingress` and `Egress`."""


def _isolated(resources: Sequence[ResourceView], _run: Circumstances, settings: NetworkSettings) -> Iterator[Finding]:
    policies = _objects(resources, "NetworkPolicy")
    for pod in _all_pods(resources):
        if not pod.is_whole:
            continue
        if pod.labels is UNKNOWN:
            yield not_known(pod.resource, (*pod.path, "metadata", "labels"))
            continue
        for direction in settings.directions:
            if not any(_directs(policy, direction) and _protects(policy, "podSelector", pod) for policy in policies):
                text = f"no NetworkPolicy of this stack covers the {direction.lower()} of these pods"
                yield Finding(pod.resource, pod.path, text)


def _directs(policy: ResourceView, direction: str) -> bool:
    given = look(policy.props, "spec", "policyTypes")
    default = ["Ingress", "Egress"] if look(policy.props, "spec", "egress") else ["Ingress"]
    return direction in (listed(given) or default)


NETWORK_POLICIES = StackPolicy(
    name="network-policies",
    description="Every pod has NetworkPolicies for its ingress and its egress.",
    violated_by="a workload whose pods no NetworkPolicy of the stack selects",
    cure="Add a NetworkPolicy whose podSelector has the labels of these pods.",
    levels=levels("advisory", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("network", "security"),
    settings=NetworkSettings,
    check=_isolated,
)


def _budgeted(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    budgets = _objects(resources, "PodDisruptionBudget")
    for pod in _all_pods(resources):
        needs = pod.part in _NEVER_EVICTED and pod.is_whole
        if needs and not any(_keeps(budget, pod) for budget in budgets):
            text = "no PodDisruptionBudget of this stack selects these pods and keeps at least one of them"
            yield Finding(pod.resource, pod.path, text)
    for resource in resources:
        if resource.kind == "PodDisruptionBudget" and resource.is_patch and _permits_all(resource, None):
            yield Finding(resource, ("spec",), "permits the eviction of all pods")


def _keeps(budget: ResourceView, pod: PodView) -> bool:
    """Return True for a budget that selects the pods and keeps at least one."""
    if look(budget.props, "spec", "selector") is None or not _protects(budget, "selector", pod):
        return False
    return not _permits_all(budget, whole_number(look(pod.resource.props, "spec", "replicas")))


def _permits_all(budget: ResourceView, pods: int | None) -> bool:
    """Return True for a budget that may evict all of this many pods. Percentages round up.

    Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
    """
    most, least = look(budget.props, "spec", "maxUnavailable"), look(budget.props, "spec", "minAvailable")
    evicted = whole_number(most.removesuffix("%") if isinstance(most, str) else most)
    if evicted is not None and isinstance(most, str) and most.endswith("%"):
        evicted = _ALL if evicted >= _WHOLE else -(-evicted * (pods or 0) // _WHOLE)
    if whole_number(least.removesuffix("%") if isinstance(least, str) else least) == 0:
        return True
    return evicted is not None and evicted >= max(1, _ALL if pods is None else pods)


DISRUPTION_BUDGETS = StackPolicy(
    name="disruption-budgets",
    description="Pods of slurmctld and of workers have a PodDisruptionBudget: an eviction does not ask the owner of a "
    "running job.",
    violated_by="a StatefulSet `controller` or of a node set whose pods no PodDisruptionBudget selects, or one with "
    "`maxUnavailable: 100%` or `minAvailable: 0`",
    cure="Leave the component's PodDisruptionBudget as it is: a transformation has removed or changed it.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("jobs", "availability"),
    check=_budgeted,
)


def _objects(resources: Sequence[ResourceView], kind: str) -> list[ResourceView]:
    """Return the objects of a kind, with their patches applied. A patch protects nothing on its own."""
    return [resource for resource in patched(resources) if resource.is_kubernetes and resource.kind == kind]


def _all_pods(resources: Sequence[ResourceView]) -> Iterator[PodView]:
    for resource in patched(resources):
        yield from pods_of(resource)


def _protects(protector: ResourceView, selector: str, pod: PodView) -> bool:
    """Return True if an object selects a pod, or may: a preview may not know all labels yet."""
    spaces = [protector.namespace, pod.resource.namespace]
    if UNKNOWN not in spaces and spaces[0] != spaces[1]:
        return False
    return selects(look(protector.props, "spec", selector), pod.labels)
