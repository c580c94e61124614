"""Servers and images are made in parallel, and only on a machine that can run them."""

import threading

import pytest

from tools import build, images
from tools.console import UserError
from tools.kube import EmbeddedKubernetes


@pytest.fixture
def kubernetes(monkeypatch: pytest.MonkeyPatch) -> EmbeddedKubernetes:
    monkeypatch.setattr(EmbeddedKubernetes, "check_machine", lambda _: None)
    return EmbeddedKubernetes()


def test_images_are_built_while_the_servers_are(
    kubernetes: EmbeddedKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=30)
    monkeypatch.setattr(EmbeddedKubernetes, "fetch", lambda _: both.wait())
    monkeypatch.setattr(images, "build", lambda **_: both.wait())
    build.build(kubernetes)
    assert not both.broken


def test_a_machine_that_cannot_run_a_cluster_gets_no_images(
    kubernetes: EmbeddedKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks_all(_: EmbeddedKubernetes) -> None:
        raise UserError("3 things are in the way")

    monkeypatch.setattr(EmbeddedKubernetes, "check_machine", lacks_all)
    monkeypatch.setattr(images, "build", lambda **_: pytest.fail("they are built"))
    with pytest.raises(UserError, match="3 things are in the way"):
        build.build(kubernetes)


@pytest.mark.parametrize(("servers", "built"), [(True, True), (True, False), (False, True)])
def test_it_is_needed_when_either_is_missing(
    kubernetes: EmbeddedKubernetes, monkeypatch: pytest.MonkeyPatch, servers: bool, built: bool
) -> None:
    monkeypatch.setattr(EmbeddedKubernetes, "is_built", servers)
    monkeypatch.setattr(images, "are_built", lambda _: built)
    assert build.is_needed(kubernetes) == (not (servers and built))
