"""Output of nvidia-smi, parsed: of all checks of GPUs, one call a round.

Elements changed their names between drivers: `clocks_throttle_reasons` (until 530) became `clocks_event_reasons`;
`sram_uncorrectable` (until 535) was split; thresholds of temperatures became margins (`tlimit`) with Hopper. A value
that a GPU does not have is `N/A`, `[N/A]` or `Not Supported`, and here None.
"""

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

_PROCESS_NAME = re.compile(r"<process_name>(?:.*|[\s\S]*?)</process_name>")
"""Name of a user's program, as it is: nvidia-smi writes `<`, `&` and other bytes of it into its XML. It is left out.
An element has a line of its own, so the last end on the line is the element's, whatever the name has before."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_VOLATILE = "ecc_errors/volatile"
_HARDWARE_SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")


class Gpu(NamedTuple):
    """One GPU, as `nvidia-smi -q -x` describes it."""

    name: str
    """Place in findings: `GPU 3`, by the minor number of /dev/nvidia3, which Slurm names as well."""
    product: str
    uuid: str
    uncorrected: float | None
    """Uncorrectable ECC errors since the driver was loaded, of both kinds of memory."""
    corrected: float | None
    remap_pending: bool
    """Rows to remap, or pages to retire, at the next reset."""
    remap_failed: bool
    recovery: str
    """Action that the driver asks for: `Reset`, `Reboot`, `Drain P2P`. Empty for none."""
    slowdowns: tuple[str, ...]
    """Active reasons of hardware to lower the clocks."""
    temperature_margin: float | None
    """Degrees left until the GPU's own highest operating temperature."""
    memory_margin: float | None
    width: float | None
    widest: float | None
    generation: float | None
    newest_generation: float | None
    performance_state: str
    replays: float | None
    fabric: str
    """State of NVLink's fabric: `Completed`, `In Progress`, `Not Started`; empty for a GPU without one."""
    fabric_status: str
    processes: tuple[int, ...]
    memory_used_mib: float | None


def parse_query(output: str) -> tuple[Gpu, ...]:
    """Return the GPUs in the output of `nvidia-smi -q -x`.

    Raises:
        ValueError: The output is not such XML, or has another number of GPUs than it announces.
    """
    start = output.find("<?xml")
    try:
        log = fromstring(_PROCESS_NAME.sub("", output[max(start, 0) :]))  # noqa: S314 - a program of root's, as trusted as the driver
    except ParseError as error:
        raise ValueError(f"no XML: {error}") from error
    gpus = tuple(_gpu(each, position) for position, each in enumerate(log.findall("gpu")))
    attached = _number(log, "attached_gpus")
    if log.tag != "nvidia_smi_log" or attached is None or int(attached) != len(gpus):
        raise ValueError(f"{attached} GPUs announced, {len(gpus)} described")
    return gpus


def _gpu(gpu: Element, position: int) -> Gpu:
    minor = _number(gpu, "minor_number")
    reasons = {
        each.tag.partition("_reason_")[2]: (each.text or "").strip()
        for group in ("clocks_event_reasons", "clocks_throttle_reasons")
        for each in gpu.findall(f"{group}/*")
    }
    width, generation = "pci/pci_gpu_link_info/link_widths", "pci/pci_gpu_link_info/pcie_gen"
    return Gpu(
        name=f"GPU {position if minor is None else int(minor)}",
        product=_text(gpu, "product_name"),
        uuid=_text(gpu, "uuid"),
        uncorrected=_sum(gpu, "uncorrectable", "double_bit/total"),
        corrected=_sum(gpu, "correctable", "single_bit/total"),
        remap_pending=_says_yes(
            gpu,
            "remapped_rows/remapped_row_pending",
            "retired_pages/pending_retirement",
            "retired_pages/pending_blacklist",
        ),
        remap_failed=_says_yes(gpu, "remapped_rows/remapped_row_failure", "ecc_errors/unrepairable_memory"),
        recovery=_recovery(gpu),
        slowdowns=tuple(reason for reason in _HARDWARE_SLOWDOWNS if reasons.get(reason) == "Active"),
        temperature_margin=_margin(gpu, "gpu_temp", "gpu_temp_max_gpu_threshold", "gpu_temp_tlimit"),
        memory_margin=_margin(gpu, "memory_temp", "gpu_temp_max_mem_threshold"),
        width=_number(gpu, f"{width}/current_link_width"),
        widest=_number(gpu, f"{width}/max_link_width"),
        generation=_number(gpu, f"{generation}/current_link_gen"),
        newest_generation=_number(gpu, f"{generation}/max_link_gen"),
        performance_state=_text(gpu, "performance_state"),
        replays=_number(gpu, "pci/replay_counter"),
        fabric=_text(gpu, "fabric/state"),
        fabric_status=_text(gpu, "fabric/status"),
        processes=tuple(
            int(pid)
            for each in gpu.findall("processes/process_info")
            if _text(each, "type").startswith("C") and (pid := _number(each, "pid")) is not None
        ),
        memory_used_mib=_number(gpu, "fb_memory_usage/used"),
    )


