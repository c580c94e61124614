"""The check before all of Slurm: what it records, prints and refuses."""

from collections.abc import Mapping
from typing import Any

import pytest

from soperator_pulumi.errors import ConfigRefusedError, KubernetesError
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.slurm_version import SlurmVersionProvider
from soperator_pulumi.operations.slurm_upgrade import VERSION_ANNOTATION
from tests.fakes.objects import NAMESPACE, NAMESPACE_PATH, SELECTOR, STATEFUL_SETS, labels_of
from tests.fakes.small_world import SmallWorld


def inputs(version: str, *settings: str) -> dict[str, Any]:
    place = {"namespace": NAMESPACE, "namespace_uid": "recorded", "owner": "project.dev.hpc", "selector": SELECTOR}
    return {**place, "version": version, "new_settings": [*settings], "kubeconfig": None, "context": None}


def bring(world: SmallWorld, version: str) -> None:
    """Bring the controller to a version, as Pulumi does after the check."""
    metadata = {"name": "controller", "labels": labels_of("controller"), "annotations": {VERSION_ANNOTATION: version}}
    world.objects[f"{STATEFUL_SETS}/controller"] = {"metadata": metadata, "status": {}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    """The namespace of a cluster, with nothing in it."""
    world = SmallWorld()
    world.objects[NAMESPACE_PATH] = {"metadata": {"name": NAMESPACE, "uid": "recorded"}}

    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> SmallWorld:
        return world

    monkeypatch.setattr(LiveProvider, "kube", kube)
    return world


@pytest.mark.usefixtures("world")
def test_a_new_cluster_upgrades_nothing() -> None:
    outputs = SlurmVersionProvider().create(inputs("26.05")).outs or {}

    assert outputs["upgrading"] is False
    assert not SlurmVersionProvider().diff("", outputs, inputs("26.05")).changes


def test_a_cluster_that_was_upgraded_keeps_the_order(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
    provider = SlurmVersionProvider()
    outputs = provider.create(inputs("24.11")).outs or {}
    bring(world, "24.11")

    assert provider.diff("", outputs, inputs("26.05")).changes
    assert "the upgrade of Slurm 24.11 to 26.05 begins" in capsys.readouterr().out
    upgraded = provider.update("", outputs, inputs("26.05")).outs or {}
    bring(world, "26.05")

    assert upgraded["upgrading"] is True
    assert not provider.diff("", upgraded, inputs("26.05")).changes
    assert capsys.readouterr().out == ""
    assert (provider.update("", upgraded, inputs("26.05", "MetricsType")).outs or {})["upgrading"] is True


def test_a_cluster_older_than_the_check_is_upgraded_by_it(world: SmallWorld) -> None:
    bring(world, "24.11")

    assert (SlurmVersionProvider().create(inputs("26.05")).outs or {})["upgrading"] is True


def test_a_way_back_is_refused_whatever_the_state_has(world: SmallWorld, capsys: pytest.CaptureFixture[str]) -> None:
    bring(world, "26.05")
    provider, olds = SlurmVersionProvider(), inputs("24.11")

    assert provider.diff("", olds, inputs("24.11")).changes
    assert "would be refused now. hpc: slurm.version is 24.11, and slurmctld 26.05" in capsys.readouterr().out
    with pytest.raises(ConfigRefusedError, match="create a new cluster"):
        provider.update("", olds, inputs("24.11"))


def test_another_namespace_of_the_same_name_is_not_upgraded(world: SmallWorld) -> None:
    world.objects[NAMESPACE_PATH]["metadata"]["uid"] = "another"

    with pytest.raises(KubernetesError, match="not the one that this stack has recorded"):
        SlurmVersionProvider().create(inputs("26.05"))
