"""Tolerations as objects of Kubernetes have them."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.spec.scheduling import Toleration

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Usual taint of machines with GPUs, which the charts of NVIDIA tolerate."""


def written(tolerations: Sequence[Toleration]) -> list[dict[str, Any]]:
    """Return tolerations with the keys of Kubernetes."""
    return [
        {
            "operator": each.operator.value,
            **({} if each.key is None else {"key": each.key}),
            **({} if each.value is None else {"value": each.value}),
            **({} if each.effect is None else {"effect": each.effect.value}),
            **({} if each.toleration_seconds is None else {"tolerationSeconds": each.toleration_seconds}),
        }
        for each in tolerations
    ]
