"""Policy on alerts: somebody hears of a cluster that takes no jobs."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.companions import alone, stateful_sets
from soperator_pulumi.policy.definition import Circumstances, Finding, PolicySettings, StackPolicy
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.patches import patched
from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look
from soperator_pulumi.policy.view import ResourceView


def _alerting(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    objects = patched(resources)
    rules = (each for each in objects if each.kind == "PrometheusRule" and _alerts(each))
    for each in alone(stateful_sets(objects, "Controller"), rules):
        yield Finding(each, (), "no PrometheusRule of this stack watches this cluster: nobody hears of its faults")


def _alerts(resource: ResourceView) -> bool:
    """Return True for rules of which one is an alert, or is not known yet."""
    groups = look(resource.props, "spec", "groups")
    rules = [rule for group in listed(groups) for rule in [look(group, "rules")]]
    found = [groups, *rules, *(look(each, "alert") for rule in rules for each in listed(rule))]
    return any(each is UNKNOWN or isinstance(each, str) for each in found)


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
