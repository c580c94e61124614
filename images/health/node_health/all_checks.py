"""All checks: the reading that a check needs, and its judgement. The settings have limits and actions."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from node_health import gpu_checks, node_checks
from node_health.readings import Readings
from node_health.results import CheckResult

Judge = Callable[[float, Readings], CheckResult | None]
"""Function that judges readings by a limit. None if a reading is missing: the check neither passes nor fails."""


class Check(NamedTuple):
    """A check."""

    source: str
    """Reading that it needs (`readers.py`)."""
    judge: Judge


CHECKS: Mapping[str, Check] = {
    "gpu_tool": Check("smi", gpu_checks.tool),
    "gpu_query": Check("smi", gpu_checks.query),
    "gpu_warnings": Check("smi", gpu_checks.warnings),
    "gpu_persistence": Check("smi", gpu_checks.persistence),
    "gpu_count": Check("smi", gpu_checks.count),
    "gpu_model": Check("smi", gpu_checks.model),
    "gpu_xid": Check("kernel", gpu_checks.xid),
    "gpu_xid_noted": Check("kernel", gpu_checks.xid_noted),
    "gpu_recovery": Check("smi", gpu_checks.recovery),
    "gpu_ecc_uncorrected": Check("smi", gpu_checks.uncorrected),
    "gpu_ecc_contained": Check("smi", gpu_checks.contained),
    "gpu_ecc_corrected": Check("smi", gpu_checks.corrected),
    "gpu_remap_failed": Check("smi", gpu_checks.remap_failed),
    "gpu_remap_pending": Check("smi", gpu_checks.remap_pending),
    "gpu_slowdown": Check("smi", gpu_checks.slowdown),
    "gpu_temperature": Check("smi", gpu_checks.temperature),
    "gpu_memory_temperature": Check("smi", gpu_checks.memory_temperature),
    "gpu_pcie_width": Check("smi", gpu_checks.width),
    "gpu_pcie_generation": Check("smi", gpu_checks.generation),
    "gpu_pcie_replays": Check("smi", gpu_checks.replays),
    "gpu_processes": Check("smi", gpu_checks.processes),
    "gpu_memory_used": Check("smi", gpu_checks.memory_used),
    "nvlink_fabric": Check("smi", gpu_checks.fabric),
    "nvlink_missing": Check("smi", gpu_checks.no_fabric),
    "nvlink_links": Check("links", gpu_checks.links),
    "nvlink_errors": Check("links", gpu_checks.link_errors),
    "gpu_peer_access": Check("peers", gpu_checks.peers),
    "network_ports": Check("ports", node_checks.ports_active),
    "network_port_lost": Check("ports", node_checks.ports_lost),
    "network_rate": Check("ports", node_checks.port_rate),
    "network_symbol_errors": Check("ports", node_checks.port_symbol_errors),
    "network_flaps": Check("ports", node_checks.port_flaps),
    "network_receive_errors": Check("ports", node_checks.port_receive_errors),
    "memory_available": Check("machine", node_checks.memory_available),
    "memory_uncorrected": Check("machine", node_checks.memory_errors),
    "memory_corrected": Check("machine", node_checks.corrected_memory_errors),
    "volumes": Check("volumes", node_checks.volumes),
    "volume_space": Check("volumes", node_checks.space),
    "volume_inodes": Check("volumes", node_checks.inodes),
    "shared_memory_used": Check("volumes", node_checks.shared_memory),
    "shared_volumes": Check("volumes", node_checks.shared_volumes),
    "jail": Check("volumes", node_checks.jail),
    "process_ids": Check("machine", node_checks.process_ids),
    "users_process_ids": Check("machine", node_checks.users_process_ids),
    "clock": Check("clock", node_checks.clock),
    "kernel_network": Check("kernel", node_checks.kernel_network),
    "kernel_disk": Check("kernel", node_checks.kernel_disk),
    "kernel_machine_check": Check("kernel", node_checks.kernel_memory),
    "kernel_killed_slurm": Check("kernel", node_checks.kernel_slurm),
    "slurmd": Check("slurmd", node_checks.slurmd),
    "program": Check("program", node_checks.program),
}
"""Checks by their names, which the spec has as well (`soperator_pulumi/spec/health_checks.py`)."""
