"""Answers of `nvidia-smi -q -x`, parsed: one call a round for most checks of GPUs.

Elements changed their names between drivers: `clocks_throttle_reasons` (until 530) became `clocks_event_reasons`;
`sram_uncorrectable` (until 535) was split; thresholds of temperatures became margins (`tlimit`) with Hopper; the
health of a fabric came with 550. A value that a GPU does not have is `N/A`, `[N/A]` or `Not Supported`, and here None.
A GPU that is gone has an error in place of each value: `GPU is lost`.

Names of users' programs stand unescaped in the answer. So nothing counts from the begin of a GPU's processes on, but
their pids; and an answer with more GPUs than it announces before the first of them has forged ones.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from node_health.gpu_log import address
from node_health.gpu_models import retires_pages
from node_health.patterns import pattern

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_HEAD = pattern(r"<nvidia_smi_log>(?:(?!<gpu ).)*?<attached_gpus>\s*(\d{1,3})\s*</attached_gpus>", re.DOTALL)
_GPU = pattern(r"<gpu id=\"[^\"<>]*\">")
_END_OF_OWN = pattern(r"<processes>|</gpu>")
_PROCESS = pattern(r"<pid>(\d{1,10})</pid>\s*<type>C")
_ANSWER = pattern(r"<\?xml.*</nvidia_smi_log>|<\?xml.*", re.DOTALL)

_NUMBER = pattern(r"-?\d{1,15}(?:\.\d{1,6})?(?![\d.])")
_NO_VALUE = pattern(
    r"\[?(?:n/a|not supported|none|insufficient permissions|requested functionality.*)?\]?", re.IGNORECASE
)
_GONE = pattern(r"GPU is lost|GPU requires reset|GPU requires restart|fallen off the bus", re.IGNORECASE)
_ERROR = pattern(r"\[?(?:unknown error|err!|gpu error|internal error|timeout)\]?", re.IGNORECASE)
_MOST_ERRORS = 2
"""Most error values of a GPU that still counts as one that answers."""

_UNREAD = {"fan_speed", "power_draw", "average_power_draw", "instant_power_draw", "power_state"}
"""Values that no check reads, and that are errors on some healthy cards."""

_SLOWDOWNS = {
    "hw_power_brake_slowdown": "power brake",
    "hw_thermal_slowdown": "thermal slowdown",
    "hw_slowdown": "hardware slowdown",
}
"""Hardware reasons for lower clocks, particular ones before the general one, which is active with any of them."""

_PENDING = {
    "rows": ("remapped_rows/remapped_row_pending",),
    "pages": ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
    "TPC": ("ecc_errors/tpc_repair_pending",),
    "channel": ("ecc_errors/channel_repair_pending",),
}
_BROKEN = {
    "rows": "remapped_rows/remapped_row_failure",
    "memory": "ecc_errors/unrepairable_memory",
    "SRAM": "ecc_errors/aggregate/sram_threshold_exceeded",
}
_FABRIC = {
    "status": "Success",
    "health/summary": "Healthy",
    "health/bandwidth": "Full",
    "health/route_unhealthy": "False",
    "health/route_recovery_in_progress": "False",
    "health/access_timeout_recovery": "False",
    "health/incorrect_configuration": "None",
}
"""Good values of a fabric."""

_MEMORY_LIMIT_C = 95.0
"""Highest operating temperature of HBM, as drivers before 550 print it for A100 and H100. Drivers with margins print 0
for the memory's, and its temperature in degrees."""


class ForgedAnswerError(ValueError):
    """The answer describes more GPUs than it announces: a program's name forges some. Ask for every GPU separately."""

    def __init__(self, attached: int) -> None:
        super().__init__(f"{attached} GPUs announced, more described: the name of a program forges some")
        self.attached = attached


