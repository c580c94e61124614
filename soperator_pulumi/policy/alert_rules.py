"""Policy on alerts: a cluster that accepts no jobs raises an alert."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched, stateful_sets, without_companion
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look
from soperator_pulumi.policy.view import ResourceView


def _alerting(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    objects = patched(resources)
    rules = (item for item in objects if item.kind == "PrometheusRule" and _alerts(item))
    for stateful_set in without_companion(stateful_sets(objects, "Controller"), rules):
        yield Finding(
            stateful_set, (), "no PrometheusRule of this stack watches this cluster: its faults raise no alert"
        )


def _alerts(resource: ResourceView) -> bool:
    """Return True for rules that contain an alert, or parts that are not known yet."""
    groups = look(resource.props, "spec", "groups")
    rules = [rule for group in listed(groups) for rule in [look(group, "rules")]]
    found = [groups, *rules, *(look(alert, "alert") for rule in rules for alert in listed(rule))]
    return any(name is UNKNOWN or isinstance(name, str) for name in found)


ALERT_RULES = StackPolicy(
    name="alert-rules",
    description="Each cluster has alert rules.",
    violated_by="a cluster without `metrics.alerts`",
    cure="Give the cluster metrics.alerts, as in `metrics: {pod_monitor: true, alerts: {}}`.",
    levels=levels("disabled", "disabled", "advisory", "mandatory"),
    severity=PolicySeverity.MEDIUM,
    tags=("monitoring",),
    check=_alerting,
)
