"""What is wrong around the cluster is told in words, with what to do."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.slurm import NOWHERE, Slurm, a_node_set
from tools import images
from tools.engine import DeployError

pytestmark = pytest.mark.cluster


def test_an_image_that_cannot_be_pulled_is_named(
    new_slurm: Callable[..., Slurm], capfd: pytest.CaptureFixture[str]
) -> None:
    references = {**images.references(), "worker": NOWHERE}
    slurm = new_slurm(images=references, node_sets=[a_node_set("cpu", ready_timeout_seconds=10)])

    with pytest.raises(DeployError) as failure:
        slurm.up()

    assert "cpu: 1 of 1 nodes have not joined Slurm after 10 s" in str(failure.value)
    assert NOWHERE in str(failure.value)
    assert "Traceback" not in capfd.readouterr().err + str(failure.value)


def test_nodes_that_fit_on_no_machine_are_told_with_the_schedulers_reason(new_slurm: Callable[..., Slurm]) -> None:
    huge = {"requests": {"cpu": "1000", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    slurm = new_slurm(node_sets=[a_node_set("cpu", pod_resources=huge, ready_timeout_seconds=10)])

    with pytest.raises(DeployError, match=r"Insufficient cpu"):
        slurm.up()


@pytest.mark.parametrize("content", [None, "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]"])
def test_a_kubeconfig_that_leads_nowhere_is_told(
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
