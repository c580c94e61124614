"""Readings of programs that measure, and of Slurm's own commands.

Outputs of node-bench, scontrol and squeue were recorded (Slurm 24.11.5). Those of all_reduce_perf, dcgmi, ib_write_bw
and iperf3 are made from their documentation.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from long_checks.job_reading import Reading
from long_checks.long_settings import parse_long
from long_checks.programs import PROGRAMS, cause, has_begun, missing_program, read, script
from long_checks.slurm_calls import JobRequest, parse_job_state, parse_jobs, parse_nodes, reservation_nodes

NCCL = """\
# nThread 1 nGpus 8 minBytes 17179869184 maxBytes 17179869184 step: 1048576(bytes) warmup iters: 5 iters: 20
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
 17179869184    4294967296     float     sum      -1    62650  274.22  479.88      0    62612  274.39  480.18      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 480.03
#
"""

DCGM = """\
{"DCGM Diagnostic": {"test_categories": [
 {"category": "Deployment", "tests": [{"name": "software", "results": [{"status": "Pass"}]}]},
 {"category": "Hardware", "tests": [
  {"name": "memory", "results": [{"entity_id": 0, "status": "Pass"}, {"entity_id": 3, "status": "Fail"}],
   "test_summary": {"status": "Fail"}},
  {"name": "pcie", "results": [{"entity_id": 0, "status": "Skip"}]}]}]}}
"""


def diagnosed(*tests: str, before: str = "", behind: str = "") -> str:
    """Return a report of DCGM 4 with tests, among the lines of other programs."""
    report = f'{{"DCGM Diagnostic": {{"test_categories": [{{"category": "", "tests": [{",".join(tests)}]}}, null]}}}}'
    return f"{before}{report}{behind}"


def a_test(name: str, status: str, gpu: int = 0, severity: int | None = None) -> str:
    """Return the result of a test of DCGM 4 for one GPU."""
    warning = {"warning": "words of DCGM", "error_category": 8, "error_id": 29, "error_severity": severity}
    found = {
        "entity_group": "GPU",
        "entity_id": gpu,
        "status": status,
        "warnings": None if severity is None else [warning],
    }
    return json.dumps({"name": name, "results": [found], "test_summary": {"status": status}})


DCGM_3 = """\
Successfully started
{"DCGM GPU Diagnostic": {"version": "3.3.5", "test_categories": [
 {"category": "Deployment", "tests": [
  {"name": "Persistence Mode", "results": [{"status": "FAIL", "warnings": "Persistence mode for GPU 0 is disabled."}]},
  {"name": "Page Retirement/Row Remap", "results": [{"status": "PASS"}]}]},
 {"category": "Hardware", "tests": [{"name": "GPU Memory", "results": [{"gpu_ids": "0", "status": "PASS"}]}]}]}}
"""

PAGES = '{"name": "Page Retirement/Row Remap", "results": [{"gpu_ids": "0,1", "status": "PASS"}]}'


def of_dcgm_3(name: str, *statuses: str) -> str:
    """Return the results of a test of DCGM 3, for GPU 0 and on."""
    results = [{"gpu_ids": str(gpu), "status": status} for gpu, status in enumerate(statuses)]
    return json.dumps({"name": name, "results": results})


INFO = "node:7:21 [0] NCCL INFO 24 coll channels, 24 collnet channels,"

RDMA = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      7500000          0.00               391.62             0.746957
---------------------------------------------------------------------------------------
"""

TCP = '{"start": {}, "end": {"sum_sent": {"bits_per_second": 9.9e9}, "sum_received": {"bits_per_second": 9.4e9}}}'

RING = '{"bench": "ring", "value": 0.73, "errors": 0}\n'


