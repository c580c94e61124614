"""Outputs of nvidia-smi, rewritten from recordings of real machines.

A recording has the elements of its driver and the values of its model, in their order, as public recordings have them
(`source`); serial numbers, UUIDs and what no check reads are made up or left out. Drivers differ in names: see smi.py.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Recording(NamedTuple):
    """Output of one driver version for one GPU model."""

    driver: str
    product: str
    source: str
    """Recordings that this one is based on."""
    architecture: str
    ecc: str
    """Volatile ECC errors."""
    rows: str
    """Remapped rows, or retired pages of older models."""
    reasons: str
    """XML element of the clock event reasons, and the prefix of its children."""
    temperature: str
    state: str = ""
    """Recovery action that the driver asks for, in its own elements."""
    repairs: str = ""
    """Thresholds and repairs, next to the ECC errors."""
    fabric: str = ""
    lanes: int = 16
    """Lanes that the slot has; the card has 16."""
    generation: int = 5
    power: str = "P0"
    persistence: str = "Enabled"
    mig: str = ""
    """Instances of MIG."""
    gpus: int = 8
    """GPUs of the machine."""
    links: int = 0
    """Active NVLinks of a GPU."""


_TOTALS = (
    "<single_bit><device_memory>0</device_memory><total>0</total></single_bit>"
    "<double_bit><device_memory>0</device_memory><total>0</total></double_bit>"
)
_JOINED = (
    "<sram_correctable>0</sram_correctable><sram_uncorrectable>0</sram_uncorrectable>"
    "<dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable>"
)
_SPLIT = """<sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity>
<sram_uncorrectable_secded>0</sram_uncorrectable_secded><dram_correctable>0</dram_correctable>
<dram_uncorrectable>0</dram_uncorrectable>"""
_NO_ECC = _JOINED.replace(">0<", ">N/A<")

_PAGES = (
    "<retired_pages><pending_blacklist>No</pending_blacklist><pending_retirement>No</pending_retirement></retired_pages>"
    "<remapped_rows>N/A</remapped_rows>"
)
_ROWS = """<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>"""

_THRESHOLD = "<aggregate><sram_threshold_exceeded>No</sram_threshold_exceeded></aggregate>"
_REPAIRS = f"""{_THRESHOLD}<channel_repair_pending>No</channel_repair_pending>
<tpc_repair_pending>No</tpc_repair_pending>"""
_UNREPAIRABLE = f"{_REPAIRS}<unrepairable_memory>No</unrepairable_memory>"

_RESET = (
    "<gpu_reset_status><reset_required>No</reset_required>"
    "<drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>"
)
_RECOVERY = "<gpu_recovery_action>None</gpu_recovery_action>"


def _degrees(most: int, memory: str = "N/A", memory_most: str = "N/A") -> str:
    return (
        f"<gpu_temp>34 C</gpu_temp><gpu_temp_max_threshold>{most + 7} C</gpu_temp_max_threshold>"
        f"<gpu_temp_slow_threshold>{most + 4} C</gpu_temp_slow_threshold>"
        f"<gpu_temp_max_gpu_threshold>{most} C</gpu_temp_max_gpu_threshold><memory_temp>{memory}</memory_temp>"
        f"<gpu_temp_max_mem_threshold>{memory_most}</gpu_temp_max_mem_threshold>"
    )


def _margins(memory: str = "N/A", memory_most: str = "N/A") -> str:
    return (
        "<gpu_temp>34 C</gpu_temp><gpu_temp_tlimit>52 C</gpu_temp_tlimit>"
        "<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>"
        "<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>"
        "<gpu_temp_max_gpu_tlimit_threshold>0 C</gpu_temp_max_gpu_tlimit_threshold>"
        f"<memory_temp>{memory}</memory_temp>"
        f"<gpu_temp_max_mem_tlimit_threshold>{memory_most}</gpu_temp_max_mem_tlimit_threshold>"
    )


_HBM_DEGREES = ("44 C", "95 C")
_HBM_MARGINS = ("44 C", "0 C")


def _fabric(state: str, health: str, *more: str) -> str:
    names = ("bandwidth", "route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery", *more)
    values = {"Healthy": ("Healthy", "Full", "False", "False", "False", *["None"] * len(more))}
    given = values.get(health, ("N/A",) * (len(names) + 1))
    parts = "".join(f"<{name}>{value}</{name}>" for name, value in zip(("summary", *names), given, strict=True))
    status = "Success" if state == "Completed" else state
    return f"<fabric><state>{state}</state><status>{status}</status><health>{parts}</health></fabric>"


_OLD_FABRIC = "<fabric><state>Completed</state><status>Success</status></fabric>"
_NO_FABRIC = _fabric("N/A", "N/A", "incorrect_configuration")

_K8S = "NVIDIA/k8s-test-infra, hardware captures"
_TELEGRAF = "influxdata/telegraf, testdata of nvidia_smi"
_BY_NEIGHBOURS = "elements of its driver in {}; values of the model's manual"

RECORDINGS: Mapping[str, Recording] = {
    "v100-470": Recording(
        *("470.103.01", "Tesla V100-SXM2-32GB", "Azure/azhpc-diagnostics#73; NVIDIA's nvsmi_device_v11", "Volta"),
        *(_TOTALS, _PAGES, "clocks_throttle", _degrees(83, "40 C", "85 C")),
        links=6,
        generation=3,
    ),
    "t4-515": Recording(
        *("515.105.01", "Tesla T4", _TELEGRAF, "Turing", _JOINED, _PAGES, "clocks_throttle", _degrees(88)),
        lanes=8,
        generation=3,
        gpus=1,
        persistence="Disabled",
    ),
    "t4-595": Recording(
        *("595.91.07", "Tesla T4", _K8S, "Turing", _JOINED, _PAGES, "clocks_event", _degrees(85), _RECOVERY),
        lanes=8,
        generation=3,
        gpus=1,
        fabric=_NO_FABRIC,
    ),
    "a10g-515": Recording(
        *("515.105.01", "NVIDIA A10G", _TELEGRAF, "Ampere", _JOINED, _ROWS, "clocks_throttle", _degrees(88)),
        lanes=8,
        generation=4,
        gpus=4,
        power="P8",
        persistence="Disabled",
    ),
    "a100-525": Recording(
        *("525.105.17", "NVIDIA A100-SXM4-80GB", "leptonai/gpud, testdata (8 x A100)", "Ampere", _JOINED, _ROWS),
        *("clocks_throttle", _degrees(85, *_HBM_DEGREES)),
        links=12,
        generation=4,
    ),
    "a100-570": Recording(
        *("570.148.08", "NVIDIA A100-SXM4-40GB", _K8S, "Ampere", _SPLIT, _ROWS, "clocks_event"),
        *(_degrees(85, *_HBM_DEGREES), _RECOVERY, _THRESHOLD, _fabric("N/A", "N/A")),
        generation=4,
        gpus=1,
    ),
    "a100pcie-535": Recording(
        *("535.161.08", "NVIDIA A100-PCIE-40GB", _BY_NEIGHBOURS.format("NVIDIA/DCGM#49"), "Ampere", _JOINED, _ROWS),
        *("clocks_event", _degrees(85, *_HBM_DEGREES)),
        generation=4,
        gpus=4,
        fabric="<fabric><state>N/A</state><status>N/A</status></fabric>",
    ),
    "a100mig-510": Recording(
        *("510.47.03", "NVIDIA A100-SXM4-40GB", "netdata/netdata, testdata of nvidia_smi", "Ampere"),
        *(_NO_ECC, "<remapped_rows>N/A</remapped_rows>", "clocks_throttle", _degrees(85, *_HBM_DEGREES)),
        generation=4,
        gpus=1,
        persistence="Disabled",
        mig="<sram_uncorrectable>0</sram_uncorrectable>",
    ),
    "l40s-595": Recording(
        *("595.91.07", "NVIDIA L40S", _K8S, "Ada Lovelace", _SPLIT, _ROWS, "clocks_event", _margins(), _RECOVERY),
        *(_UNREPAIRABLE, _NO_FABRIC),
        lanes=8,
        generation=4,
        gpus=1,
    ),
    "rtx4090-550": Recording(
        *("550.144.03", "NVIDIA GeForce RTX 4090", _BY_NEIGHBOURS.format(_TELEGRAF), "Ada Lovelace", _NO_ECC),
        *("<remapped_rows>N/A</remapped_rows>", "clocks_event", _margins(), _RESET, "", _fabric("N/A", "N/A")),
        generation=4,
        gpus=2,
        power="P8",
        persistence="Disabled",
    ),
    "h100-550": Recording(
        *("550.54.15", "NVIDIA H100 80GB HBM3", "leptonai/gpud, outputs of 8 x H100", "Hopper", _SPLIT, _ROWS),
        *("clocks_event", _margins(*_HBM_MARGINS), _RESET, _THRESHOLD, _OLD_FABRIC),
        links=18,
    ),
    "h100-580": Recording(
        *("580.105.08", "NVIDIA H100 80GB HBM3", _K8S, "Hopper", _SPLIT, _ROWS, "clocks_event"),
        *(_margins(*_HBM_MARGINS), _RECOVERY, _REPAIRS, _fabric("Completed", "N/A", "incorrect_configuration")),
        links=18,
    ),
    "h100pcie-535": Recording(
        *(
            "535.161.08",
            "NVIDIA H100 PCIe",
            _BY_NEIGHBOURS.format("leptonai/gpud (535, H100)"),
            "Hopper",
            _JOINED,
            _ROWS,
        ),
        *("clocks_event", _degrees(87, *_HBM_DEGREES), _RESET),
        gpus=2,
        fabric="<fabric><state>N/A</state><status>N/A</status></fabric>",
    ),
    "h100nvl-565": Recording(
        *("565.57.01", "NVIDIA H100 NVL", "Azure/azurehpc-health-checks#162 (12 of 18 links)", "Hopper", _SPLIT, _ROWS),
        *("clocks_event", _margins(*_HBM_MARGINS), _RESET, _THRESHOLD, _fabric("N/A", "N/A")),
        gpus=2,
        links=12,
    ),
    "h100mig-570": Recording(
        *("570.86.15", "NVIDIA H100 80GB HBM3", _BY_NEIGHBOURS.format("netdata (MIG) and 570"), "Hopper"),
        *(_SPLIT.replace(">0<", ">N/A<"), "<remapped_rows>N/A</remapped_rows>", "clocks_event"),
        *(_margins(*_HBM_MARGINS), _RECOVERY, _THRESHOLD, _fabric("Completed", "N/A")),
        links=18,
        mig="<sram_uncorrectable_parity>0</sram_uncorrectable_parity>"
        "<sram_uncorrectable_secded>0</sram_uncorrectable_secded>",
    ),
    "h200-580": Recording(
        *("580.159.04", "NVIDIA H200", "A machine with one H200 of a board of eight, in a VM", "Hopper", _SPLIT, _ROWS),
        *("clocks_event", _margins(*_HBM_MARGINS), _RECOVERY, _UNREPAIRABLE, _NO_FABRIC),
        gpus=1,
    ),
    "h800-535": Recording(
        *("535.161.08", "NVIDIA H800", "Public `nvidia-smi nvlink --status` of 8 x H800", "Hopper", _JOINED, _ROWS),
        *("clocks_event", _margins(*_HBM_MARGINS), _RESET),
        links=8,
        fabric=_OLD_FABRIC,
    ),
    "b200-580": Recording(
        *("580.105.08", "NVIDIA B200", _K8S, "Blackwell", _SPLIT, _ROWS, "clocks_event", _margins(*_HBM_MARGINS)),
        *(_RECOVERY, _REPAIRS, _fabric("Completed", "Healthy", "incorrect_configuration").replace("Full", "N/A")),
        links=18,
        persistence="Disabled",
    ),
    "gb200-580": Recording(
        *("580.173.02", "NVIDIA GB200", _K8S, "Blackwell", _SPLIT, _ROWS, "clocks_event", _margins(*_HBM_MARGINS)),
        *(_RECOVERY, _UNREPAIRABLE, _fabric("Completed", "Healthy", "incorrect_configuration")),
        links=18,
        gpus=4,
    ),
    "gb300-580": Recording(
        *("580.173.02", "NVIDIA GB300", _K8S, "Blackwell", _SPLIT, _ROWS, "clocks_event", _margins(*_HBM_MARGINS)),
        *(_RECOVERY, _UNREPAIRABLE, _fabric("Completed", "Healthy", "incorrect_configuration")),
        links=18,
        gpus=4,
        generation=6,
    ),
}
"""Healthy machines by model and driver."""

_GPU = """<gpu id="00000000:{bus:02X}:00.0">
<product_name>{product}</product_name>
<product_brand>NVIDIA</product_brand>
<product_architecture>{architecture}</product_architecture>
<persistence_mode>{persistence}</persistence_mode>
<mig_mode><current_mig>{mig_mode}</current_mig><pending_mig>{mig_mode}</pending_mig></mig_mode>
<mig_devices>{mig}</mig_devices>
<serial>16500000000{minor:02}</serial>
<uuid>GPU-0000000{minor}-0000-0000-0000-000000000000</uuid>
<minor_number>{minor}</minor_number>
{state}
<pci><pci_gpu_link_info><pcie_gen><max_link_gen>{generation}</max_link_gen>
<current_link_gen>{current}</current_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width><current_link_width>{lanes}x</current_link_width></link_widths>
</pci_gpu_link_info><replay_counter>0</replay_counter></pci>
<fan_speed>N/A</fan_speed>
<performance_state>{power}</performance_state>
<{reasons}_reasons><{reasons}_reason_gpu_idle>Active</{reasons}_reason_gpu_idle>
<{reasons}_reason_sw_power_cap>Not Active</{reasons}_reason_sw_power_cap>
<{reasons}_reason_hw_slowdown>Not Active</{reasons}_reason_hw_slowdown>
<{reasons}_reason_hw_thermal_slowdown>Not Active</{reasons}_reason_hw_thermal_slowdown>
<{reasons}_reason_hw_power_brake_slowdown>Not Active</{reasons}_reason_hw_power_brake_slowdown>
</{reasons}_reasons>
<fb_memory_usage><total>81559 MiB</total><reserved>551 MiB</reserved><used>4 MiB</used></fb_memory_usage>
<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
<ecc_errors><volatile>{ecc}</volatile>{repairs}</ecc_errors>
{rows}
<temperature>{temperature}</temperature>
{fabric}
<processes></processes>
</gpu>"""

_INSTANCE = """<mig_device><index>{index}</index><gpu_instance_id>{index}</gpu_instance_id>
<ecc_error_count><volatile_count>{counters}</volatile_count></ecc_error_count></mig_device>"""


def query(name: str, *, count: int | None = None, changes: Mapping[str, str] | None = None, of: int = 0) -> str:
    """Return the output of `nvidia-smi -q -x`.

    Args:
        name: Key of RECORDINGS.
        count: Number of GPUs. Default: those of the machine.
        changes: Texts in the description of one GPU, and what stands in their place. Each must be there.
        of: Number of that GPU.
    """
    made = RECORDINGS[name]
    number = made.gpus if count is None else count
    instances = "".join(_INSTANCE.format(index=index, counters=made.mig) for index in range(2))
    gpus = [
        _GPU.format(
            **{
                **made._asdict(),
                "bus": minor + 1,
                "minor": minor,
                "current": 1 if made.power == "P8" else made.generation,
                "mig": instances if made.mig else "None",
                "mig_mode": "Enabled" if made.mig else "Disabled",
            }
        )
        for minor in range(number)
    ]
    for before, after in (changes or {}).items():
        if before not in gpus[of]:
            raise ValueError(f"{before!r} is not in the output of {name}")
        gpus[of] = gpus[of].replace(before, after, 1)
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"<timestamp>Mon Nov 23 06:00:00 2026</timestamp><driver_version>{made.driver}</driver_version>"
        f"<attached_gpus>{number}</attached_gpus>{''.join(gpus)}\n</nvidia_smi_log>\n"
    )


ALL_INACTIVE = "NVML: Unable to retrieve NVLink information as all links are inActive"


def links(product: str, number: int, *, gpus: int = 8, inactive: Sequence[tuple[int, int]] = ()) -> str:
    """Return the output of `nvidia-smi nvlink --status`, with inactive links as pairs of GPU and link."""
    lines = []
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: {product} (UUID: GPU-{gpu})")
        down = {link for other, link in inactive if other == gpu}
        if number and len(down) == number:
            lines.append(ALL_INACTIVE)
            continue
        lines += [f"\t Link {link}: {'<inactive>' if link in down else '26.562 GB/s'}" for link in range(number)]
    return "\n".join(lines) + "\n"


def link_errors(number: int, *, gpus: int = 8, errors: Mapping[tuple[int, int], int] | None = None) -> str:
    """Return the output of `nvidia-smi nvlink --errorcounters`, with CRC errors of pairs of GPU and link."""
    lines = []
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})")
        for link in range(number):
            lines.append(f"\t Link {link}: Replay Errors: 0")
            lines.append(f"\t Link {link}: Recovery Errors: 0")
            lines.append(f"\t Link {link}: CRC Errors: {(errors or {}).get((gpu, link), 0)}")
    return "\n".join(lines) + "\n"


def link_errors_of_blackwell(hours: int, **errors: int) -> str:
    """Return the counters of one NVLink 5 link after hours of traffic, with the given error counts."""
    counters = {
        "Tx packets": 81_000_000 * hours,
        "Rx Errors": 0,
        "Local link integrity Errors": 0,
        "Buffer overrun Errors": 0,
        "Link recovery successful events": hours,
        "Link recovery failed events": 0,
        "Effective Errors": 0,
        "Symbol Errors": 0,
        "Raw Errors Lane 0": 900 * hours,
        "FEC Errors - 0": 36_140_749_276 + 500_000_000 * hours,
        "FEC Errors - 1": 12_000 * hours,
        "PLR Rcv Blocks": 7_000_000 * hours,
        **{name.replace("_", " "): count for name, count in errors.items()},
    }
    lines = [f"\t Link 0: {name}: {count}" for name, count in counters.items()]
    return "\n".join(["GPU 0: NVIDIA B200 (UUID: GPU-0)", *lines, "\t Link 0: Effective BER: 1.5e-254", ""])


def peers(count: int, *, without: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return the output of `nvidia-smi topo -p2p r`, with pairs that have no access and their status."""
    head = " \t\x1b[4m" + "\t".join(f"GPU{number}" for number in range(count)) + "\t\x1b[0m"
    rows = [
        f" GPU{row}\t"
        + "\t".join("X" if row == column else (without or {}).get((row, column), "OK") for column in range(count))
        + "\t"
        for row in range(count)
    ]
    legend = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
    return "\n".join([head, *rows, legend])
