"""The adapters between Pulumi and the classes that do the work."""

import base64
import pickle

import pytest
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.lifecycle.active_tree import ActiveTreeProvider
from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.node_drain import NodeDrainProvider
from soperator_pulumi.lifecycle.nodes_ready import NodesReadyProvider
from soperator_pulumi.lifecycle.pods_ready import PodsReadyProvider
from soperator_pulumi.lifecycle.prerequisites import PrerequisitesProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSetsProvider
from soperator_pulumi.lifecycle.secret_files import SecretFilesProvider
from soperator_pulumi.lifecycle.slurm_version import SlurmVersionProvider
from soperator_pulumi.lifecycle.tree_populated import TreePopulatedProvider
from tests.fakes.objects import NAMESPACE
from tests.fakes.small_world import SmallWorld
from tests.unit.lifecycle.recorded_world import reached_world
from tests.unit.operations.test_rollout import LOGIN, PATH, a_stateful_set

PROVIDERS: list[type[LiveProvider]] = [
    ActiveTreeProvider,
    ConfigFilesProvider,
    DrainGateProvider,
    NodeDrainProvider,
    NodesReadyProvider,
    PodsReadyProvider,
    PrerequisitesProvider,
    RemovedNodeSetsProvider,
    SecretFilesProvider,
    SlurmVersionProvider,
    TreePopulatedProvider,
]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    return reached_world(monkeypatch)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_is_stored_as_a_reference_to_its_class_and_captures_nothing(
    provider: type[ResourceProvider],
) -> None:
    stored = serialize_provider(provider())
    assert len(stored) < 300
    assert type(pickle.loads(base64.b64decode(stored))) is provider  # noqa: S301 what we have just stored
    assert provider.serialize_as_secret_always is False


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_resource_that_is_not_known_yet_counts_as_changed(provider: type[LiveProvider]) -> None:
    assert provider().diff("", {}, {"namespace": UNKNOWN, "references": []}).changes is True


def test_pods_that_are_ready_are_no_change_and_others_are(
    world: SmallWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    props = {"namespace": NAMESPACE, "owner": "project.dev.hpc", "stateful_set": "login", "selector": LOGIN}
    world.objects[PATH] = a_stateful_set()
    assert PodsReadyProvider().create(props).outs == props
    assert PodsReadyProvider().diff("", props, props).changes is False
    world.objects[PATH] = a_stateful_set(readyReplicas=0)
    assert PodsReadyProvider().diff("", props, props).changes is True
    assert "login: 0 of 2 pods are ready" in capsys.readouterr().out
