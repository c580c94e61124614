"""The ring of node-bench, built with the machine's compiler, on addresses of this machine."""

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.spank_plugin.compiler import toolchain

SOURCES = Path(__file__).parents[2] / "images" / "worker" / "node_bench"
ADDRESSES = {"a": "127.0.0.2", "b": "127.0.0.3"}
SECONDS = 60


@pytest.fixture(scope="module")
def node_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools, build = toolchain(), tmp_path_factory.mktemp("node-bench") / "build"
    shutil.copytree(SOURCES, build)
    subprocess.run(
        [tools.make, "--silent", "STATIC=", *tools.variables],
        cwd=build,
        env={**os.environ, **tools.environment},
        check=True,
        timeout=300,
    )
    return build / "node-bench"


def free_port() -> int:
    with socket.create_server((ADDRESSES["b"], 0)) as server:
        port: int = server.getsockname()[1]
        return port


def started(node_bench: Path, node: str, port: int) -> subprocess.Popen[str]:
    ring = ",".join(f"{name}={address}" for name, address in ADDRESSES.items())
    command = [str(node_bench), "ring", ring, str(port), "1", "0.1"]
    return subprocess.Popen(
        command, env={"SLURMD_NODENAME": node}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def connected(port: int) -> socket.socket:
    """Return a connection of someone else, made as soon as node b listens."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection((ADDRESSES["b"], port))
        except ConnectionRefusedError:
            assert time.monotonic() < end, "node b does not listen"
            time.sleep(0.01)


def test_a_program_of_someone_else_that_connects_first_and_sends_sums_changes_no_result(node_bench: Path) -> None:
    port = free_port()
    second = started(node_bench, "b", port)
    with connected(port) as intruder:
        intruder.send(bytes(65536))
        first = started(node_bench, "a", port)
        shown, problems = first.communicate(timeout=2 * SECONDS)
        _, more = second.communicate(timeout=2 * SECONDS)

    assert (first.returncode, second.returncode) == (0, 0), problems + more
    assert json.loads(shown)["errors"] == 0
    assert json.loads(shown)["value"] > 0
