"""Checks of what every node has: network adapters, memory, volumes, kernel, Slurm, and a user's own program."""

from node_health.readings import Readings
from node_health.results import CheckResult, at_least, at_most, none_of


def ports_lost(_limit: float, readings: Readings) -> CheckResult | None:
    """Ports of InfiniBand or RoCE that were active since the pod's start and are no longer."""
    return none_of(readings.lost_ports or [], "down:") if readings.ports else None


def ports_active(limit: float, readings: Readings) -> CheckResult | None:
    """Active ports of InfiniBand or RoCE."""
    if readings.ports is None:
        return None
    return at_least({"": float(sum(port.active for port in readings.ports.values()))}, limit)


def port_rate(limit: float, readings: Readings) -> CheckResult | None:
    """Rate of every active port: at least the limit, and at least its earlier rate."""
    if not readings.ports:
        return None
    if readings.slow_ports:
        return none_of(readings.slow_ports, "lower than before:")
    return at_least({name: port.rate_gbps for name, port in readings.ports.items() if port.active}, limit, "Gb/s")


def port_symbol_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Symbol errors of a port in the last hour."""
    return _of_ports(readings, limit, "symbol_error")


def port_flaps(limit: float, readings: Readings) -> CheckResult | None:
    """Times that a port's link went down in the last hour."""
    return _of_ports(readings, limit, "link_downed")


def port_receive_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Damaged packets that a port received in the last hour."""
    return _of_ports(readings, limit, "port_rcv_errors")


def memory_available(limit: float, readings: Readings) -> CheckResult | None:
    """Available memory of a node without a job, in percent of the pod's memory."""
    if readings.available_mib is None or not readings.settings.memory_mib:
        return None
    return at_least({"": 100 * readings.available_mib / readings.settings.memory_mib}, limit, "%")


def memory_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Uncorrectable errors of the machine's memory since boot (EDAC)."""
    return at_most(readings.memory_errors or {}, limit)


def corrected_memory_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Corrected errors of the machine's memory in the last hour (EDAC)."""
    return at_most(readings.corrected_memory_errors or {}, limit)


def volumes(_limit: float, readings: Readings) -> CheckResult | None:
    """The node's own volumes: mounted, writable and answering within their bound."""
    return _volume_problems(readings, shared=False)


def shared_volumes(_limit: float, readings: Readings) -> CheckResult | None:
    """Volumes that nodes share, the jail among them: mounted and answering within their bound."""
    return _volume_problems(readings, shared=True)


def jail(_limit: float, readings: Readings) -> CheckResult | None:
    """The jail has an active tree."""
    problem = readings.jail_problem
    return None if problem is None else CheckResult(not problem, problem or "entered")


def space(limit: float, readings: Readings) -> CheckResult | None:
    """Used space of the node's own volumes on disks."""
    return at_most(_used(readings, "space", in_memory=False), limit, "%")


def inodes(limit: float, readings: Readings) -> CheckResult | None:
    """Used inodes of the node's own volumes on disks."""
    return at_most(_used(readings, "inodes", in_memory=False), limit, "%")


def shared_memory(limit: float, readings: Readings) -> CheckResult | None:
    """Used space of /tmp and /dev/shm on a node without a job."""
    return at_most(_used(readings, "space", in_memory=True), limit, "%")


def process_ids(limit: float, readings: Readings) -> CheckResult | None:
    """Process ids in use that belong to no user of the pod, in percent. Users' ids are not a fault of the node."""
    return None if readings.process_ids is None else at_most({"": readings.process_ids}, limit, "%")


def users_process_ids(limit: float, readings: Readings) -> CheckResult | None:
    """Process ids of the user with the most, or of all users together, in percent."""
    if readings.process_ids is None:
        return None
    shares = {f"user {uid}": share for uid, share in readings.users_process_ids.items()}
    if len(shares) > 1 and max(shares.values()) <= limit:
        shares = {"all users": sum(shares.values())}
    return at_most(shares or {"": 0}, limit, "%")


def clock(limit: float, readings: Readings) -> CheckResult | None:
    """Largest error of the clock, as the kernel estimates it."""
    return None if readings.clock_error_seconds is None else at_most({"": readings.clock_error_seconds}, limit, "s")


def kernel_network(_limit: float, readings: Readings) -> CheckResult | None:
    """Failures of network adapters in the kernel's log in the last hour."""
    return _kernel(readings, "network")


def kernel_disk(_limit: float, readings: Readings) -> CheckResult | None:
    """Failures of local file systems and disks in the kernel's log in the last hour."""
    return _kernel(readings, "disk")


def kernel_memory(_limit: float, readings: Readings) -> CheckResult | None:
    """Machine check exceptions in the kernel's log in the last hour."""
    return _kernel(readings, "machine_check")


def kernel_slurm(_limit: float, readings: Readings) -> CheckResult | None:
    """Processes of Slurm that the kernel has killed for memory in the last hour."""
    return _kernel(readings, "killed_slurm")


def slurmd(_limit: float, readings: Readings) -> CheckResult | None:
    """Answer of slurmd about itself."""
    problem = readings.slurmd_problem
    return None if problem is None else CheckResult(not problem, problem or "answers")


def program(_limit: float, readings: Readings) -> CheckResult | None:
    """The user's own program ends with status 0."""
    problem = readings.program_problem
    return None if problem is None else CheckResult(not problem, problem or "status 0")


def _of_ports(readings: Readings, limit: float, counter: str) -> CheckResult | None:
    if readings.port_errors is None or not readings.ports:
        return None
    found = {name: value for name, value in readings.port_errors.items() if name.endswith(f" {counter}")}
    return at_most({name.partition(" ")[0]: value for name, value in found.items()}, limit)


def _volume_problems(readings: Readings, *, shared: bool) -> CheckResult | None:
    found = {path: volume for path, volume in (readings.volumes or {}).items() if volume.shared is shared}
    if not found:
        return None
    return none_of(
        [f"{path} {volume_use.problem}" for path, volume_use in found.items() if volume_use.problem], "failed:"
    )


def _used(readings: Readings, field: str, *, in_memory: bool) -> dict[str, float]:
    memory = {volume.path for volume in readings.settings.volumes if volume.in_memory}
    return {
        path: getattr(volume, field)
        for path, volume in (readings.volumes or {}).items()
        if not volume.shared and not volume.problem and (path in memory) is in_memory
    }


def _kernel(readings: Readings, signature: str) -> CheckResult | None:
    return None if readings.kernel is None else none_of(readings.kernel.get(signature, []), "found")
