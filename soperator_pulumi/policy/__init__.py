"""Policies on clusters and on the other resources of a program: a pack for Pulumi, and the same without an engine.

`POLICIES` are plain rules over a plain view of resources. `soperator_pulumi.policy.pack` serves them to Pulumi
(`pip install soperator-pulumi[policy]`), `soperator_pulumi.policy.recorded` runs them on a recorded deployment.
"""

from soperator_pulumi.policy.definition import (
    MARK_AS_SECRET,
    AnyPolicy,
    Circumstances,
    Edit,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import Environment, Levels, PolicyLevel, PolicySeverity, levels
from soperator_pulumi.policy.pod_view import PodView, pods_of
from soperator_pulumi.policy.registry import POLICIES, without
from soperator_pulumi.policy.value_tree import UNKNOWN, look
from soperator_pulumi.policy.view import ResourceView

__all__ = [
    "MARK_AS_SECRET",
    "POLICIES",
    "UNKNOWN",
    "AnyPolicy",
    "Circumstances",
    "Edit",
    "Environment",
    "Finding",
    "Levels",
    "PodView",
    "PolicyLevel",
    "PolicySettings",
    "PolicySeverity",
    "ResourcePolicy",
    "ResourceView",
    "StackPolicy",
    "levels",
    "look",
    "not_known",
    "pods_of",
    "without",
]
