"""Programs that measure, as data: the script of a job, and the parser of its output.

`node-bench` belongs to this package (`images/worker/node_bench`) and has the same path in every jail. The others come
from the jail.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from long_checks.dcgm_report import read_dcgm
from long_checks.job_reading import Reading

BENCH = "/opt/slurm/libexec/node-bench"
SRUN = "/opt/slurm/bin/srun"
RING_PORT = 21_017
"""Port of the ring, which accepts only the preceding node. It is not a port of Slurm, and below the ephemeral ports."""

PORTS = range(21_018, 32_768)
"""Ports of programs that serve any first caller: a random one for every job."""

_ATTEMPT_SECONDS = 15
"""Time that an attempt takes in addition to its measurement."""

_START_SHARE = 0.1
"""Longest start of containers, as a share of a job's time limit."""

_ON_EACH = f"{SRUN} --ntasks-per-node=1 --mpi=none --cpu-bind=none"


_MISSING = "health: no program"
"""Line that a job prints if the jail or the image lacks its program."""

_BEGAN = "health: began"
"""Line that a job prints when its containers have started. An earlier failure is not the program's."""


class LongProgram(NamedTuple):
    """A measuring program: the commands that run it, and the parser of its output."""

    script: Callable[[Mapping[str, str], Mapping[str, float], str], str]
    """Function that returns the commands of a batch script, from node addresses, arguments and output folder."""
    read: Callable[[str], Reading | None]
    """Parser of the output. It returns None if the output has no reading."""
    of_jail: str = ""
    """Program that the jail or the image must have on its PATH. Empty: the program belongs to this package."""


