"""Long checks among strangers: one who calls a program's port, or takes its names, costs no node its place."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from long_checks.programs import PORTS, read, script

ADDRESSES = {"cpu-0": "127.0.0.1", "cpu-1": "127.0.0.1"}
SRUN = """\
import os, subprocess, sys
tasks = sys.argv[next(i for i, node in enumerate(sys.argv) if node == "sh"):]
variables = [{**os.environ, "SLURMD_NODENAME": name} for name in ("cpu-0", "cpu-1")]
nodes = [subprocess.Popen(tasks, env=own, start_new_session=True) for own in variables]
os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
for node in nodes:  # --wait
    if node.poll() is None:
        os.killpg(node.pid, 9)
        node.wait()
sys.exit(max(abs(node.returncode) for node in nodes))
"""
TOOL = """\
import json, socket, sys, os
given = sys.argv[1:]
port = int(given[given.index("-p") + 1])
is_client = "-c" in given or given[-1].count(".") == 3 and "-s" not in given
if is_client:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.sendall(b"hello")
            answer = line.recv(5)
    except OSError as error:
        print(json.dumps({"error": f"unable to connect: {error}"}))
        sys.exit(1)
    if answer != b"hello":
        print(json.dumps({"error": "the server is busy"}))
        sys.exit(1)
    if "-c" in given:
        print(json.dumps({"end": {"sum_received": {"bits_per_second": 9.4e9}}}))
    else:
        print(" 65536      5000             0.00               391.62             0.74")
else:
    print("Server listening on", port)
    with socket.create_server(("127.0.0.1", port), reuse_port=True) as door:
        line, _ = door.accept()
        with line:
            if line.recv(5) != b"hello":
                sys.exit(1)  # as iperf3 -s -1 and ib_write_bw end after any caller
            line.sendall(b"hello")
"""


@pytest.fixture
def jail(tmp_path: Path) -> Path:
    """A folder of programs: srun of two nodes, and tools that serve one caller, whoever it is."""
    for name, text in (("srun", SRUN), ("iperf3", TOOL), ("ib_write_bw", TOOL)):
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/{name}.py "$@"\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.2\n")
    (tmp_path / "sleep").chmod(0o755)
    return tmp_path


@contextmanager
def a_door() -> Iterator[int]:
    """Yield a port on which a program listens that answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        yield int(door.getsockname()[1])


def started(jail: Path, program: str, given: Mapping[str, float]) -> "subprocess.Popen[str]":
    command = script(program, ADDRESSES, given, "/out").replace("/opt/slurm/bin/", "")
    environment = {"PATH": f"{jail}:{os.environ['PATH']}"}
    return subprocess.Popen(
        ["/bin/sh", "-c", command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def given(port: int, time_limit: float = 60) -> dict[str, float]:
    return {"seconds": 1, "streams": 4, "port": port, "time_limit": time_limit}


@pytest.mark.parametrize(("program", "value"), [("tcp", 9.4), ("rdma", 391.62)])
def test_a_stranger_who_calls_first_takes_no_measurement(jail: Path, program: str, value: float) -> None:
    with a_door() as free:
        pass
    job = started(jail, program, given(free))
    calls = 0
    end = time.monotonic() + 20
    while calls < 2 and time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", free), 1) as line:
                line.sendall(b"GET /")
                calls += not line.recv(1)
        except OSError:
            time.sleep(0.005)
    output, _ = job.communicate(timeout=60)

    assert calls
    reading = read(program, output)
    assert reading is not None, output
    assert reading.value == pytest.approx(value)


@pytest.mark.parametrize("program", ["tcp", "rdma"])
def test_a_stranger_who_holds_the_server_ends_the_job_before_its_time_limit(jail: Path, program: str) -> None:
    """A job at its limit counts as a node's failure; one that ends without a reading is no conclusion."""
    began = time.monotonic()
    with a_door() as port:
        output, _ = (job := started(jail, program, given(port, time_limit=1))).communicate(timeout=60)

    assert job.returncode
    assert read(program, output) is None
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("program", ["tcp", "rdma"])
def test_each_job_has_a_port_of_its_own(program: str) -> None:
    for port in (PORTS[0], PORTS[-1]):
        ports = re.findall(r" -p (\d+)", script(program, ADDRESSES, given(port), "/out"))
        assert ports == [str(port)] * 2
    assert len(PORTS) > 10_000
    assert PORTS[-1] < 32_768, "below those of outgoing connections"


def test_dcgm_keeps_its_files_where_no_other_user_can_have_made_them(tmp_path: Path) -> None:
    made = script("dcgm", {}, {"level": 2}, "/out")
    for name in ("nv-hostengine", "dcgmi"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nls -ld "${{2%/*}}" >> {tmp_path}/calls\n'
        )
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    subprocess.run(["/bin/sh", "-c", made], env=environment, check=True)

    called = (tmp_path / "calls").read_text()
    (pid,) = re.findall(r"--pid (\S+)", called)
    assert f"--log-filename {Path(pid).parent}/" in called
    assert "drwx------" in called
    assert not Path(pid).parent.exists(), "and leaves none"
    assert "/tmp/health-dcgm" not in made
