"""Checks of GPUs, from one answer of nvidia-smi, and of their links."""

from node_health import earlier_rounds
from node_health.gpu_models import has_fabric, is_of_type
from node_health.readings import Readings
from node_health.results import CheckResult, at_least, at_most, none_of, plain

_WHOLE_BOARD = 8
"""GPUs of a whole board (HGX), all of which have links: a smaller machine may be a part of one, with fewer or none."""


def tool(_limit: float, readings: Readings) -> CheckResult | None:
    """nvidia-smi is in the container. Otherwise no GPU check has a reading."""
    return CheckResult(readings.has_smi, "found" if readings.has_smi else "nvidia-smi not found")


def query(_limit: float, readings: Readings) -> CheckResult | None:
    """nvidia-smi answers about every GPU within its time limit."""
    if readings.smi_problem is None:
        return None
    gone = [f"{gpu.gone} on {gpu.name}" for gpu in readings.gpus or () if gpu.gone]
    if gone:
        return none_of(gone, "found")
    return CheckResult(not readings.smi_problem, readings.smi_problem or "answers")


def warnings(_limit: float, readings: Readings) -> CheckResult | None:
    """Warnings of nvidia-smi, and single values that are errors."""
    if readings.gpus is None:
        return None
    errors = [f"{error} on {gpu.name}" for gpu in readings.gpus for error in gpu.errors]
    return none_of([*readings.smi_warnings, *errors], "found")


def persistence(_limit: float, readings: Readings) -> CheckResult | None:
    """Persistence mode, without which each answer of nvidia-smi loads the driver first."""
    if readings.gpus is None:
        return None
    return none_of([gpu.name for gpu in readings.gpus if not gpu.persistent], "off on")


def count(limit: float, readings: Readings) -> CheckResult | None:
    """Number of GPUs that the driver sees."""
    if readings.gpus is None:
        return None
    return CheckResult(len(readings.gpus) == limit, str(len(readings.gpus)))


def model(_limit: float, readings: Readings) -> CheckResult | None:
    """Product name of every GPU, which must match the node set's type."""
    wanted = readings.settings.gpu_type
    if readings.gpus is None or not wanted:
        return None
    others = [f"{gpu.product} on {gpu.name}" for gpu in readings.gpus if not is_of_type(wanted, gpu.product)]
    return none_of(others, "found")


def uncorrected(limit: float, readings: Readings) -> CheckResult | None:
    """Uncorrectable ECC errors since the driver was loaded."""
    return at_most(_values(readings, "uncorrected"), limit)


def contained(limit: float, readings: Readings) -> CheckResult | None:
    """Uncorrectable errors of DRAM since the driver was loaded, which the GPU has contained."""
    return at_most(_values(readings, "contained"), limit)


def corrected(limit: float, readings: Readings) -> CheckResult | None:
    """Corrected ECC errors since the driver was loaded."""
    return at_most(_values(readings, "corrected"), limit)


def remap_pending(_limit: float, readings: Readings) -> CheckResult | None:
    """Parts of a GPU that the next reset repairs or disables."""
    if readings.gpus is None:
        return None
    return none_of([f"{part} on {gpu.name}" for gpu in readings.gpus for part in gpu.pending], "pending:")


def remap_failed(_limit: float, readings: Readings) -> CheckResult | None:
    """Memory of a GPU that cannot be repaired any more."""
    if readings.gpus is None:
        return None
    return none_of([f"{part} on {gpu.name}" for gpu in readings.gpus for part in gpu.broken], "failed:")


def recovery(_limit: float, readings: Readings) -> CheckResult | None:
    """Recovery action that the driver asks for."""
    if readings.gpus is None:
        return None
    return none_of([f"{gpu.recovery} of {gpu.name}" for gpu in readings.gpus if gpu.recovery], "needed:")


def slowdown(_limit: float, readings: Readings) -> CheckResult | None:
    """Clocks that the hardware lowers because of heat or power."""
    if readings.gpus is None:
        return None
    return none_of([f"{gpu.slowdowns[0]} on {gpu.name}" for gpu in readings.gpus if gpu.slowdowns], "active:")


def temperature(limit: float, readings: Readings) -> CheckResult | None:
    """Degrees until the highest operating temperature of the GPU."""
    return at_least(_values(readings, "temperature_margin"), limit, "C")


def memory_temperature(limit: float, readings: Readings) -> CheckResult | None:
    """Degrees until the highest operating temperature of the GPU's memory."""
    return at_least(_values(readings, "memory_margin"), limit, "C")


def width(_limit: float, readings: Readings) -> CheckResult | None:
    """Lanes of the PCIe link, compared with the most that this GPU, or most GPUs of its kind on the node, had."""
    working = [gpu for gpu in readings.gpus or () if gpu.width is not None]
    now = {gpu.name: gpu.width or 0.0 for gpu in working}
    if not now:
        return None
    usual = earlier_rounds.of_most(now, {gpu.name: gpu.product for gpu in working})
    narrow = [
        f"{plain(now[gpu.name])} of {plain(best)} lanes on {gpu.name}"
        for gpu in working
        if now[gpu.name] < (best := max(readings.best_widths.get(gpu.name, 0), usual[gpu.name])) and not gpu.rests
    ]
    return none_of(narrow, "found") if narrow else CheckResult(passed=True, value=f"{plain(min(now.values()))} lanes")


