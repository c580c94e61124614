"""Rendered manifests at a real API server: it accepts each object, and the commands that make the Secrets work."""

import re
import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi import SlurmCluster
from soperator_pulumi.testing import deploy, manifests_of
from tests.engine.conftest import Stack
from tools import paths
from tools.kube.debs import tool

pytestmark = pytest.mark.engine

PAGE = (paths.ROOT / "docs" / "your-cluster.md").read_text()
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(new_stack: Callable[..., Stack], tmp_path: Path) -> tuple[Stack, Path]:
    """The example of a cluster, rendered for a namespace that exists, without the kinds of Prometheus' operator.

    The API server learns those kinds in the tests of the real chart, which offer the cluster's objects to it.
    """
    stack = new_stack("local")
    cluster: dict[str, Any] = yaml.safe_load(EXAMPLE)["config"]["soperator:cluster"]
    described = {**cluster, "namespace": stack.namespace, "metrics": {}}
    rendered = manifests_of(deploy(lambda: SlurmCluster("hpc", described), project="soperator", stack_name="prod"))
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    for name, text in rendered.files("prod").items():
        (manifests / name).write_text(text)
    return stack, manifests


def test_the_api_server_accepts_each_manifest(folder: tuple[Stack, Path]) -> None:
    stack, manifests = folder

    shown = stack.kubernetes.run("apply", "--server-side", "--dry-run=server", "-f", str(manifests))

    accepted = [line for line in shown.splitlines() if line.endswith("serverside-applied (server dry run)")]
    assert len(accepted) == len([*manifests.glob("*.yaml")])
    assert stack.data("slurm-config") is None


def test_the_commands_of_the_page_make_the_secrets(folder: tuple[Stack, Path], tmp_path: Path) -> None:
    stack, manifests = folder
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", (manifests / "secrets.md").read_text(), re.DOTALL))
    keys = tmp_path / "keys"
    keys.mkdir()
    ssh = tool("ssh")  # its package has ssh-keygen, too
    programs = f"{stack.kubernetes.kubectl.parent}:{ssh.path.parent}:/usr/bin:/bin"

    subprocess.run(
        ["bash", "-euc", commands],
        cwd=keys,
        env={
            **ssh.environment,
            "PATH": programs,
            "KUBECONFIG": str(stack.kubernetes.kubeconfig),
            "HOME": str(keys),
        },
        check=True,
        timeout=120,
    )

    munge, host = (stack.find("secrets", name) for name in ("munge-key", "ssh-host-key"))
    assert munge is not None
    assert host is not None
    assert munge["data"].keys() == {"munge.key"}
    assert host["data"].keys() == {"ssh_host_ed25519_key"}
    password, slurmdbd = (stack.find("secrets", name) for name in ("database-password", "slurmdbd-config"))
    assert password is not None
    assert slurmdbd is not None
    known = b64decode(password["data"]["password"]).decode()
    assert f"StoragePass={known}" in b64decode(slurmdbd["data"]["slurmdbd.conf"]).decode().splitlines()
    assert munge["metadata"]["labels"]["soperator-pulumi/owner"] == "soperator.prod.hpc"
    assert [path.name for path in keys.iterdir() if path.is_file()] == []
