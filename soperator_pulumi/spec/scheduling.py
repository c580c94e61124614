"""Placement of a role's pods by Kubernetes."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.names import LabelKey, LabelValue, ObjectName
from soperator_pulumi.spec.validation.base import Model, refused, whole
from soperator_pulumi.spec.validation.partial import known

_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_WHEN = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


class TolerationOperator(StrEnum):
    """Comparison of a toleration with a taint."""

    EQUAL = "Equal"
    """Same key and value."""
    EXISTS = "Exists"
    """Same key, any value."""


class TaintEffect(StrEnum):
    """Effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Model):
    """A taint of machines that the pods tolerate, as in a pod's `tolerations`."""

    key: LabelKey | None = None
    """The taint's key. Without it, and with operator Exists: every taint."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    """Comparison of key and value."""
    value: LabelValue | None = None
    """The taint's value, with operator Equal."""
    effect: TaintEffect | None = None
    """The taint's effect. Without it: every effect."""
    toleration_seconds: Annotated[int, whole(0)] | None = None
    """Seconds that a pod stays after a NoExecute taint appears. Without it: for ever."""


def problems(scheduled: "Scheduled", path: str) -> Iterator[Problem]:
    """Yield tolerations that Kubernetes would refuse."""
    for index, toleration in enumerate(scheduled.tolerations):
        where = f"{path}.tolerations[{index}]"
        exists = toleration.operator is TolerationOperator.EXISTS
        if exists and known(toleration.value) and toleration.value:
            yield Problem(f"{where}.value", "given with the operator Exists, which compares the key only. Remove one.")
        if toleration.operator is TolerationOperator.EQUAL and toleration.key is None:
            yield Problem(f"{where}.key", 'missing. Give it, or tolerate every taint by the operator "Exists".')
        seconds, effect = toleration.toleration_seconds, toleration.effect
        if known(seconds, effect) and seconds is not None and effect is not TaintEffect.NO_EXECUTE:
            yield Problem(
                f"{where}.toleration_seconds", 'only the effect "NoExecute" has a time. Set that, or remove it.'
            )


def _affinity(value: object) -> dict[str, Any]:
    """Check the outer structure. Kubernetes checks the terms."""
    wanted = f"needs a mapping as in a pod's `affinity`, with the keys {', '.join(_AFFINITIES)}"
    if not isinstance(value, Mapping):
        raise refused(f"{wanted}.")
    for kind, rules in value.items():
        if kind not in _AFFINITIES:
            raise refused(f"{wanted}; not {kind!r}.")
        if not isinstance(rules, Mapping) or not rules or not set(rules) <= set(_WHEN):
            raise refused(f"{wanted}; {kind} holds {' or '.join(_WHEN)}.")
        for when, terms in rules.items():
            by_node = kind == "nodeAffinity" and when.startswith("required")
            listed = terms.get("nodeSelectorTerms") if by_node and isinstance(terms, Mapping) else terms
            if not isinstance(listed, (list, tuple)) or not all(isinstance(term, Mapping) for term in listed):
                shape = "a mapping with the list nodeSelectorTerms" if by_node else "a list of mappings"
                raise refused(f"{wanted}; {kind}.{when} is {shape}.")
    return dict(value)


Affinity = Annotated[
    dict[str, Any],
    BeforeValidator(_affinity),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                kind: {"type": "object", "properties": {key: {} for key in _WHEN}, "additionalProperties": False}
                for kind in _AFFINITIES
            },
            "additionalProperties": False,
        }
    ),
]
"""A pod's `affinity` as in a Kubernetes manifest, with keys in camelCase."""


class Scheduled(Model):
    """Placement and priority of every role's pods."""

    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Required labels of a machine. Default: any machine."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that the pods tolerate. Default: none."""
    affinity: Affinity | None = None
    """A pod's `affinity` as in a Kubernetes manifest, with keys in camelCase. Default: the role's own."""
    priority_class: ObjectName | None = None
    """Name of an existing PriorityClass. Default: the cluster's own default priority."""
