"""A cluster whose resources another server acts for, the SDK's or the plugin, keeps its data and its jobs."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pulumi
import pytest

from soperator_pulumi import SlurmCluster
from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.installed_parts import InstalledParts
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import ServedBy
from soperator_pulumi.plugin.live_kinds import KINDS
from soperator_pulumi.testing import Recorded, Secret, deploy
from tests.rendered.cluster import recorded_states
from tests.rendered.cluster.clusters import a_spec, provided
from tests.rendered.cluster.recorded_states import PROGRAMS

MOVES = [
    pytest.param(program, before, after, id=f"{program}, from {before} to {after}")
    for program in PROGRAMS
    for before, after in [(ServedBy.PROGRAM, ServedBy.PLUGIN), (ServedBy.PLUGIN, ServedBy.PROGRAM)]
]
PROVIDERS = {kind.resource.token(served_by): kind.provider for kind in KINDS for served_by in ServedBy}
run = cache(recorded_states.run)


@pytest.fixture(autouse=True)
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have diffs compare inputs alone."""

    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> None:
        raise KubernetesError("not reached")

    monkeypatch.setattr(LiveProvider, "kube", kube)
    monkeypatch.setattr(LiveProvider, "recent", kube)


def continued(program: str, before: ServedBy, after: ServedBy) -> list[tuple[Recorded, Recorded]]:
    """Return the resources before the move, each with the one that continues it."""
    found = {
        urn: resource
        for resource in run(program, after).recorded
        for urn in [recorded_states.urn(resource), *recorded_states.former(resource)]
    }
    return [(resource, found[recorded_states.urn(resource)]) for resource in run(program, before).recorded]


@pytest.mark.parametrize(("program", "before", "after"), MOVES)
def test_every_resource_is_continued_and_none_is_added(program: str, before: ServedBy, after: ServedBy) -> None:
    pairs = continued(program, before, after)
    assert len(pairs) == len(run(program, after).recorded)
    moved = [(old, new) for old, new in pairs if old.type != new.type]
    assert len(moved) > 15
    of_clusters = {kind.resource for kind in KINDS} - {InstalledParts}
    assert {old.type.rpartition(":")[2] for old, _ in moved} == {resource.__name__ for resource in of_clusters}


@pytest.mark.parametrize(("program", "before", "after"), MOVES)
def test_no_resource_is_replaced_and_its_inputs_are_the_same(program: str, before: ServedBy, after: ServedBy) -> None:
    for old, new in continued(program, before, after):
        olds, news = recorded_states.plain(old.inputs), recorded_states.plain(new.inputs)
        if old.type in PROVIDERS:
            found = PROVIDERS[new.type]().diff("id", dict(olds), dict(news))
            assert found.changes, f"{new.name}: the state needs to know who acts"
            assert not found.replaces
        assert _without_provider(olds) == _without_provider(news), new.name


def _without_provider(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if key != "__provider"}


@pytest.mark.parametrize(("program", "before", "after"), MOVES)
def test_what_is_protected_stays_so(program: str, before: ServedBy, after: ServedBy) -> None:
    for old, new in continued(program, before, after):
        assert (new.request.protect, new.request.retainOnDelete) == (old.request.protect, old.request.retainOnDelete)


def test_a_plugin_is_given_the_access_that_the_stack_configures() -> None:
    """The SDK's server of dynamic resources sees the stack's configuration; a plugin does not."""
    config = {"soperator:served_by": "plugin", "kubernetes:context": "west"}
    made = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=provided, config=config)
    assert made.one("hpc-cpu-drain").inputs["context"] == "west"
    ambient = {"soperator:served_by": "program", "kubernetes:context": "west"}
    made = deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=provided, config=ambient)
    assert "context" not in made.one("hpc-cpu-drain").inputs


def test_a_plugin_is_given_a_kubeconfig_as_a_secret() -> None:
    config = {"soperator:served_by": "plugin"}
    made = deploy(lambda: SlurmCluster("hpc", a_spec(), kubeconfig="token: x"), outputs=provided, config=config)
    assert made.one("hpc-cpu-drain").inputs["kubeconfig"] == Secret("token: x")
    assert made.request("hpc-cpu-drain").additionalSecretOutputs == ["kubeconfig"]


def test_another_word_for_who_acts_is_refused() -> None:
    with pytest.raises(pulumi.RunError, match='soperator:served_by has 1 problem:\n  got "me", needs "program" or'):
        deploy(lambda: SlurmCluster("hpc", a_spec()), outputs=provided, config={"soperator:served_by": "me"})