def _ring(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    ring = ",".join(f"{node}={address}" for node, address in addresses.items())
    return f"exec {_ON_EACH} {BENCH} ring {ring} {RING_PORT} {given['mib']:.0f} {given['seconds']:g}"


def _memory(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    return f"exec {BENCH} memory {given['mib']:.0f} {given['seconds']:g}"


def _storage(_addresses: Mapping[str, str], given: Mapping[str, float], folder: str) -> str:
    return f"exec {BENCH} storage {folder} {given['mib']:.0f}"


def _nccl(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    # One process a node with all of its GPUs; -c 1 checks the results (nccl-tests, README), with three buffers.
    count, size = f"{given['gpus']:.0f}", f"{given['mib']:.0f}"
    # The lines of INIT state whether NCCL reduces in the switches.
    variables = "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT PATH=$PATH:/usr/local/nvidia/bin"
    asks = "nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2> /dev/null | sort -n | head -n 1"
    fits = f"case $memory in ''|*[!0-9]*) memory=0;; esac; size={size}; most=$(( (memory - 4096) / 3 ))"
    least = '[ "$most" -lt 64 ] || [ "$most" -ge "$size" ] || size=$most'
    program = f'exec {SRUN} --ntasks-per-node=1 all_reduce_perf -b "$size"M -e "$size"M -g {count} -n 20 -w 5 -c 1'
    return f"{variables}; memory=$({asks}); {fits}; {least}; {program}"


def _dcgm(_addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    # A host engine of the job's own, which ends with it: dcgmi does nothing alone. One that is there keeps the port.
    # Its files are in a folder that no other user can have made.
    engine = 'nv-hostengine --pid "$own/pid" --log-filename "$own/log" > /dev/null 2>&1'
    # The status is that of the tests as well: the output decides.
    return f'own=$(mktemp -d) || exit 0; {engine}; dcgmi diag -r {given["level"]:.0f} -j; rm -rf "$own"'


def _rdma(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    options = f"ib_write_bw --report_gbits -D {given['seconds']:.0f} -F -p {given['port']:.0f}"
    address = next(iter(addresses.values()))
    return _pair(addresses, given, options, f"{options} {address}")


def _tcp(addresses: Mapping[str, str], given: Mapping[str, float], _folder: str) -> str:
    address, port = next(iter(addresses.values())), f"-p {given['port']:.0f}"
    client = f"iperf3 -J -t {given['seconds']:.0f} -P {given['streams']:.0f} {port} -c {address}"
    return _pair(addresses, given, f"iperf3 -s -1 -B {address} {port}", client)


def _pair(addresses: Mapping[str, str], given: Mapping[str, float], server: str, client: str) -> str:
    """Return the script of a program that serves the first caller, on the first node, and calls, on the other one.

    Processes of users can call as well. So the server serves again, and the client calls again until it is served, or
    the job's time is nearly over: a job at its limit would count as the nodes' failure. srun ends the server.
    """
    bound = max(1, min(given["seconds"] + _ATTEMPT_SECONDS, given["time_limit"] - 2 * _ATTEMPT_SECONDS))
    serves = f"while :; do timeout {bound:.0f} {server} > /dev/null 2>&1; sleep 1; done"
    calls = f'out=$(timeout {bound:.0f} {client} 2>&1) && echo "$out" && exit'
    last = max(0, given["time_limit"] - 2 * bound)
    again = f'[ $(($(date +%s) - began)) -lt {last:.0f} ] || {{ echo "$out"; exit 1; }}'
    repeats = f"began=$(date +%s); while sleep 2; do {calls}; {again}; done"
    return f"exec {_ON_EACH} --wait=1 sh -c '[ $SLURMD_NODENAME = {next(iter(addresses))} ] && {serves}; {repeats}'"


def script(program: str, addresses: Mapping[str, str], given: Mapping[str, float], folder: str, image: str = "") -> str:
    """Return the batch script of a job, which names its program if the jail, or the image, does not have it.

    Args:
        program: Name of the program.
        addresses: IP addresses of the job's nodes.
        given: Numbers for the program.
        folder: Folder of outputs.
        image: Image of a container for the program. Empty: it runs in the jail.
    """
    found = PROGRAMS[program]
    if image and found.of_jail:
        return _in_image(found, addresses, given, folder, image)
    measures = found.script(addresses, given, folder)
    return f"{_looks(found)}; {measures}" if found.of_jail else measures


def _looks(program: LongProgram) -> str:
    name = program.of_jail
    return f"command -v {name} > /dev/null || {{ echo '{_MISSING} {name}'; exit 127; }}"


def _in_image(
    program: LongProgram, addresses: Mapping[str, str], given: Mapping[str, float], folder: str, image: str
) -> str:
    """Return the script of a job whose steps run in containers.

    Starting containers is not part of the measurement, so a first step starts them on all nodes. If that step fails or
    is slow, this says nothing about the nodes. The program gets the time that two starts leave.
    """
    start_seconds = max(1, round(given["time_limit"] * _START_SHARE))
    measures = program.script(addresses, {**given, "time_limit": given["time_limit"] - 2 * start_seconds}, folder)
    # The image's own values would win over those that make NCCL state what it uses.
    step = f"{SRUN} --container-image={shlex.quote(image)} --container-env=NCCL_DEBUG,NCCL_DEBUG_SUBSYS"
    first = f"{step} --ntasks-per-node=1 --mpi=none sh -c {shlex.quote(_looks(program))} || exit"
    slow = f'echo "the start of the containers took $took s, allowed {start_seconds}"; exit 1'
    timed = f"began=$(date +%s); {first}; took=$(($(date +%s) - began)); [ $took -le {start_seconds} ] || {{ {slow}; }}"
    if SRUN in measures:
        return f"{timed}; echo '{_BEGAN}'; {measures.replace(SRUN, step)}"
    return f"{timed}; echo '{_BEGAN}'; exec {step} --mpi=none sh -c {shlex.quote(measures)}"


def missing_program(output: str) -> str | None:
    """Return the program that the jail or the image lacks; None if the output names none."""
    found = re.search(rf"^{_MISSING} (\S+)$", output, re.MULTILINE)
    return found[1] if found else None


def has_begun(output: str) -> bool:
    """Return True if a job in an image has begun to measure."""
    return re.search(rf"^{_BEGAN}$", output, re.MULTILINE) is not None


def read(program: str, output: str) -> Reading | None:
    """Return the reading of a program's output; None if there is none, or if its form is unknown."""
    try:
        return PROGRAMS[program].read(output)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def read_bench(output: str) -> Reading | None:
    """Return the reading of node-bench: the line with errors if several nodes printed one."""
    found = []
    for line in output.splitlines():
        if line.startswith('{"bench"'):
            try:
                found.append(json.loads(line))
            except ValueError:
                return None
    if not found:
        return None
    worst = max(found, key=lambda item: item["errors"])
    problem = f"{worst['errors']} wrong words, allowed 0" if worst["errors"] else ""
    return Reading(float(worst["value"]), problem)


def read_nccl(output: str) -> Reading | None:
    """Return the average bus bandwidth of nccl-tests, in GB/s.

    Without MPI in the program, each node would measure itself alone, and print an average of its own.
    """
    averages = re.findall(r"^# Avg bus bandwidth\s*:\s*([0-9.]+)\s*$", output, re.MULTILINE)
    wrong = re.search(r"^# Out of bounds values\s*:\s*(\d+)", output, re.MULTILINE)
    if len(averages) != 1:
        return None
    count = int(wrong[1]) if wrong else 0
    channels = [int(number) for number in re.findall(r"NCCL INFO .*?\b(\d+) nvls channels", output)]
    nvls = any(channels) if channels else None
    return Reading(float(averages[0]), f"{count} wrong values, allowed 0" if count else "", nvls=nvls)


def cause(output: str) -> str:
    """Return why an output has no reading: the first line about an error or the last line, at most 200 characters."""
    if re.search(r"^# Avg bus bandwidth\s*:\s*-?nan", output, re.MULTILINE):
        return "no bandwidth: the size exceeds the GPUs' memory. Lower arguments.mib, or build nccl-tests 2.16.6"
    lines = [line.strip() for line in output.splitlines() if line.strip(" #\t") not in {"", _BEGAN}] or ["no output"]
    # On healthy nodes, NCCL tells of plug-ins that it failed to find, and a column of nccl-tests is `error`.
    told = (line for line in lines if "NCCL INFO" not in line and not line.startswith("#"))
    return next((line for line in told if re.search(r"fail|error", line, re.IGNORECASE)), lines[-1])[:200]


def read_rdma(output: str) -> Reading | None:
    """Return the average bandwidth of ib_write_bw, in Gb/s: the fourth column of its row of numbers."""
    rows = [line.split() for line in output.splitlines()]
    numbers = [row for row in rows if len(row) >= 5 and all(re.fullmatch(r"\d+(\.\d+)?", text) for text in row[:5])]
    return Reading(float(numbers[-1][3])) if numbers else None


def read_tcp(output: str) -> Reading | None:
    """Return the rate that the receiver of iperf3 measured, in Gb/s."""
    report, _ = json.JSONDecoder().raw_decode(output, max(0, output.find("{")))
    return Reading(report["end"]["sum_received"]["bits_per_second"] / 1e9)


PROGRAMS: Mapping[str, LongProgram] = {
    "ring": LongProgram(_ring, read_bench),
    "memory": LongProgram(_memory, read_bench),
    "storage": LongProgram(_storage, read_bench),
    "nccl": LongProgram(_nccl, read_nccl, "all_reduce_perf"),
    "dcgm": LongProgram(_dcgm, read_dcgm, "dcgmi"),
    "rdma": LongProgram(_rdma, read_rdma, "ib_write_bw"),
    "tcp": LongProgram(_tcp, read_tcp, "iperf3"),
}
