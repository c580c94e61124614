"""Providers of the jail that reach the small world."""

import pytest

from tests.fakes.jail import JailWorld, Printed


@pytest.fixture
def world() -> JailWorld:
    return JailWorld()


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, world: JailWorld) -> None:
    """Both providers reach the small world, and its time is theirs."""
    world.connect(monkeypatch)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)