def _text(gpu: Element, path: str) -> str:
    """Return the text of an element; empty where the GPU does not have it."""
    text = (gpu.findtext(path) or "").strip()
    return "" if text.strip("[]").lower() in {"n/a", "not supported", "unknown error", "none"} else text


def _number(gpu: Element, path: str) -> float | None:
    found = _NUMBER.match(_text(gpu, path))
    return float(found[0]) if found else None


def _says_yes(gpu: Element, *paths: str) -> bool:
    return any(_text(gpu, path).lower() == "yes" for path in paths)


def _sum(gpu: Element, kind: str, total: str) -> float | None:
    """Return the sum of volatile errors: `sram_<kind>`, `dram_<kind>_parity` and others, or old drivers' total."""
    of_kinds = [
        _number(gpu, f"{_VOLATILE}/{each.tag}")
        for each in gpu.findall(f"{_VOLATILE}/*")
        if re.fullmatch(rf"[sd]ram_{kind}(_parity|_secded)?", each.tag)
    ]
    known = [each for each in [*of_kinds, _number(gpu, f"{_VOLATILE}/{total}")] if each is not None]
    return sum(known) if known else None


def _recovery(gpu: Element) -> str:
    """Return the driver's own advice: `gpu_recovery_action` since 570, the status of a reset before."""
    if action := _text(gpu, "gpu_recovery_action"):
        return action
    if _says_yes(gpu, "gpu_reset_status/reset_required"):
        return "Reset"
    return "Drain and Reset" if _says_yes(gpu, "gpu_reset_status/drain_and_reset_recommended") else ""


def _margin(gpu: Element, temperature: str, highest: str, margin: str = "") -> float | None:
    given = _number(gpu, f"temperature/{margin}") if margin else None
    if given is not None:
        return given
    now, most = _number(gpu, f"temperature/{temperature}"), _number(gpu, f"temperature/{highest}")
    return None if now is None or most is None else most - now


_OF_GPU = re.compile(r"GPU (\d+): ")
_CARD = re.compile(r"^GPU (\d+): .*\b(PCIe|NVL)\b", re.MULTILINE)
_LINK = re.compile(r"\s*Link (\d+): (.*)")
_COUNTER = re.compile(r"\s*Link (\d+): (.+): (\d+)\s*$")


def parse_links(output: str) -> dict[str, dict[int, bool]]:
    """Return by GPU which of its links are active, from `nvidia-smi nvlink --status`.

    Cards are left out: a PCIe card has links for a bridge, which may be none, and an NVL pair has fewer than a board.
    """
    found: dict[str, dict[int, bool]] = {}
    cards = {f"GPU {card[1]}" for card in _CARD.finditer(output)}
    for gpu, line in _by_gpu(output):
        if gpu in cards:
            continue
        links = found.setdefault(gpu, {})
        if link := _LINK.match(line):
            links[int(link[1])] = bool(re.match(r"[\d.]+ GB/s", link[2]))
    return found


def parse_link_errors(output: str) -> dict[str, float]:
    """Return counters by place, `GPU 0 link 3 Replay Errors`, from `nvidia-smi nvlink -e`."""
    return {
        f"{gpu} link {counter[1]} {counter[2]}": float(counter[3])
        for gpu, line in _by_gpu(output)
        if (counter := _COUNTER.match(line))
    }


def parse_peers(output: str) -> list[str]:
    """Return pairs of GPUs without access to each other's memory, from `nvidia-smi topo -p2p r`.

    Raises:
        ValueError: The output has no such table.
    """
    rows = [line.split() for line in output.splitlines() if re.match(r"\s*GPU\d+\s", line)]
    rows = [row for row in rows if len(row) > 1 and not row[1].startswith("GPU")]
    if not rows or any(len(row) != len(rows) + 1 for row in rows):
        raise ValueError("no table of pairs")
    return [
        f"{row[0]}-GPU{column} {status}"
        for row in rows
        for column, status in enumerate(row[1:])
        if status not in {"X", "OK"}
    ]


def _by_gpu(output: str) -> list[tuple[str, str]]:
    """Return lines with the GPU that they belong to."""
    found, gpu = [], ""
    for line in output.splitlines():
        if head := _OF_GPU.match(line):
            gpu = f"GPU {head[1]}"
        if gpu:
            found.append((gpu, line))
    return found
