"""`soperator`, on a real cluster, in a process of its own as a shell starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.slurm import Slurm
from tools import paths
from tools.kube.debs import tool

pytestmark = pytest.mark.cluster


@pytest.fixture
def soperator(slurm: Slurm, tmp_path: Path) -> Any:
    """Run a command on the shared cluster."""
    ssh, target = tool("ssh"), slurm.kubernetes.target
    programs = [str(ssh.path.parent), str(slurm.kubernetes.kubectl.parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        **ssh.environment,
        "KUBECONFIG": str(target.kubeconfig),
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": str(paths.ROOT),
        "XDG_STATE_HOME": str(tmp_path),
    }
    context = ["--context", target.context] if target.context else []

    def run(*words: str, status: int = 0) -> str:
        command, *rest = words
        inner = [rest.pop(0)] if command == "nodes" else []
        line = [sys.executable, "-m", "soperator_pulumi.cli", command, *inner, "-n", slurm.namespace, *context, *rest]
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


def test_a_node_is_drained_explained_and_undrained(soperator: Any, slurm: Slurm) -> None:
    assert soperator("status").endswith("All nodes take jobs.\n")
    try:
        assert soperator("nodes", "drain", "big-0", "--reason", "new disk", "--wait", "60") == "drained: big-0\n"
        assert "big-0: new disk\n" in soperator("status", status=1)
        assert "A person has drained it" in soperator("nodes", "explain", "big-0")
    finally:
        assert soperator("nodes", "undrain", "big-0") == "undrained: big-0\n"
    assert slurm.ssh("srun -p big hostname").stdout == "big-0\n"


def test_the_status_has_the_jobs_of_each_node(soperator: Any, slurm: Slurm) -> None:
    job = slurm.submit("sleep 600", options="-w cpu-0")
    slurm.wait_for_job(job, "RUNNING")
    nodes = {node["name"]: node for node in json.loads(soperator("status", "--json"))["nodes"]}
    slurm.ssh(f"scancel {job}")
    assert nodes["cpu-0"]["jobs"] == [str(job)]
    assert nodes["cpu-1"]["jobs"] == []


def test_a_user_logs_in_and_a_command_of_several_lines_arrives_unharmed(soperator: Any, slurm: Slurm) -> None:
    login = ("ssh", "--user", "alice", "--identity", str(slurm._identity("alice")))
    assert soperator(*login, "id -un\necho 'two  spaces'") == "alice\ntwo  spaces\n"
    assert soperator(*login, "exit 7", status=7) == ""


def test_an_admin_is_root_in_the_jail(soperator: Any) -> None:
    assert soperator("admin", "id -u\necho 'two  spaces'") == "0\ntwo  spaces\n"