class Gpu(NamedTuple):
    """One GPU, as `nvidia-smi -q -x` describes it."""

    name: str
    """Place in findings: `GPU 3`, by the index of nvidia-smi, as its other tables have it."""
    product: str
    uuid: str
    serial: str
    address: str
    """PCI address as in the kernel's log: `0000:9b:00`."""
    minor: int | None
    """Number of /dev/nvidia3."""
    persistent: bool
    """The driver stays loaded between programs. True if the GPU lacks this mode."""
    gone: str
    """Error that replaces all values of the GPU; empty if there is none."""
    errors: tuple[str, ...]
    """Values that are errors on a GPU that otherwise answers: `replay_counter: Unknown Error`."""
    uncorrected: float | None
    """Uncorrectable ECC errors since the driver was loaded, without contained ones."""
    contained: float | None
    """Uncorrectable errors of DRAM that the GPU contains and remaps: Ampere and newer."""
    corrected: float | None
    pending: tuple[str, ...]
    """Parts that the next reset repairs or disables: `rows`, `pages`, `TPC`, `channel`."""
    broken: tuple[str, ...]
    """Parts that nothing can repair: `rows`, `memory`, `SRAM`."""
    recovery: str
    """Action that the driver asks for: `Reset`, `Reboot`, `Drain P2P`; empty if there is none."""
    asks_nothing: bool
    """The driver states that no action is needed. False for drivers before 570, which state nothing."""
    slowdowns: tuple[str, ...]
    """Active hardware reasons for lower clocks."""
    temperature_margin: float | None
    """Degrees left until the GPU's own highest operating temperature."""
    memory_margin: float | None
    width: float | None
    generation: float | None
    newest_generation: float | None
    performance_state: str
    replays: float | None
    fabric: str
    """State of NVLink's fabric: `Completed`, `In Progress`, `N/A`; empty for a driver without one."""
    fabric_problems: tuple[str, ...]
    processes: tuple[int, ...]
    memory_used_mib: float | None

    @property
    def rests(self) -> bool:
        """Return True for a GPU in a low-power state, in which its PCIe link may be slower and narrower."""
        return bool(re.fullmatch(r"P(?:[5-9]|1\d)", self.performance_state))


def parse_query(output: str) -> tuple[Gpu, ...]:
    """Return the GPUs in the output of `nvidia-smi -q -x`, with or without warnings around it.

    Raises:
        ForgedAnswerError: A program's name looks like a GPU: ask for every GPU alone.
        ValueError: The output is not such an answer, or is cut.
    """
    head = _HEAD.search(output)
    if head is None:
        raise ValueError(first_words(output) or "no answer of nvidia-smi")
    attached = int(head[1])
    begins = [found.start() for found in _GPU.finditer(output, head.end())]
    if attached == 1:
        del begins[1:]  # the first one is the driver's
    if len(begins) > attached:
        raise ForgedAnswerError(attached)
    if len(begins) < attached:
        raise ValueError(f"{attached} GPUs announced, {len(begins)} described")
    ends = [*begins[1:], len(output)]
    return tuple(_gpu(output[begin:end], number) for number, (begin, end) in enumerate(zip(begins, ends, strict=True)))


def parse_alone(output: str, number: int) -> Gpu:
    """Return the GPU in the output of `nvidia-smi -q -x -i <number>`.

    Raises:
        ValueError: The output is not such an answer, or is cut.
    """
    head = _HEAD.search(output)
    begin = _GPU.search(output, head.end()) if head else None
    if begin is None:
        raise ValueError(first_words(output) or f"no answer about GPU {number}")
    return _gpu(output[begin.start() :], number)


def warnings(output: str) -> list[str]:
    """Return the lines before and after an answer, such as `WARNING: infoROM is corrupted at gpu 0000:1B:00.0`."""
    return [line.strip() for line in _ANSWER.sub("\n", output).splitlines() if line.strip()]