def generation(_limit: float, readings: Readings) -> CheckResult | None:
    """Generation of the PCIe link of a GPU at full clocks: an idle one lowers it to save power."""
    if readings.gpus is None:
        return None
    old = [
        f"{gpu.generation:g} of {gpu.newest_generation:g} on {gpu.name}"
        for gpu in readings.gpus
        if gpu.performance_state == "P0"
        and gpu.generation is not None
        and gpu.newest_generation is not None
        and gpu.generation < gpu.newest_generation
    ]
    return none_of(old, "found")


def replays(limit: float, readings: Readings) -> CheckResult | None:
    """PCIe packets sent again in the last hour."""
    return at_most(readings.replays or {}, limit)


def fabric(_limit: float, readings: Readings) -> CheckResult | None:
    """NVLink fabric of a GPU: fabric manager must have completed it, and it must be healthy."""
    known = [gpu for gpu in readings.gpus or () if gpu.fabric]
    if all(gpu.fabric == "N/A" for gpu in known):
        return None  # `no_fabric`
    bad = [f"{' and '.join(gpu.fabric_problems)} on {gpu.name}" for gpu in known if gpu.fabric_problems]
    bad += [f"no state on {gpu.name}" for gpu in known if gpu.fabric == "N/A" and has_fabric(gpu.product)]
    return none_of(bad, "found")


def no_fabric(_limit: float, readings: Readings) -> CheckResult | None:
    """NVLink of a node whose GPUs could be linked. Some machines are a part of a board without links."""
    boards = [gpu for gpu in readings.gpus or () if has_fabric(gpu.product)]
    if len(boards) < 2:
        return None
    bad = ["a fabric"] if all(gpu.fabric == "N/A" for gpu in boards) else []
    if readings.links and not any(any(states.values()) for states in readings.links.values()):
        bad.append("links")
    return none_of([f"no GPU has {' and '.join(bad)}"] if bad else [], "found")


def links(limit: float, readings: Readings) -> CheckResult | None:
    """Active NVLinks of every GPU: as many as before and, on boards, as many as the model and the neighbours have.

    In a smaller machine, all may have fewer alike: four V100 of a board of eight have 4 of 6 (p3.8xlarge of AWS).
    """
    boards = {gpu: float(sum(states.values())) for gpu, states in (readings.links or {}).items()}
    cards = {gpu: float(sum(states.values())) for gpu, states in (readings.bridges or {}).items()}
    counted = {**boards, **cards}
    lost = {gpu: best for gpu, best in readings.best_links.items() if counted.get(gpu, best) < best}
    if not any(counted.values()) and not lost and not (limit and len(boards) >= _WHOLE_BOARD):
        return None  # `no_fabric`
    if len(boards) < _WHOLE_BOARD and len({*boards.values()}) == 1:
        limit = 0  # a part of a board: its links to the other GPUs, as of V100 without a switch, end nowhere
    usual = earlier_rounds.of_most(boards, {})
    wanted = {gpu: max(lost.get(gpu, 0), usual.get(gpu, 0)) for gpu in counted}
    wanted |= {gpu: max(boards.values()) for gpu, count in boards.items() if not count}
    fewer = [f"{plain(counted[gpu])} of {plain(best)} on {gpu}" for gpu, best in wanted.items() if counted[gpu] < best]
    by_model = at_least(boards, limit)
    if by_model and not by_model.passed:
        return by_model
    return none_of(fewer, "active:") if fewer else by_model or at_least(cards, 0)


def link_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Errors of NVLinks in the last hour."""
    return at_most(readings.link_errors or {}, limit) if readings.links else None


def peers(_limit: float, readings: Readings) -> CheckResult | None:
    """Access of every GPU to the memory of every other one."""
    return None if readings.peers is None else none_of(readings.peers, "missing:")


def processes(limit: float, readings: Readings) -> CheckResult | None:
    """Processes on GPUs of a node without a job."""
    if readings.gpus is None:
        return None
    return at_most({gpu.name: float(len(gpu.processes)) for gpu in readings.gpus}, limit)


def memory_used(limit: float, readings: Readings) -> CheckResult | None:
    """GPU memory in use on a node without a job. Processes of other pods show only here."""
    return at_most(_values(readings, "memory_used_mib"), limit, "MiB")


def xid(_limit: float, readings: Readings) -> CheckResult | None:
    """Driver errors (Xid) after which a GPU needs a reset, a reboot or a replacement, until that happens."""
    return _of_kernel(readings, "xid")


def xid_noted(_limit: float, readings: Readings) -> CheckResult | None:
    """Driver errors (Xid) of the last hour that deserve a look but need no action."""
    return _of_kernel(readings, "xid_noted")


def _of_kernel(readings: Readings, signature: str) -> CheckResult | None:
    """Return errors of GPUs by their index in nvidia-smi, if it has answered."""
    if readings.kernel is None:
        return None
    found = readings.kernel.get(signature, [])
    for gpu in readings.gpus or ():
        found = [place.replace(f"of {gpu.address}", f"of {gpu.name} at {gpu.address}") for place in found]
    return none_of(found, "found")


def _values(readings: Readings, field: str) -> dict[str, float]:
    values = {gpu.name: getattr(gpu, field) for gpu in readings.gpus or ()}
    return {name: value for name, value in values.items() if value is not None}