@pytest.mark.parametrize(
    ("program", "output", "reading"),
    [
        ("ring", RING, Reading(0.73)),
        ("ring", RING + '{"bench": "ring", "value": 0.2, "errors": 3}\n', Reading(0.2, "3 wrong words, allowed 0")),
        ("memory", '{"bench": "memory", "value": 14.6547, "errors": 0}\n', Reading(14.6547)),
        ("storage", '{"bench": "storage", "value": 0.319459, "errors": 0}\n', Reading(0.319459)),
        ("nccl", NCCL, Reading(480.03)),
        ("nccl", f"{INFO} 16 nvls channels, 32 p2p channels\n{NCCL}", Reading(480.03, nvls=True)),
        ("nccl", f"{INFO} 0 nvls channels, 32 p2p channels\n{NCCL}", Reading(480.03, nvls=False)),
        ("nccl", NCCL.replace(": 0 OK", ": 4 FAILED"), Reading(480.03, "4 wrong values, allowed 0")),
        ("dcgm", DCGM, Reading(None, "memory failed, allowed none")),
        ("dcgm", DCGM.replace("Fail", "Pass"), Reading(None, "")),
        ("dcgm", DCGM_3, Reading(None, "", "Persistence Mode: Persistence mode for GPU 0 is disabled.")),
        (
            "dcgm",
            DCGM_3.replace('"PASS"}]}]},', '"FAIL"}]}]},'),
            Reading(
                None,
                "Page Retirement/Row Remap failed, allowed none",
                "Persistence Mode: Persistence mode for GPU 0 is disabled.",
            ),
        ),
        (
            "dcgm",
            diagnosed(a_test("software", "Fail", severity=5), a_test("memory", "Pass")),
            Reading(None, "", "software: words of DCGM"),
        ),
        (
            "dcgm",
            diagnosed(a_test("software", "Fail", severity=2), a_test("memory", "Pass")),
            Reading(None, "software failed, allowed none"),
        ),
        ("dcgm", diagnosed(a_test("memory", "Fail", severity=4)), Reading(None, "memory failed, allowed none")),
        ("dcgm", diagnosed(a_test("memory", "Fail", severity=1)), None),
        ("dcgm", diagnosed(a_test("software", "Pass"), a_test("memory", "Skip"), a_test("pcie", "Skip")), None),
        ("dcgm", diagnosed(a_test("memory", "Pass"), a_test("memory", "Skip", gpu=1)), None),
        ("dcgm", diagnosed(PAGES), Reading(None, "")),
        ("dcgm", diagnosed(PAGES, of_dcgm_3("PCIe", "Skip", "Skip")), None),
        ("dcgm", diagnosed(PAGES.replace('"gpu_ids": "0,1", ', ""), of_dcgm_3("PCIe", "Skip", "Skip")), None),
        ("dcgm", diagnosed(PAGES, of_dcgm_3("PCIe", "Pass", "Skip")), None),
        ("dcgm", diagnosed(PAGES.replace("PASS", "SKIP"), of_dcgm_3("PCIe", "Pass", "Pass")), Reading(None, "")),
        (
            "dcgm",
            diagnosed(PAGES.replace("PASS", "FAIL"), of_dcgm_3("PCIe", "Pass", "Pass")),
            Reading(None, "Page Retirement/Row Remap failed, allowed none"),
        ),
        (
            "dcgm",
            diagnosed(
                a_test("memory", "Pass"), a_test("pcie", "Pass").replace('{"status": "Pass"}', '{"status": "Fail"}')
            ),
            Reading(None, "pcie failed, allowed none"),
        ),
        (
            "dcgm",
            diagnosed(a_test("memory", "Pass"), before="log {of} a program {\n", behind="\n{}"),
            Reading(None, ""),
        ),
        ("dcgm", DCGM.replace("DCGM Diagnostic", "DCGM GPU Diagnostic"), Reading(None, "memory failed, allowed none")),
        ("rdma", RDMA, Reading(391.62)),
        ("tcp", TCP, Reading(9.4)),
    ],
)
def test_an_output_has_its_reading(program: str, output: str, reading: Reading | None) -> None:
    assert PROGRAMS[program].read(output) == reading


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "no output"),
        (NCCL.replace("480.03\n", "-nan \n"), "no bandwidth: the size exceeds the GPUs' memory"),
        (
            "# Using devices\nnode: Test CUDA failure common.cu:1007 'busy'\n .. pid 1: Test failure\n",
            "node: Test CUDA",
        ),
        (
            "x:7 NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8.\n# busbw error\nx: Test NCCL failure 'x'\n",
            "x: Test NCCL failure",
        ),
        ("one\ntwo\n#\n", "two"),
    ],
)
def test_an_output_without_a_reading_has_a_cause(output: str, words: str) -> None:
    assert read("nccl", output) is None
    assert cause(output).startswith(words)