def first_words(output: str) -> str:
    """Return the first line that is not XML, in at most 80 printable characters; empty if there is none."""
    line = next((line for line in warnings(output) if not line.startswith("<")), "")
    return "".join(character if character.isprintable() else "?" for character in line)[:80]


def _gpu(text: str, number: int) -> Gpu:
    from xml.etree.ElementTree import (  # noqa: PLC0415 - takes long to load, and nodes without GPUs need none
        ParseError,
        fromstring,
    )

    own = _END_OF_OWN.search(text)
    if own is None:
        raise ValueError(f"the description of GPU {number} is cut")
    try:
        gpu = fromstring(f"{text[: own.start()]}</gpu>")  # noqa: S314 - the driver's own part
    except ParseError as error:
        raise ValueError(f"the description of GPU {number} is no XML: {error}") from error
    gone, errors = _errors(gpu)
    minor = _number(gpu, "minor_number")
    contains = _contains(gpu)
    links = "pci/pci_gpu_link_info"
    return Gpu(
        name=f"GPU {number}",
        product=_text(gpu, "product_name"),
        uuid=_text(gpu, "uuid"),
        serial=_text(gpu, "serial"),
        address=address(gpu.get("id", "")),
        minor=None if minor is None else int(minor),
        persistent=_text(gpu, "persistence_mode") != "Disabled",
        gone=gone,
        errors=errors,
        uncorrected=_sum(gpu, "[sd]ram_uncorrectable" if not contains else "sram_uncorrectable", "double_bit/total"),
        contained=_sum(gpu, "dram_uncorrectable") if contains else None,
        corrected=_sum(gpu, "[sd]ram_correctable", "single_bit/total"),
        pending=tuple(part for part, paths in _PENDING.items() if any(_says_yes(gpu, path) for path in paths)),
        broken=tuple(part for part, path in _BROKEN.items() if _says_yes(gpu, path)),
        recovery=_recovery(gpu),
        asks_nothing=(gpu.findtext("gpu_recovery_action") or "").strip() == "None",
        slowdowns=tuple(words for reason, words in _SLOWDOWNS.items() if _is_active(gpu, reason)),
        temperature_margin=_margin(gpu),
        memory_margin=_memory_margin(gpu),
        width=_number(gpu, f"{links}/link_widths/current_link_width"),
        generation=_number(gpu, f"{links}/pcie_gen/current_link_gen"),
        newest_generation=_number(gpu, f"{links}/pcie_gen/max_link_gen"),
        performance_state=_text(gpu, "performance_state"),
        replays=_number(gpu, "pci/replay_counter"),
        fabric=_text(gpu, "fabric/state") or ("N/A" if (gpu.findtext("fabric/state") or "").strip() == "N/A" else ""),
        fabric_problems=() if gone else tuple(_fabric_problems(gpu)),
        processes=tuple(int(pid) for pid in _PROCESS.findall(text, own.start())),
        memory_used_mib=_number(gpu, "fb_memory_usage/used"),
    )


def _text(gpu: "Element", path: str) -> str:
    """Return the text of an element; empty if the GPU lacks it, or has an error in its place."""
    text = (gpu.findtext(path) or "").strip()
    return "" if _NO_VALUE.fullmatch(text) or _GONE.search(text) or _ERROR.fullmatch(text) else text


def _number(gpu: "Element", path: str) -> float | None:
    found = _NUMBER.match(_text(gpu, path))
    return float(found[0]) if found else None


def _says_yes(gpu: "Element", path: str) -> bool:
    return _text(gpu, path).lower() == "yes"


def _is_active(gpu: "Element", reason: str) -> bool:
    names = ("clocks_event_reason", "clocks_throttle_reason")
    return any(_text(gpu, f"{name}s/{name}_{reason}") == "Active" for name in names)


