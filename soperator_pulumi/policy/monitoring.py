"""Policies on monitoring: a cluster has alert rules, and Grafana gives no one admin rights without a login."""

import configparser
from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import patched, stateful_sets, without_companion
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look, mapped, whole_number
from soperator_pulumi.policy.view import ResourceView

_SECTION = "auth.anonymous"
_ENABLED, _ROLE = "enabled", "org_role"
_VARIABLES = {"GF_AUTH_ANONYMOUS_ENABLED": _ENABLED, "GF_AUTH_ANONYMOUS_ORG_ROLE": _ROLE}
"""Options of Grafana that variables override:
https://grafana.com/docs/grafana/latest/setup-grafana/configure-grafana/#authanonymous."""

_TRUE = {"1", "t", "true", "y", "yes", "on"}
"""Words that Grafana reads as true."""

_Option = tuple[Path, str, object]
"""An option of the section: its place, name and value."""


def _anonymous(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    if not resource.is_kubernetes or resource.is_group:
        return
    options = [*_options(resource.props, ())]
    enabled = [value for _, name, value in options if name == _ENABLED]
    roles = [(path, value) for path, name, value in options if name == _ROLE]
    on = any(whole_number(value) == 1 or _word(value) in _TRUE for value in enabled)
    for path, role in roles:
        if (on or UNKNOWN in enabled) and (role is UNKNOWN or _word(role) == "admin"):
            text = "anyone who reaches Grafana is its admin, without a login"
            yield Finding(resource, path, text) if on and role is not UNKNOWN else not_known(resource, path)


def _word(value: object) -> str:
    return str(value).strip(" \"'").lower()


def _options(value: object, path: Path) -> Iterator[_Option]:
    """Yield the options in charts' values, custom resources, variables of containers and files."""
    if isinstance(value, str):
        yield from _in_file(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _options(item, (*path, index))
    elif isinstance(value, Mapping):
        for name, given in mapped(value.get(_SECTION)).items():
            yield (*path, _SECTION, name), name, given
        variable = _VARIABLES.get(str(value.get("name")))
        if variable and "value" in value:
            yield (*path, "value"), variable, value["value"]
        for key, item in value.items():
            if key in _VARIABLES:
                yield (*path, key), _VARIABLES[key], item
            yield from _options(item, (*path, key))


def _in_file(text: str, path: Path) -> Iterator[_Option]:
    if f"[{_SECTION}]" not in text:
        return
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, allow_no_value=True, inline_comment_prefixes=("#", ";"), default_section=""
    )
    try:
        parser.read_string("[before all sections]\n" + "\n".join(map(str.strip, text.splitlines())))
    except configparser.Error:
        return  # Grafana doesn't start with it
    if parser.has_section(_SECTION):
        yield from ((path, name, value) for name, value in parser.items(_SECTION))


ANONYMOUS_GRAFANA = ResourcePolicy(
    name="anonymous-grafana",
    description="Grafana gives no one admin rights without a login.",
    violated_by="a chart's values with `grafana.ini: {auth.anonymous: {enabled: true, org_role: Admin}}`; a container "
    "with `GF_AUTH_ANONYMOUS_ENABLED` and `GF_AUTH_ANONYMOUS_ORG_ROLE: Admin`; such a file in a ConfigMap",
    cure="Give the role Viewer, or turn anonymous access off: grafana.ini: {auth.anonymous: {enabled: false}}.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("monitoring", "security"),
    check=_anonymous,
)


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
