"""Tables of docs/health-check-tests.md from the tests: recordings, and the injected faults."""

import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tools import paths
from tools.docs.page_tables import table, with_tables

FILE = paths.ROOT / "docs" / "health-check-tests.md"

_HEALTH = paths.ROOT / "images" / "health"
_SHARED = paths.ROOT / "images" / "wire"

_OUTPUTS = {
    "smi": "nvidia-smi",
    "links": "`nvidia-smi nvlink`, made",
    "peers": "`nvidia-smi topo`, made",
    "kernel": "`/dev/kmsg`, made",
    "ports": "`/sys/class/infiniband`, made",
    "machine": "`/proc` and `/sys`, made",
    "clock": "clock, made",
    "volumes": "mounts and their use, made",
    "slurmd": "scontrol, made",
    "program": "a program",
}
"""Outputs by the source of a check."""


def text() -> str:
    """Return the page with its tables updated from the tests."""
    return with_tables(FILE, {"recordings": _recordings(), "faults": _injected()})


def _injected() -> str:
    before = [*sys.path]
    sys.path[:0] = [str(_HEALTH), str(_SHARED)]
    try:
        gpus, nodes = (
            runpy.run_path(str(_HEALTH / "tests" / f"{name}.py")) for name in ("test_gpu_checks", "test_node_faults")
        )
    finally:
        sys.path[:] = before
    rows = ((f"`{name}`", _healthy(gpus, name), _faults(gpus, nodes, name)) for name in gpus["CHECKS"])
    return table(("check", "healthy outputs", "value with a fault (recordings)"), rows)


def _recordings() -> str:
    machines = runpy.run_path(str(_HEALTH / "health_testing" / "smi_outputs.py"))["RECORDINGS"]
    rows = (
        (f"`{name}`", machine.product, str(machine.gpus), machine.driver, machine.source)
        for name, machine in machines.items()
    )
    return table(("recording", "model", "GPUs", "driver", "rewritten from"), rows)


def _healthy(gpus: Mapping[str, Any], name: str) -> str:
    """Return the outputs with which a check passes; for nvidia-smi, the recordings that have its values."""
    outputs = _OUTPUTS[gpus["CHECKS"][name].source]
    if name not in gpus["OF_QUERY"]:
        return outputs
    judged: Callable[..., object] = gpus["judged"]
    made = {recording: gpus["readings"](gpus["query"](recording), "h100") for recording in gpus["RECORDINGS"]}
    known = [recording for recording, read in made.items() if judged(name, read) is not None]
    if len(known) == len(made):
        return "all"
    others = [recording for recording in made if recording not in known]
    return f"all but {', '.join(others)}" if len(others) < len(known) else ", ".join(known)


def _faults(gpus: Mapping[str, Any], nodes: Mapping[str, Any], name: str) -> str:
    """Return the values with which a check fails, or the name of its test."""
    found = [
        f"`{value.format(gpu='GPU 3', margin='-6', generation='5')}` ({len(of)})"
        for of, _, check, value in gpus["FAULTS"]
        if check == name
    ]
    if name in gpus["ELSEWHERE"]:
        found.append(f"`{gpus['ELSEWHERE'][name]}`")
    if name in nodes["FAULTS"]:
        found.append(f"`{nodes['FAULTS'][name][1].format(root='')}`")
    return "; ".join(found)
