"""Outputs of nvidia-smi, made from NVIDIA's documentation: no machine with a GPU is at hand where these tests run.

Elements and their places follow NVIDIA's manual of nvidia-smi (nvidia-smi(1)), the document type definitions
(nvsmi_device_v10, v11, v12) and outputs that people have published; values are those of the boards' manuals. A
generation has the names of its driver.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Generation(NamedTuple):
    """Output of one driver for one model."""

    driver: str
    product: str
    ecc: str
    """Volatile ECC errors."""
    remapped: str
    reasons: str
    """Element of the reasons to lower the clocks, and the prefix of its children."""
    temperature: str
    extra: str = ""
    fabric: str = ""
    links: int = 18


_SPLIT = """<sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity>
<sram_uncorrectable_secded>0</sram_uncorrectable_secded><dram_correctable>0</dram_correctable>
<dram_uncorrectable>0</dram_uncorrectable>"""
_ROWS = """<remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc>
<remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>"""
_FABRIC = "<fabric><state>Completed</state><status>Success</status><cliqueId>0</cliqueId></fabric>"
_MARGINS = """<gpu_temp>34 C</gpu_temp><gpu_temp_tlimit>52 C</gpu_temp_tlimit>
<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>
<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>
<gpu_temp_max_gpu_tlimit_threshold>0 C</gpu_temp_max_gpu_tlimit_threshold><memory_temp>44 C</memory_temp>
<gpu_temp_max_mem_threshold>95 C</gpu_temp_max_mem_threshold>"""
_DEGREES = """<gpu_temp>34 C</gpu_temp><gpu_temp_max_threshold>92 C</gpu_temp_max_threshold>
<gpu_temp_slow_threshold>89 C</gpu_temp_slow_threshold><gpu_temp_max_gpu_threshold>85 C</gpu_temp_max_gpu_threshold>
<memory_temp>40 C</memory_temp><gpu_temp_max_mem_threshold>95 C</gpu_temp_max_mem_threshold>"""

GENERATIONS: Mapping[str, Generation] = {
    "v100-470": Generation(
        "470.103.01",
        "Tesla V100-SXM2-32GB",
        "<single_bit><device_memory>0</device_memory><total>0</total></single_bit>"
        "<double_bit><device_memory>0</device_memory><total>0</total></double_bit>",
        "N/A",
        "clocks_throttle",
        _DEGREES.replace("92 C", "90 C"),
        "<retired_pages><pending_blacklist>No</pending_blacklist><pending_retirement>No</pending_retirement></retired_pages>",
        links=6,
    ),
    "a100-525": Generation(
        "525.105.17",
        "NVIDIA A100-SXM4-80GB",
        "<sram_correctable>0</sram_correctable><sram_uncorrectable>0</sram_uncorrectable>"
        "<dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable>",
        _ROWS,
        "clocks_throttle",
        _DEGREES,
        links=12,
    ),
    "h100-550": Generation(
        "550.54.15",
        "NVIDIA H100 80GB HBM3",
        _SPLIT,
        _ROWS,
        "clocks_event",
        _MARGINS,
        "<gpu_reset_status><reset_required>No</reset_required>"
        "<drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>",
        _FABRIC,
    ),
    "b200-580": Generation(
        "580.105.08",
        "NVIDIA B200",
        _SPLIT + "<channel_repair_pending>No</channel_repair_pending>",
        _ROWS,
        "clocks_event",
        _MARGINS,
        "<gpu_recovery_action>None</gpu_recovery_action>",
        _FABRIC,
    ),
}

_GPU = """
<gpu id="00000000:{bus:02X}:00.0">
<product_name>{product}</product_name>
<product_brand>NVIDIA</product_brand>
<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
<uuid>GPU-0000000{bus}-0000-0000-0000-000000000000</uuid>
<minor_number>{minor}</minor_number>
{extra}
<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen></pcie_gen>
<link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>
</pci_gpu_link_info><replay_counter>0</replay_counter></pci>
<performance_state>P0</performance_state>
<{reasons}_reasons><{reasons}_reason_gpu_idle>Active</{reasons}_reason_gpu_idle>
<{reasons}_reason_hw_slowdown>Not Active</{reasons}_reason_hw_slowdown>
<{reasons}_reason_hw_thermal_slowdown>Not Active</{reasons}_reason_hw_thermal_slowdown>
<{reasons}_reason_hw_power_brake_slowdown>Not Active</{reasons}_reason_hw_power_brake_slowdown>
<{reasons}_reason_sw_power_cap>Not Active</{reasons}_reason_sw_power_cap></{reasons}_reasons>
<fb_memory_usage><total>81559 MiB</total><reserved>551 MiB</reserved><used>4 MiB</used></fb_memory_usage>
<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
<ecc_errors><volatile>{ecc}</volatile><aggregate>{ecc}</aggregate></ecc_errors>
<remapped_rows>{remapped}</remapped_rows>
<temperature>{temperature}</temperature>
<processes></processes>
{fabric}
</gpu>"""


def query(generation: str, *, count: int = 8, changes: Mapping[str, str] | None = None, of: int = 0) -> str:
    """Return the output of `nvidia-smi -q -x`.

    Args:
        generation: Key of GENERATIONS.
        count: Number of GPUs.
        changes: Texts in the description of one GPU, and what stands in their place. Each must be there.
        of: Number of that GPU.
    """
    made = GENERATIONS[generation]
    gpus = [
        _GPU.format(
            bus=minor + 1,
            minor=minor,
            product=made.product,
            extra=made.extra,
            reasons=made.reasons,
            ecc=made.ecc,
            remapped=made.remapped,
            temperature=made.temperature,
            fabric=made.fabric,
        )
        for minor in range(count)
    ]
    for before, after in (changes or {}).items():
        if before not in gpus[of]:
            raise ValueError(f"{before!r} is not in the output of {generation}")
        gpus[of] = gpus[of].replace(before, after, 1)
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"<timestamp>Mon Nov 23 06:00:00 2026</timestamp><driver_version>{made.driver}</driver_version>"
        f"<attached_gpus>{count}</attached_gpus>{''.join(gpus)}\n</nvidia_smi_log>\n"
    )


def links(product: str, number: int, *, gpus: int = 8, inactive: Sequence[tuple[int, int]] = ()) -> str:
    """Return the output of `nvidia-smi nvlink --status`, with inactive links as pairs of GPU and link."""
    lines = []
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: {product} (UUID: GPU-{gpu})")
        lines += [
            f"\t Link {link}: {'<inactive>' if (gpu, link) in inactive else '26.562 GB/s'}" for link in range(number)
        ]
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


def peers(count: int, *, without: Mapping[tuple[int, int], str] | None = None) -> str:
    """Return the output of `nvidia-smi topo -p2p r`, with pairs that have no access and their status."""
    head = " \t" + "\t".join(f"GPU{each}" for each in range(count)) + "\t"
    rows = [
        f" GPU{row}\t"
        + "\t".join("X" if row == column else (without or {}).get((row, column), "OK") for column in range(count))
        + "\t"
        for row in range(count)
    ]
    legend = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
    return "\n".join([head, *rows, legend])
