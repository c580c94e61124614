"""Dashboards of nodes: their load, GPUs and links, and their health with reasons, failing checks and pending drains."""

from soperator_pulumi.monitoring.panels import (
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    Variable,
    bars,
    lines,
    number,
    stack,
    table,
)

_NODES = '{$here,node=~"$node"}'


def _by_node(title: str, metric: str, unit: Unit, about: str = "") -> Panel:
    return lines(title, Query(f"avg by (node) ({metric}{_NODES})", "{{node}}"), unit=unit, about=about)


def _by_gpu(title: str, metric: str, unit: Unit, about: str = "") -> Panel:
    return lines(title, Query(f"max by (node, gpu) ({metric}{_NODES})", "{{node}} GPU {{gpu}}"), unit=unit, about=about)


NODES_AND_GPUS = Dashboard(
    "slurm-nodes",
    "Slurm nodes and GPUs",
    "Load of every node and GPU, compared with what Slurm has allocated to jobs.",
    (
        Row(
            "Nodes",
            (
                table(
                    "Nodes",
                    ("node", "machine"),
                    Query(
                        f"max by (node, machine) (slurm_node:machine:info{_NODES} * on (namespace, node) group_left () "
                        f"max by (namespace, node) (slurm_node_cpus{_NODES}))",
                        "CPUs for jobs",
                    ),
                ),
                _by_node("CPUs of the machine in use", "slurm_node:machine_cpu_busy:ratio", Unit.RATIO),
                _by_node("Memory of the machine in use", "slurm_node:machine_memory_used:ratio", Unit.RATIO),
                _by_node("Load per CPU", "slurm_node:machine_load:ratio", Unit.COUNT),
                lines(
                    "CPUs given to jobs",
                    Query(
                        f"max by (node) (slurm_node_cpus_alloc{_NODES}) / max by (node) (slurm_node_cpus{_NODES})",
                        "{{node}}",
                    ),
                    unit=Unit.RATIO,
                ),
                lines(
                    "Memory given to jobs",
                    Query(
                        f"max by (node) (slurm_node_memory_alloc_bytes{_NODES}) / "
                        f"max by (node) (slurm_node_memory_bytes{_NODES})",
                        "{{node}}",
                    ),
                    unit=Unit.RATIO,
                ),
                _by_node("OOM kills in 15 minutes", "slurm_node:machine_oom_kills:increase15m", Unit.COUNT),
            ),
        ),
        Row(
            "GPUs",
            (
                _by_gpu(
                    "Utilization",
                    "slurm_node:gpu_utilization:ratio",
                    Unit.RATIO,
                    "Time in which anything runs, however little.",
                ),
                _by_gpu("Tensor cores", "slurm_node:gpu_tensor_active:ratio", Unit.RATIO, "Time in which they work."),
                _by_gpu("Memory in use", "slurm_node:gpu_memory_used:bytes", Unit.BYTES),
                _by_gpu("Temperature", "slurm_node:gpu_temperature:celsius", Unit.CELSIUS),
                _by_gpu("Power", "slurm_node:gpu_power:watts", Unit.WATT),
                lines(
                    "GPUs given to jobs",
                    Query(f"max by (node) (slurm_node_gpus_alloc{_NODES})", "{{node}}"),
                ),
            ),
        ),
        Row(
            "Links and shared files",
            (
                _by_node("InfiniBand received", "slurm_node:infiniband_received:bytes_rate5m", Unit.BYTES_PER_SECOND),
                _by_node("InfiniBand sent", "slurm_node:infiniband_sent:bytes_rate5m", Unit.BYTES_PER_SECOND),
                _by_node("Links down in an hour", "slurm_node:infiniband_link_downed:increase1h", Unit.COUNT),
                _by_node("Symbol errors in an hour", "slurm_node:infiniband_symbol_errors:increase1h", Unit.COUNT),
                _by_node("NFS retransmissions", "slurm_node:nfs_retransmissions:rate5m", Unit.PER_SECOND),
            ),
        ),
    ),
    (Variable("node", "Node", "slurm_node_cpus{$here}", "node", several=True),),
)
"""Nodes and their GPUs."""


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
