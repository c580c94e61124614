"""Alerts of a cluster, and Grafana without admins who need no login, however its options are written."""

from typing import Any

import pytest

from soperator_pulumi.policy import UNKNOWN, ResourceView
from soperator_pulumi.policy.monitoring import ALERT_RULES, ANONYMOUS_GRAFANA
from tests.unit.policy.views import a_pod, an_object, below, paths

METADATA = {"name": "a", "namespace": "hpc"}
INI = 'values.grafana["grafana.ini"]["auth.anonymous"].org_role'


def release(**values: Any) -> ResourceView:
    return an_object("helm.sh/v3:Release", {"chart": "kube-prometheus-stack", "values": {"grafana": values}})


def of_ini(enabled: object, role: object) -> ResourceView:
    return release(**{"grafana.ini": {"auth.anonymous": {"enabled": enabled, "org_role": role}}})


def a_container(**variables: object) -> ResourceView:
    env = [{"name": f"GF_AUTH_ANONYMOUS_{name}", "value": value} for name, value in variables.items()]
    return a_pod({"name": "grafana", "image": "grafana:13", "env": env})


def a_file(text: object, **others: str) -> ResourceView:
    return an_object("core/v1:ConfigMap", {"data": {"grafana.ini": text, **others}})


@pytest.mark.parametrize("enabled", [True, "true", "TRUE", "yes", 1, 1.0, "1", " on "])
def test_an_anonymous_admin_in_a_chart_s_values_is_refused(enabled: object) -> None:
    assert paths(ANONYMOUS_GRAFANA, of_ini(enabled, "Admin")) == [INI]


@pytest.mark.parametrize(
    ("enabled", "role"), [(True, "Viewer"), (True, "Editor"), (False, "Admin"), ("false", "Admin"), (None, "Admin")]
)
def test_viewers_without_a_login_and_admins_with_one_pass(enabled: object, role: object) -> None:
    assert paths(ANONYMOUS_GRAFANA, of_ini(enabled, role)) == []


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (a_container(ENABLED="true", ORG_ROLE="Admin"), "spec.containers[0].env[1].value"),
        (
            release(env={"GF_AUTH_ANONYMOUS_ENABLED": True, "GF_AUTH_ANONYMOUS_ORG_ROLE": "Admin"}),
            "values.grafana.env.GF_AUTH_ANONYMOUS_ORG_ROLE",
        ),
        (
            release(
                env={"GF_AUTH_ANONYMOUS_ORG_ROLE": "Admin"}, **{"grafana.ini": {"auth.anonymous": {"enabled": True}}}
            ),
            "values.grafana.env.GF_AUTH_ANONYMOUS_ORG_ROLE",
        ),
        (a_file("app_mode = x\n[auth.anonymous]\nenabled = true\norg_role = Admin\n"), 'data["grafana.ini"]'),
        (a_file('  [auth.anonymous]\n  enabled = true # all\n  org_role = "Admin" ;\n'), 'data["grafana.ini"]'),
        (
            an_object(
                "grafana.integreatly.org/v1beta1:Grafana",
                {"spec": {"config": {"auth.anonymous": {"enabled": "true", "org_role": "Admin"}}}},
            ),
            'spec.config["auth.anonymous"].org_role',
        ),
    ],
)
def test_an_anonymous_admin_is_found_wherever_grafana_reads_its_options(resource: ResourceView, path: str) -> None:
    assert paths(ANONYMOUS_GRAFANA, resource) == [path]


@pytest.mark.parametrize(
    "resource",
    [
        a_container(ENABLED="true"),
        a_container(ENABLED="true", ORG_ROLE="Viewer"),
        a_file("[auth.anonymous]\nenabled = true\n[users]\nauto_assign_org_role = Admin\n"),
        a_file("[auth.anonymous]\n;enabled = true\norg_role = Admin\n"),
        a_file("org_role = Admin\n[auth.anonymous]\nenabled = true\n"),
        a_file("; [auth.anonymous]\nenabled = true\norg_role = Admin\n"),
        a_file("[auth.anonymous\n[auth.anonymous]\n]] no file of options"),
        release(adminPassword="secret"),
    ],
)
def test_other_options_of_grafana_pass(resource: ResourceView) -> None:
    assert paths(ANONYMOUS_GRAFANA, resource) == []


def test_what_a_preview_does_not_know_is_judged_later() -> None:
    assert paths(ANONYMOUS_GRAFANA, of_ini(UNKNOWN, "Admin"), unknown=True) == [INI]
    assert paths(ANONYMOUS_GRAFANA, of_ini(True, UNKNOWN), unknown=True) == [INI]
    assert paths(ANONYMOUS_GRAFANA, of_ini(UNKNOWN, "Viewer"), unknown=True) == []


def rules(kind: str = "PrometheusRule", **spec: Any) -> ResourceView:
    return an_object(f"monitoring.coreos.com/v1:{kind}", {"metadata": METADATA, "spec": spec})


@pytest.mark.parametrize(
    ("resource", "watches"),
    [
        (rules(groups=[{"rules": [{"alert": "A", "expr": "1"}]}]), True),
        (rules(groups=UNKNOWN), True),
        (rules(groups=[]), False),
        (rules(groups=[{"rules": [{"record": "a", "expr": "1"}]}]), False),
        (rules("PrometheusRulePatch", groups=[{"rules": [{"alert": "A"}]}]), False),
    ],
)
def test_a_cluster_is_watched_by_alerts(resource: ResourceView, *, watches: bool) -> None:
    controller = below("Controller", an_object("apps/v1:StatefulSet", {"metadata": METADATA}, "hpc-controller"))
    assert (paths(ALERT_RULES, controller, resource) == []) is watches
