"""`make preflight`: its answer to a stack that has no cluster."""

import json
from types import SimpleNamespace

import pytest

from soperator_pulumi.cli.preflight import EXIT_NOT_CHECKED
from soperator_pulumi.kube.access import Access
from soperator_pulumi.platform import Platform
from soperator_pulumi.testing import deploy
from tests.fakes.small_world import SmallWorld
from tools import preflight_stack


def test_of_a_stack_without_a_cluster_the_platform_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rendered = deploy(lambda: Platform("platform", {"storage_class": "shared"}))
    asked: list[Access] = []

    def cluster(access: Access) -> SmallWorld:
        asked.append(access)
        return SmallWorld()

    chosen = SimpleNamespace(embedded=None, kubeconfig="kubeconfig", context=None)
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr(preflight_stack, "rendered_deployment", lambda *_: rendered)
    monkeypatch.setattr(preflight_stack, "Cluster", cluster)
    monkeypatch.setattr("sys.argv", ["preflight", "--stack", "base", "--json"])

    assert preflight_stack.main() == 0

    (found,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (found["cluster"], found["refused"], asked) == ("soperator:platform", 0, [Access("kubeconfig", None)])


def test_a_stack_with_nothing_to_check_is_reported_as_not_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = SimpleNamespace(embedded=None, kubeconfig="kubeconfig", context=None)
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr(preflight_stack, "rendered_deployment", lambda *_: deploy(lambda: None))
    monkeypatch.setattr("sys.argv", ["preflight", "--stack", "base", "--json"])

    assert preflight_stack.main() == EXIT_NOT_CHECKED

    printed = capsys.readouterr()
    assert "no SlurmCluster and no Platform" in printed.err
    assert json.loads(printed.out)["error"] == printed.err.removeprefix("error: ").strip()
