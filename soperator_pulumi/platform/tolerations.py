"""Tolerations in Kubernetes' form."""

from collections.abc import Sequence
from typing import Any

from soperator_pulumi.spec.scheduling import Toleration

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Usual taint of machines with GPUs, which NVIDIA's charts tolerate."""


def written(tolerations: Sequence[Toleration]) -> list[dict[str, Any]]:
    """Return tolerations under the keys that Kubernetes uses."""
    return [
        {
            "operator": toleration.operator.value,
            **({} if toleration.key is None else {"key": toleration.key}),
            **({} if toleration.value is None else {"value": toleration.value}),
            **({} if toleration.effect is None else {"effect": toleration.effect.value}),
            **({} if toleration.toleration_seconds is None else {"tolerationSeconds": toleration.toleration_seconds}),
        }
        for toleration in tolerations
    ]
