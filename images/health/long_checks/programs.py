"""Programs that measure, as data: the script of a job, and the reading in its output.

`node-bench` is ours (`images/worker/node_bench`), at a path that every jail shows. The others are of the jail.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

BENCH = "/opt/slurm/libexec/node-bench"
SRUN = "/opt/slurm/bin/srun"
RING_PORT = 21_017
"""Port of the ring: no port of Slurm, below those of outgoing connections. No other job is on the nodes."""

_ON_EACH = f"{SRUN} --ntasks-per-node=1 --mpi=none --cpu-bind=none"


class Reading(NamedTuple):
    """Result of one job."""

    value: float | None = None
    """Value in the check's unit. None: the program only passes or fails."""
    problem: str = ""
    """Fault that the program itself found, with what is allowed after a comma: `3 errors, allowed 0`."""


_MISSING = "health: no program"
"""Line of a job whose program is not in the jail."""


class LongProgram(NamedTuple):
    """A program that measures."""

    script: Callable[[Mapping[str, str], Mapping[str, float], str], str]
    """Command of a batch script, of the addresses of its nodes, the settings' arguments and the folder of outputs."""
    read: Callable[[str], Reading | None]
    """Reading of the output; None where it has none."""
    of_jail: str = ""
    """Program that the jail has to have, found by its PATH. Empty: the program is ours."""


def _ring(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    ring = ",".join(f"{node}={address}" for node, address in addresses.items())
    return f"exec {_ON_EACH} {BENCH} ring {ring} {RING_PORT} {given['mib']:.0f} {given['seconds']:g}"


def _memory(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    return f"exec {BENCH} memory {given['mib']:.0f} {given['seconds']:g}"


def _storage(_addresses: Mapping[str, str], given: Mapping[str, float], folder: str) -> str:
    return f"exec {BENCH} storage {folder} {given['mib']:.0f}"


def _nccl(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    # One process a node with all of its GPUs; -c 1 checks the results (nccl-tests, README).
    count, size = f"{given['gpus']:.0f}", f"{given['mib']:.0f}M"
    return f"exec {SRUN} --ntasks-per-node=1 all_reduce_perf -b {size} -e {size} -g {count} -n 20 -w 5 -c 1"


def _dcgm(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    # A host engine of the job's own, which ends with it: dcgmi does nothing alone. One that is there keeps the port.
    engine = "nv-hostengine --pid /tmp/health-dcgm.pid --log-filename /tmp/health-dcgm.log > /dev/null 2>&1"
    # The status is that of the tests as well: the output decides.
    return f"{engine}; dcgmi diag -r {given['level']:.0f} -j; true"


def _rdma(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    server, address = next(iter(addresses.items()))
    options = f"--report_gbits -D {given['seconds']:.0f} -F"
    client = f"sleep 3; exec ib_write_bw {options} {address}"
    return f"exec {_ON_EACH} sh -c '[ $SLURMD_NODENAME = {server} ] && exec ib_write_bw {options} >&2; {client}'"


def _tcp(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    server, address = next(iter(addresses.items()))
    client = f"sleep 3; exec iperf3 -J -t {given['seconds']:.0f} -P {given['streams']:.0f} -c {address}"
    return f"exec {_ON_EACH} sh -c '[ $SLURMD_NODENAME = {server} ] && exec iperf3 -s -1 >&2; {client}'"


def script(program: str, addresses: Mapping[str, str], given: Mapping[str, float], folder: str) -> str:
    """Return the batch script of a job, which names its program where the jail has none."""
    found = PROGRAMS[program]
    measures = found.script(addresses, given, folder)
    if not found.of_jail:
        return measures
    return f"command -v {found.of_jail} > /dev/null || {{ echo '{_MISSING} {found.of_jail}'; exit 127; }}; {measures}"


def missing_program(output: str) -> str | None:
    """Return the program that the jail has to get; None where the output names none."""
    found = re.search(rf"^{_MISSING} (\S+)$", output, re.MULTILINE)
    return found[1] if found else None


def read(program: str, output: str) -> Reading | None:
    """Return the reading of a program's output; None where it has none, or one of another form than is known here."""
    try:
        return PROGRAMS[program].read(output)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_bench(output: str) -> Reading | None:
    """Return the reading of node-bench: of the line with errors where several nodes printed one."""
    found = []
    for line in output.splitlines():
        if line.startswith('{"bench"'):
            try:
                found.append(json.loads(line))
            except ValueError:
                return None
    if not found:
        return None
    worst = max(found, key=lambda each: each["errors"])
    problem = f"{worst['errors']} wrong words, allowed 0" if worst["errors"] else ""
    return Reading(float(worst["value"]), problem)


def read_nccl(output: str) -> Reading | None:
    """Return the average bus bandwidth of nccl-tests, in GB/s.

    Without MPI in the program, each node would measure itself alone, and print an average of its own.
    """
    averages = re.findall(r"^# Avg bus bandwidth\s*:\s*([0-9.]+)", output, re.MULTILINE)
    wrong = re.search(r"^# Out of bounds values\s*:\s*(\d+)", output, re.MULTILINE)
    if len(averages) != 1:
        return None
    count = int(wrong[1]) if wrong else 0
    return Reading(float(averages[0]), f"{count} wrong values, allowed 0" if count else "")


def read_dcgm(output: str) -> Reading | None:
    """Return the tests of `dcgmi diag -j` that failed. A test that was skipped is none."""
    start = output.find("{")
    try:
        report = json.loads(output[start:]) if start >= 0 else {}
    except ValueError:
        return None
    categories = report.get("DCGM Diagnostic", report.get("DCGM GPU Diagnostic", {})).get("test_categories", [])
    tests = [test for category in categories for test in category.get("tests", [])]
    if not tests:
        return None
    failed = [test["name"] for test in tests if _has_failed(test)]
    return Reading(None, f"{' and '.join(failed[:3])} failed, allowed none" if failed else "")


def _has_failed(test: Mapping[str, object]) -> bool:
    results = test.get("results", [])
    summary = test.get("test_summary", {})
    every = [*(results if isinstance(results, list) else []), summary]
    return any(isinstance(each, dict) and str(each.get("status", "")).lower() == "fail" for each in every)


def read_rdma(output: str) -> Reading | None:
    """Return the average bandwidth of ib_write_bw, in Gb/s: the fourth column of its row of numbers."""
    rows = [line.split() for line in output.splitlines()]
    numbers = [row for row in rows if len(row) >= 5 and all(re.fullmatch(r"\d+(\.\d+)?", each) for each in row[:5])]
    return Reading(float(numbers[-1][3])) if numbers else None


def read_tcp(output: str) -> Reading | None:
    """Return what the receiver of iperf3 got, in Gb/s."""
    start = output.find("{")
    try:
        report = json.loads(output[start:]) if start >= 0 else {}
        return Reading(report["end"]["sum_received"]["bits_per_second"] / 1e9)
    except (ValueError, KeyError, TypeError):
        return None


PROGRAMS: Mapping[str, LongProgram] = {
    "ring": LongProgram(_ring, read_bench),
    "memory": LongProgram(_memory, read_bench),
    "storage": LongProgram(_storage, read_bench),
    "nccl": LongProgram(_nccl, read_nccl, "all_reduce_perf"),
    "dcgm": LongProgram(_dcgm, read_dcgm, "dcgmi"),
    "rdma": LongProgram(_rdma, read_rdma, "ib_write_bw"),
    "tcp": LongProgram(_tcp, read_tcp, "iperf3"),
}