def _errors(gpu: "Element") -> tuple[str, tuple[str, ...]]:
    """Return the error of an unresponsive GPU, or the error values that a GPU reports."""
    texts = [(element.tag, (element.text or "").strip()) for element in gpu.iter() if element.tag not in _UNREAD]
    gone = next((text for _, text in texts if _GONE.search(text)), "")
    errors = [(tag, text) for tag, text in texts if _ERROR.fullmatch(text)]
    if not gone and len(errors) > _MOST_ERRORS:
        gone = errors[0][1]
    return gone[:40], () if gone else tuple(f"{tag}: {text}" for tag, text in errors)


def _contains(gpu: "Element") -> bool:
    """Return True for a GPU that contains and remaps DRAM errors. MIG instances hide the rows."""
    if _number(gpu, "remapped_rows/remapped_row_unc") is not None or _text(gpu, "remapped_rows/remapped_row_failure"):
        return True
    names = f"{_text(gpu, 'product_architecture')} {_text(gpu, 'product_name')}"
    has_none = (gpu.findtext("remapped_rows") or "").strip() == "N/A" and _text(
        gpu, "mig_mode/current_mig"
    ) != "Enabled"
    return not has_none and not retires_pages(names)


def _sum(gpu: "Element", kind: str, total: str = "") -> float | None:
    """Return the sum of volatile errors of a GPU and its MIG instances.

    Args:
        gpu: The GPU.
        kind: Pattern of the elements: `sram_uncorrectable`, which newer drivers split into parity and SEC-DED.
        total: Total of old drivers. Default: none.
    """
    counters = [
        *gpu.findall("ecc_errors/volatile"),
        *gpu.findall("mig_devices/mig_device/ecc_error_count/volatile_count"),
    ]
    of_kind = re.compile(rf"{kind}(?:_parity|_secded)?")
    paths = [(group, element.tag) for group in counters for element in group if of_kind.fullmatch(element.tag)]
    if total:
        paths += [(group, total) for group in counters]
    known = [value for group, path in paths if (value := _number(group, path)) is not None]
    return sum(known) if known else None


def _recovery(gpu: "Element") -> str:
    """Return the action that the driver asks for: `gpu_recovery_action` since 570, before that the reset status."""
    if action := _text(gpu, "gpu_recovery_action"):
        return action
    if _says_yes(gpu, "gpu_reset_status/reset_required"):
        return "Reset"
    return "Drain and Reset" if _says_yes(gpu, "gpu_reset_status/drain_and_reset_recommended") else ""


def _margin(gpu: "Element") -> float | None:
    margin = _number(gpu, "temperature/gpu_temp_tlimit")
    if margin is not None:
        return margin - (_number(gpu, "temperature/gpu_temp_max_gpu_tlimit_threshold") or 0)
    now, most = (_number(gpu, f"temperature/gpu_temp{name}") for name in ("", "_max_gpu_threshold"))
    return None if now is None or most is None else most - now


def _memory_margin(gpu: "Element") -> float | None:
    now, most = (_number(gpu, f"temperature/{name}") for name in ("memory_temp", "gpu_temp_max_mem_threshold"))
    if most is None and _number(gpu, "temperature/gpu_temp_max_mem_tlimit_threshold") is not None:
        most = _MEMORY_LIMIT_C
    return None if now is None or most is None else most - now


def _fabric_problems(gpu: "Element") -> Iterator[str]:
    """Yield the problems of a GPU's fabric: its state, and its health (nvmlGpuFabricInfoV_t).

    The status is the error with which the fabric completed, and `Unknown Error` is one of its values.
    """
    state = _text(gpu, "fabric/state")
    if state and state != "Completed":
        yield f"state {state}"
    for path, good in _FABRIC.items():
        error = (gpu.findtext(f"fabric/{path}") or "").strip() if state else ""
        value = error if _ERROR.fullmatch(error) else _text(gpu, f"fabric/{path}")
        if value and value != good:
            yield f"{path.rpartition('/')[2].replace('_', ' ')} {value}"
