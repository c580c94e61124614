"""Providers of the jail that reach the small world."""

from collections.abc import Mapping
from typing import Any

import pytest

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle.provider import LiveProvider
from tests.fakes.jail import JailWorld, Printed


@pytest.fixture
def world() -> JailWorld:
    return JailWorld()


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, world: JailWorld) -> None:
    """Both providers reach the small world, and its time is theirs."""

    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> JailWorld:
        if world.unreachable:
            raise KubernetesError("The Kubernetes API at https://x is not reached.")
        return world

    monkeypatch.setattr(LiveProvider, "kube", kube)
    monkeypatch.setattr(LiveProvider, "recent", kube)
    for module in ("tree_populated", "active_tree"):
        monkeypatch.setattr(f"soperator_pulumi.lifecycle.{module}.MachineClock", lambda: world.clock)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)
