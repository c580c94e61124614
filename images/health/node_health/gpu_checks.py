"""Checks of GPUs, from one answer of nvidia-smi, and of their links."""

from node_health.readings import Readings
from node_health.results import CheckResult, at_least, at_most, none_of


def tool(_limit: float, readings: Readings) -> CheckResult | None:
    """nvidia-smi is in the container: without it no check of GPUs has a reading."""
    return CheckResult(readings.has_smi, "found" if readings.has_smi else "nvidia-smi not found")


def query(_limit: float, readings: Readings) -> CheckResult | None:
    """nvidia-smi answers within its bound."""
    if readings.smi_problem is None:
        return None
    return CheckResult(not readings.smi_problem, readings.smi_problem or "answers")


def count(limit: float, readings: Readings) -> CheckResult | None:
    """Number of GPUs that the driver sees."""
    if readings.gpus is None:
        return None
    return CheckResult(len(readings.gpus) == limit, str(len(readings.gpus)))


def model(_limit: float, readings: Readings) -> CheckResult | None:
    """Product of each GPU, which contains the node set's type."""
    wanted = readings.settings.gpu_type
    if readings.gpus is None or not wanted:
        return None
    others = [f"{each.product} on {each.name}" for each in readings.gpus if not _is_of(wanted, each.product)]
    return none_of(others, "found")


def uncorrected(limit: float, readings: Readings) -> CheckResult | None:
    """Uncorrectable ECC errors since the driver was loaded."""
    return at_most(_values(readings, "uncorrected"), limit)


def corrected(limit: float, readings: Readings) -> CheckResult | None:
    """Corrected ECC errors since the driver was loaded."""
    return at_most(_values(readings, "corrected"), limit)


def remap_pending(_limit: float, readings: Readings) -> CheckResult | None:
    """Rows or pages of a GPU's memory that a reset takes out of use."""
    return _that(readings, "remap_pending", "pending on")


def remap_failed(_limit: float, readings: Readings) -> CheckResult | None:
    """Memory of a GPU that cannot be repaired any more."""
    return _that(readings, "remap_failed", "failed on")


def recovery(_limit: float, readings: Readings) -> CheckResult | None:
    """Action that the driver asks for."""
    if readings.gpus is None:
        return None
    return none_of([f"{each.recovery} of {each.name}" for each in readings.gpus if each.recovery], "needed:")


def slowdown(_limit: float, readings: Readings) -> CheckResult | None:
    """Clocks that the hardware lowers, for heat or power."""
    if readings.gpus is None:
        return None
    return none_of([f"{each.slowdowns[0]} on {each.name}" for each in readings.gpus if each.slowdowns], "active:")


def temperature(limit: float, readings: Readings) -> CheckResult | None:
    """Degrees until the highest operating temperature of the GPU."""
    return at_least(_values(readings, "temperature_margin"), limit, "C")


def memory_temperature(limit: float, readings: Readings) -> CheckResult | None:
    """Degrees until the highest operating temperature of the GPU's memory."""
    return at_least(_values(readings, "memory_margin"), limit, "C")


def width(_limit: float, readings: Readings) -> CheckResult | None:
    """Lanes of the PCIe link, against those of card and slot."""
    if readings.gpus is None:
        return None
    narrow = [
        f"{each.width:g} of {each.widest:g} lanes on {each.name}"
        for each in readings.gpus
        if each.width is not None and each.widest is not None and each.width < each.widest
    ]
    return none_of(narrow, "found")


def generation(_limit: float, readings: Readings) -> CheckResult | None:
    """Generation of the PCIe link of a GPU at full clocks: an idle one lowers it to save power."""
    if readings.gpus is None:
        return None
    old = [
        f"{each.generation:g} of {each.newest_generation:g} on {each.name}"
        for each in readings.gpus
        if each.performance_state == "P0"
        and each.generation is not None
        and each.newest_generation is not None
        and each.generation < each.newest_generation
    ]
    return none_of(old, "found")


def replays(limit: float, readings: Readings) -> CheckResult | None:
    """PCIe packets sent again in the last hour."""
    return at_most(readings.replays or {}, limit)


def fabric(_limit: float, readings: Readings) -> CheckResult | None:
    """NVLink fabric of a GPU, which fabric manager has to have completed."""
    known = [each for each in readings.gpus or () if each.fabric]
    if not known:
        return None
    bad = [f"{each.fabric} on {each.name}" for each in known if each.fabric != "Completed"]
    bad += [
        f"{each.fabric_status} on {each.name}"
        for each in known
        if each.fabric == "Completed" and each.fabric_status not in {"", "Success"}
    ]
    return none_of(bad, "state")


def links(limit: float, readings: Readings) -> CheckResult | None:
    """Active NVLinks of each GPU."""
    active = {gpu: float(sum(each.values())) for gpu, each in (readings.links or {}).items()}
    return at_least(active, limit)


def link_errors(limit: float, readings: Readings) -> CheckResult | None:
    """Errors of NVLinks in the last hour."""
    return at_most(readings.link_errors or {}, limit) if readings.links else None


def peers(_limit: float, readings: Readings) -> CheckResult | None:
    """Access of each GPU to the memory of each other one."""
    return None if readings.peers is None else none_of(readings.peers, "missing:")


def processes(limit: float, readings: Readings) -> CheckResult | None:
    """Processes on GPUs of a node without a job."""
    if readings.gpus is None:
        return None
    return at_most({each.name: float(len(each.processes)) for each in readings.gpus}, limit)


def memory_used(limit: float, readings: Readings) -> CheckResult | None:
    """Memory of GPUs in use on a node without a job: processes of other pods are seen by it alone."""
    return at_most(_values(readings, "memory_used_mib"), limit, "MiB")


def xid(_limit: float, readings: Readings) -> CheckResult | None:
    """Errors of the driver since boot after which a GPU needs a reset (XID)."""
    return None if readings.kernel is None else none_of(readings.kernel.get("xid", []), "found")


def _values(readings: Readings, field: str) -> dict[str, float]:
    values = {each.name: getattr(each, field) for each in readings.gpus or ()}
    return {name: value for name, value in values.items() if value is not None}


def _that(readings: Readings, field: str, word: str) -> CheckResult | None:
    if readings.gpus is None:
        return None
    return none_of([each.name for each in readings.gpus if getattr(each, field)], word)


def _is_of(wanted: str, product: str) -> bool:
    """Return True where a product's name has all parts of a type: `h100`, `rtx-6000`, `nvidia_h100_80gb`."""
    parts = wanted.lower().replace("_", "-").split("-")
    return all(part in product.lower() for part in parts)