@pytest.mark.parametrize(
    ("memory", "size"), [("40960", 8192), ("24564\n24564", 6822), ("15360", 3754), ("[N/A]", 8192)]
)
def test_the_size_of_nccl_fits_the_memory_of_the_smallest_gpu(tmp_path: Path, memory: str, size: int) -> None:
    for name, text in (("nvidia-smi", f"echo '{memory}'"), ("srun", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    made = PROGRAMS["nccl"].script({}, {"gpus": 8, "mib": 8192}, "/out").replace("/opt/slurm/bin/", "")
    ended = subprocess.run(
        ["/bin/sh", "-c", made],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert f"all_reduce_perf -b {size}M -e {size}M -g 8 " in ended.stdout


def test_a_program_without_mpi_that_measured_each_node_alone_has_no_reading() -> None:
    assert PROGRAMS["nccl"].read(NCCL + NCCL) is None


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "output", ["", "garbage", "{", "slurmstepd: error", "null", '{"bench": ', "# Avg bus bandwidth :"]
)
def test_an_output_of_something_else_has_none(program: str, output: str) -> None:
    assert read(program, output) is None


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_script_has_every_address_that_its_job_needs(program: str) -> None:
    arguments = {"mib": 8, "seconds": 2, "level": 2, "gpus": 8, "streams": 4, "port": 21_018, "time_limit": 300}
    script = PROGRAMS[program].script({"cpu-0": "10.0.0.1", "cpu-1": "10.0.0.2"}, arguments, "/out")

    assert "{given" not in script
    wanted = {"ring": ("cpu-0=10.0.0.1,cpu-1=10.0.0.2",), "rdma": ("10.0.0.1",), "tcp": ("10.0.0.1",)}
    assert all(text in script for text in wanted.get(program, ()))


ARGUMENTS = {"mib": 8, "seconds": 2, "level": 2, "gpus": 8, "streams": 4, "port": 21_018, "time_limit": 300}


@pytest.mark.parametrize("program", [name for name, program in PROGRAMS.items() if program.of_jail])
def test_a_job_names_the_program_that_the_jail_does_not_have(tmp_path: Path, program: str) -> None:
    wrapped = script(program, {"cpu-0": "10.0.0.1", "cpu-1": "10.0.0.2"}, ARGUMENTS, "/out")
    shell = ["/bin/sh", "-c", wrapped]
    ended = subprocess.run(shell, env={"PATH": str(tmp_path)}, stdout=subprocess.PIPE, text=True, check=False)

    assert ended.returncode
    assert missing_program(ended.stdout) == PROGRAMS[program].of_jail
    assert read(program, ended.stdout) is None


SRUN = """#!/bin/sh
echo "$1" >> "$0.images"
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
"""A step, on the only node of the test."""


@pytest.fixture
def in_image(tmp_path: Path) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)

    def run(program: str) -> "subprocess.CompletedProcess[str]":
        wrapped = script(program, {"cpu-0": "10.0.0.1", "cpu-1": "10.0.0.2"}, ARGUMENTS, "/out", "team/tests:1")
        shell = ["/bin/sh", "-c", wrapped.replace("/opt/slurm/bin/", "")]
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(shell, env=path, stdout=subprocess.PIPE, text=True, check=False)

    return run


@pytest.mark.parametrize("program", [name for name, program in PROGRAMS.items() if program.of_jail])
def test_a_job_in_an_image_names_the_program_that_the_image_does_not_have(
    in_image: Callable[[str], "subprocess.CompletedProcess[str]"], program: str
) -> None:
    ended = in_image(program)

    assert ended.returncode
    assert missing_program(ended.stdout) == PROGRAMS[program].of_jail
    assert not has_begun(ended.stdout)


@pytest.mark.parametrize("program", ["dcgm", "nccl"])
def test_all_steps_of_a_job_are_in_its_image(
    tmp_path: Path, in_image: Callable[[str], "subprocess.CompletedProcess[str]"], program: str
) -> None:
    (tmp_path / PROGRAMS[program].of_jail).write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / PROGRAMS[program].of_jail).chmod(0o755)
    ended = in_image(program)

    assert has_begun(ended.stdout)
    assert ended.stdout.splitlines()[-1].startswith({"dcgm": "diag -r 2 -j", "nccl": "-b 8M -e 8M -g 8"}[program])
    assert (tmp_path / "srun.images").read_text() == "--container-image=team/tests:1\n" * 2
    assert "--container-env=NCCL_DEBUG,NCCL_DEBUG_SUBSYS" in script(program, {}, ARGUMENTS, "/out", "team/tests:1")


def test_a_slow_start_of_containers_is_none_of_the_programs_and_leaves_it_its_time(tmp_path: Path) -> None:
    arguments = {**ARGUMENTS, "time_limit": 10}
    wrapped = script("dcgm", {}, arguments, "/out", "team/tests:1").replace("/opt/slurm/bin/", "")
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "date").write_text(
        f"#!/bin/sh\necho . >> {tmp_path}/dates; echo $(($(wc -l < {tmp_path}/dates) * 2))\n"
    )
    for name in ("srun", "date"):
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ended = subprocess.run(["/bin/sh", "-c", wrapped], env=path, stdout=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stdout == "the start of the containers took 2 s, allowed 1\n"


def test_attempts_between_containers_end_before_the_limit_of_the_job() -> None:
    addresses = {"a": "10.0.0.1", "b": "10.0.0.2"}
    text = script("tcp", addresses, {**ARGUMENTS, "seconds": 280}, "", "team/tests:1")
    assert {int(bound) for bound in re.findall(r"timeout (\d+)", text)} == {210}


def test_an_attempt_between_two_nodes_ends_before_the_limit_of_its_job_however_long_it_measures() -> None:
    addresses = {"a": "10.0.0.1", "b": "10.0.0.2"}
    text = PROGRAMS["tcp"].script(addresses, {**ARGUMENTS, "seconds": 280}, "")
    assert {int(bound) for bound in re.findall(r"timeout (\d+)", text)} == {270}


@pytest.mark.parametrize("output", ["", NCCL, "sh: 1: iperf3: not found", "echo health: no program x"])
def test_an_output_of_a_program_that_is_there_names_none(output: str) -> None:
    assert missing_program(output) is None


def test_a_job_runs_the_program_that_the_jail_has(tmp_path: Path) -> None:
    (tmp_path / "dcgmi").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "dcgmi").chmod(0o755)
    shell = ["/bin/sh", "-c", script("dcgm", {}, ARGUMENTS, "/out")]
    ended = subprocess.run(
        shell, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdout=subprocess.PIPE, text=True, check=True
    )

    assert ended.stdout == "diag -r 2 -j\n"


def test_a_program_without_output_has_no_line_of_its_script_as_its_cause() -> None:
    assert cause("health: began\n") == "no output"


NODES = (
    "NodeName=cpu-0 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=2 CPUTot=2 CPULoad=4.21 AvailableFeatures=cpu "
    "ActiveFeatures=cpu,fast Gres=(null) NodeAddr=10.244.0.206 NodeHostName=cpu-0 Version=24.11.5 "
    "OS=Linux 6.18.44-fc-v769 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1024 AllocMem=0 FreeMem=14366 Sockets=2 Boards=1 "
    "State=IDLE+DYNAMIC_NORM+MAINTENANCE+RESERVED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=main,other  BootTime=2026-11-23T15:26:20 CfgTRES=cpu=2,mem=1G,billing=2 AllocTRES= "
    "ReservationName=health-ring_bandwidth-cpu-2\n"
    "NodeName=cpu-1 ActiveFeatures=cpu NodeAddr=10.244.0.208 State=IDLE+DRAIN+DYNAMIC_NORM Partitions=main "
    "AllocTRES= CurrentWatts=0 AveWatts=0  "
    "Reason=health ring_bandwidth: 0.02 GB/s, allowed 0.1 GB/s [root@2026-11-23T15:26:20]\n"
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "output",
    [
        "",
        "\x00",
        "[]",
        '{"bench": 1}',
        '{"bench": "ring", "value": null, "errors": 0}',
        '{"DCGM Diagnostic": []}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"results": [{"status": "Fail"}]}]}]}}',
        '{"end": []}',
        "# Avg bus bandwidth : 1.2.3",
    ],
)
def test_an_output_of_another_form_is_no_result(program: str, output: str) -> None:
    assert read(program, output) is None


def test_nodes_are_read_with_their_reasons() -> None:
    first, second = parse_nodes(NODES)

    assert (first.name, first.address, first.features) == ("cpu-0", "10.244.0.206", ("cpu", "fast"))
    assert (first.partitions, first.is_idle()) == (("main", "other"), False)
    assert first.is_idle("health-ring_bandwidth-cpu-2")
    assert not first.is_idle("another")
    assert second.state.drained
    assert second.state.reason == "health ring_bandwidth: 0.02 GB/s, allowed 0.1 GB/s"


def test_a_reason_of_an_admin_is_no_other_field() -> None:
    _, drained = parse_nodes(NODES.replace("health ring_bandwidth:", "fan State=IDLE NodeAddr=10.0.0.1 Partitions=x:"))

    assert drained.state.drained
    assert (drained.address, drained.partitions) == ("10.244.0.208", ("main",))


def test_jobs_and_reservations_are_read() -> None:
    assert [job.job_id for job in parse_jobs("7|PENDING|health-ring_bandwidth\n9|RUNNING|health-ring_bandwidth\n")] == [
        7,
        9,
    ]
    assert parse_job_state("JobId=1 JobName=x JobState=COMPLETED Reason=None") == "COMPLETED"
    ended = "JobId=1 JobState=COMPLETED Reason=None SuspendTime={} SecsPreSuspend=3 Partition=main"
    assert parse_job_state(ended.format("None")) == "COMPLETED"
    assert parse_job_state(ended.format("2026-11-25T12:00:00")) == "COMPLETED after a suspension"
    assert parse_job_state("JobState=RUNNING SuspendTime=2026-11-25T12:00:00") == "RUNNING"
    assert parse_job_state("slurm_load_jobs error: Invalid job id specified") == ""
    shown = (
        "ReservationName=health-ring_bandwidth-cpu-2 StartTime=2026-11-23T15:27:24 EndTime=2027-11-23T15:27:24 "
        "Duration=365-00:00:00 Nodes=cpu-[0,2] NodeCnt=2 Flags=MAINT,IGNORE_JOBS,SPEC_NODES Users=soperator-health\n"
    )
    assert reservation_nodes(shown) == {"health-ring_bandwidth-cpu-2": "cpu-[0,2]"}
    assert reservation_nodes("No reservations in the system\n") == {}


def test_a_job_is_of_its_user_and_of_that_users_group() -> None:
    request = JobRequest("health-x", ("a", "b"), "true", "/out/%j.out", "/out", 64034, 61, 30, 10)
    options = request.options()

    assert {"--uid=64034", "--gid=64034", "--exclusive", "--no-requeue", "--nodelist=a,b", "--nice=10"} <= {*options}
    assert {"--time=2", "--deadline=now+150"} <= {*options}


def test_settings_of_another_format_are_refused() -> None:
    with pytest.raises(ValueError, match="do not have format 1"):
        parse_long('{"format": 2}')
