"""`make preflight`: its answer to a stack that has no cluster."""

import json
from types import SimpleNamespace

import pytest

from soperator_pulumi.cli.preflight import EXIT_NOT_CHECKED
from soperator_pulumi.platform import Platform
from soperator_pulumi.testing import deploy
from tools import preflight_stack


def test_a_stack_of_a_platform_alone_is_reported_as_not_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rendered = deploy(lambda: Platform("platform", {"storage_class": "shared"}))
    chosen = SimpleNamespace(embedded=None, kubeconfig="kubeconfig", context=None)
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr(preflight_stack, "rendered_deployment", lambda *_: rendered)
    monkeypatch.setattr("sys.argv", ["preflight", "--stack", "base", "--json"])

    assert preflight_stack.main() == EXIT_NOT_CHECKED

    printed = capsys.readouterr()
    assert printed.err.startswith("error: stack base has no cluster")
    assert json.loads(printed.out)["error"] == printed.err.removeprefix("error: ").strip()
