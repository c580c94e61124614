"""Sizes and keys before a change, which checks of providers add to the inputs: policies judge inputs, not state."""

from typing import Any

import pytest

from soperator_pulumi.lifecycle.keys_in_use import with_keys_before
from soperator_pulumi.lifecycle.node_drain import NodeDrainProvider, with_replicas_before
from soperator_pulumi.lifecycle.removed_node_sets import RemovedNodeSetsProvider, with_removed

SELECTOR = {"app.kubernetes.io/instance": "hpc"}
COMMON: dict[str, Any] = {"namespace": "hpc", "namespace_uid": "uid", "owner": "o", "selector": SELECTOR}
DRAIN: dict[str, Any] = {**COMMON, "node_set": "cpu", "replicas": 4.0, "identity": "", "policy": {}}
REMOVED: dict[str, Any] = {**COMMON, "policies": {"cpu": {}, "gpu": {}}, "replicas": {"cpu": 4.0, "gpu": 2.0}}


def test_a_new_node_set_has_no_size_before() -> None:
    assert NodeDrainProvider().check({}, DRAIN).inputs == DRAIN


def test_the_size_before_is_that_of_the_inputs_before() -> None:
    olds = {**DRAIN, "replicas": 8.0, "replicas_before": 9.0}
    assert NodeDrainProvider().check(olds, DRAIN).inputs == {**DRAIN, "replicas_before": 8.0}


def test_node_sets_that_left_the_spec_come_with_the_sizes_that_they_had() -> None:
    news = {**REMOVED, "policies": {"cpu": {}}, "replicas": {"cpu": 4.0}}
    assert RemovedNodeSetsProvider().check(REMOVED, news).inputs == {**news, "removed": {"gpu": 2.0}}
    assert RemovedNodeSetsProvider().check(REMOVED, REMOVED).inputs == REMOVED


@pytest.mark.parametrize("olds", [{}, {**COMMON, "policies": {"gpu": {}}}], ids=["none", "of a version without sizes"])
def test_a_state_without_sizes_adds_nothing(olds: dict[str, Any]) -> None:
    assert with_removed(olds, REMOVED) == REMOVED
    assert with_replicas_before(olds, DRAIN) == DRAIN


def test_the_keys_before_are_those_of_the_inputs_before() -> None:
    olds, news = {**COMMON, "keys": ["old"], "keys_before": ["older"]}, {**COMMON, "keys": ["new"]}
    assert with_keys_before(olds, news) == {**news, "keys_before": ["old"]}
    assert with_keys_before({}, news) == news
