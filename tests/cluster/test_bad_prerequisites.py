"""Faults around the cluster, reported with the next step."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from jail_testing.file_systems import in_memory_with, mounted

from tests.cluster.slurm import Slurm, a_jail
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


def test_storage_on_which_no_jail_can_live_is_refused_before_it_is_filled(
    new_slurm: Callable[..., Slurm], tmp_path: Path
) -> None:
    slurm = new_slurm(jail=a_jail(storage={}))
    with mounted(in_memory_with("size=4G,noexec"), tmp_path) as folder:
        shared = {"name": slurm.namespace, "host_path": str(folder), "size_gib": 1, "keep": False}
        slurm.platform = {"shared_storage": shared}

        slurm.deployer().preview()  # finds no volume that it would have to look for
        with pytest.raises(DeployError) as failure:
            slurm.up()

        left = [*folder.iterdir()]
    slurm.kubernetes.run("delete", "persistentvolume", slurm.namespace, "--wait=false")

    said = str(failure.value)
    assert "the claim's storage cannot hold a jail. Nothing was filled." in said
    assert "execution: found Operation not permitted (EPERM)" in said
    assert "Remove noexec from the mountOptions" in said
    assert "jail.storage.accept" in said
    assert left == []


@pytest.mark.parametrize("content", [None, "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]"])
def test_a_kubeconfig_that_leads_nowhere_is_reported(
    slurm: Slurm, tmp_path: Path, content: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if content:
        rest = "contexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\ncurrent-context: x"
        kubeconfig.write_text(f"apiVersion: v1\nkind: Config\n{content}\n{rest}\n")
    nowhere = replace(slurm.kubernetes, target=replace(slurm.kubernetes.target, kubeconfig=kubeconfig))
    lost = Slurm(nowhere, tmp_path / "lost", {**slurm.cluster, "name": "lost"})

    with pytest.raises(DeployError) as failure:
        lost.deployer().up()

    said = str(failure.value)
    assert (str(kubeconfig) if content is None else "127.0.0.1:9") in said
    assert "Traceback" not in capfd.readouterr().err + said
