"""Dashboard of health: nodes that accept no jobs, with reasons, failing checks and pending drains."""

from soperator_pulumi.monitoring.panels import Dashboard, Query, Row, Unit, bars, number, stack, table

NODES_HEALTH = Dashboard(
    "slurm-health",
    "Slurm health",
    "Nodes that take no jobs, the reasons, and findings of the checks.",
    (
        Row(
            "Now",
            (
                number("Nodes that take no jobs", "sum(slurm_node_unavailable{$here})", warn=1),
                number(
                    "Drained by checks",
                    'count(slurm_node_drain_since_seconds{$here,source="health"}) or vector(0)',
                    warn=1,
                ),
                number(
                    "Drained by deployments",
                    'count(slurm_node_drain_since_seconds{$here,source="deployment"}) or vector(0)',
                ),
                number("Drained by people", 'count(slurm_node_drain_since_seconds{$here,source="admin"}) or vector(0)'),
                number("Failing checks that drain", "sum(slurm_health_check_failed{$here})", warn=1),
            ),
        ),
        Row(
            "Drains",
            (
                table(
                    "Drained nodes",
                    ("node", "source", "operation", "check", "reason"),
                    Query(
                        "time() - max by (node, source, operation, check, reason) "
                        "(slurm_node_drain_since_seconds{$here})",
                        "for",
                        Unit.SECONDS,
                    ),
                ),
                stack(
                    "Drained nodes, by who drained them",
                    Query("count by (source) (slurm_node_drain_since_seconds{$here})", "{{source}}"),
                    width=12,
                ),
                stack(
                    "Drains of deployments",
                    Query(
                        'count by (operation) (slurm_node_drain_since_seconds{$here,source="deployment"})',
                        "{{operation}}",
                    ),
                    width=12,
                ),
            ),
        ),
        Row(
            "Checks",
            (
                bars("Nodes that a check drains", "sum by (check) (slurm_health_check_failed{$here}) > 0", "{{check}}"),
                table(
                    "Failing checks",
                    ("node", "check"),
                    Query("max by (node, check) (slurm_health_check_failed{$here}) == 1", "fails"),
                    width=16,
                ),
                table(
                    "Failing checks that drain nothing",
                    ("node", "check"),
                    Query("max by (node, check) (slurm_health_finding{$here}) == 1", "fails"),
                    width=12,
                ),
                table(
                    "Last long checks",
                    ("node", "check"),
                    Query("max by (node, check) (slurm_long_check_value{$here})", "value"),
                    Query("time() - max by (node, check) (slurm_long_check_time_seconds{$here})", "ago", Unit.SECONDS),
                    Query("max by (node, check) (slurm_long_check_passed{$here})", "passed"),
                    width=12,
                ),
                table(
                    "Firing alerts",
                    ("alertname", "severity", "node", "pod", "check"),
                    Query(
                        'count by (alertname, severity, node, pod, check) (ALERTS{$here,alertstate="firing"})', "count"
                    ),
                ),
            ),
        ),
    ),
)
"""Health of the nodes."""
