"""A state of an earlier release is updated, and nothing in it that holds data or jobs is replaced or deleted."""

import base64
import pickle
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

import soperator_pulumi
from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.testing import Recorded
from tests.rendered.cluster import recorded_states
from tests.rendered.cluster.recorded_states import PROGRAMS, State
from tools.engine.local.providers import diff
from tools.engine.local.providers.replacement_rules import force_new

RECORDED = [(version, program) for version in recorded_states.versions() for program in PROGRAMS]

_MAY_GO = (
    "PodsReady",
    "NodesReady",
    "TreePopulated",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "Service",
    "Job",
    "RandomBytes",
)
"""Types that hold neither data nor jobs: a later release may do without one. The id of RandomBytes shows its value."""

_MAY_BE_REPLACED = ("TreePopulated", "Job")
"""Of these a changed tree makes another one."""


@cache
def today(program: str) -> dict[str, Recorded]:
    """Return the resources of today by each URN that they continue."""
    found: dict[str, Recorded] = {}
    for resource in recorded_states.run(program).recorded:
        for urn in [recorded_states.urn(resource), *recorded_states.former(resource)]:
            found[urn] = resource
    return found


def replaced_by(before: State, now: Recorded) -> list[str]:
    """Return the properties because of which Pulumi replaces a resource."""
    new = recorded_states.plain(now.inputs)
    if now.request.replaceOnChanges:
        return [*now.request.replaceOnChanges]
    if before.type.startswith("kubernetes:"):
        forced = force_new(new, config_map_mutable=False, secret_mutable=True)
        return [
            path
            for path, change in diff.compare(diff.normal(before.inputs), diff.normal(new), forced).items()
            if "REPLACE" in change.kind.name
        ]
    if before.type.startswith("random:"):
        return [key for key in {*before.inputs, *new} if before.inputs.get(key) != new.get(key)]
    if before.type.startswith("pulumi:providers:"):
        return [key for key in ("clusterIdentifier",) if before.inputs.get(key) != new.get(key)]
    if "__provider" in before.inputs:
        provider = provider_of(before.inputs)
        return [*(provider.diff("id", {**before.inputs}, new).replaces or [])]
    return []


def provider_of(inputs: Mapping[str, Any]) -> LiveProvider:
    """Return the provider that a state names by its module and class: it deletes what was created with it."""
    provider = pickle.loads(base64.b64decode(inputs["__provider"]))  # noqa: S301 - a file of ours
    assert isinstance(provider, LiveProvider)
    return provider


@pytest.fixture(autouse=True)
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have diffs compare inputs alone."""

    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> None:
        raise KubernetesError("not reached")

    monkeypatch.setattr(LiveProvider, "kube", kube)
    monkeypatch.setattr(LiveProvider, "recent", kube)


def test_the_states_of_this_release_are_recorded() -> None:
    assert {(soperator_pulumi.__version__, program) for program in PROGRAMS} <= {*RECORDED}


@pytest.mark.parametrize(("version", "program"), RECORDED)
def test_what_holds_data_or_jobs_is_continued_under_its_name_or_an_alias(version: str, program: str) -> None:
    states = recorded_states.read(version, program)
    assert len(states) > 40
    gone = [state.urn for state in states if state.urn not in today(program) and not state.type.endswith(_MAY_GO)]
    assert not gone


@pytest.mark.parametrize(("version", "program"), RECORDED)
def test_nothing_is_replaced(version: str, program: str) -> None:
    found = {
        before.urn: paths
        for before in recorded_states.read(version, program)
        if before.urn in today(program) and not before.type.endswith(_MAY_BE_REPLACED)
        if (paths := replaced_by(before, today(program)[before.urn]))
    }
    assert not found


@pytest.mark.parametrize(("version", "program"), RECORDED)
def test_no_node_set_is_another_one_that_would_be_drained_or_refused(version: str, program: str) -> None:
    drains = [state for state in recorded_states.read(version, program) if state.type.endswith(":NodeDrain")]
    assert drains
    for before in drains:
        for key in ("identity", "owner"):
            assert today(program)[before.urn].inputs[key] == before.inputs[key], before.urn


@pytest.mark.parametrize(("version", "program"), RECORDED)
def test_data_stays_protected(version: str, program: str) -> None:
    for before in recorded_states.read(version, program):
        now = today(program).get(before.urn)
        if now is not None:
            assert now.request.protect >= before.protect, before.urn
            assert now.request.retainOnDelete >= before.retain, before.urn


@pytest.mark.parametrize(("version", "program"), RECORDED)
def test_each_provider_of_a_state_is_still_found_by_module_and_class(version: str, program: str) -> None:
    stored = [state for state in recorded_states.read(version, program) if "__provider" in state.inputs]
    assert len({state.type for state in stored}) >= 9
    for state in stored:
        kind = state.type.rpartition(":")[2]
        assert type(provider_of(state.inputs)).__name__ == f"{kind}Provider"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("StatefulSet", {"spec": {"serviceName": "other"}}),
        ("PersistentVolumeClaim", {"spec": {"storageClassName": "other"}}),
        ("ConfigFiles", {"name": "other"}),
        ("providers:kubernetes", {"clusterIdentifier": "other"}),
    ],
)
def test_a_state_that_would_be_replaced_is_found(kind: str, change: dict[str, Any]) -> None:
    version, program = next(row for row in RECORDED if row[1] == "imported_component")
    before = next(state for state in recorded_states.read(version, program) if state.type.endswith(kind))
    inputs = {**before.inputs}
    for key, value in change.items():
        inputs[key] = {**inputs[key], **value} if isinstance(value, dict) else value
    changed = State(before.urn, inputs, before.protect, before.retain)
    assert replaced_by(changed, today(program)[before.urn])
