"""`make preflight`: sizes that it writes first, and its answer to a stack that has no cluster."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from soperator_pulumi.cli.preflight import EXIT_NOT_CHECKED
from soperator_pulumi.kube.access import Access
from soperator_pulumi.platform import Platform
from soperator_pulumi.testing import Deployment, deploy
from tests.fakes.small_world import SmallWorld
from tests.unit.stack.test_written_sizes import STACK, a_machine, a_world
from tools import paths, preflight_stack


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


def test_the_command_of_the_page_writes_the_sizes_of_the_stack_before_it_is_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (paths.ROOT / "docs" / "placement.md").read_text()
    (command,) = re.findall(r"```sh\nmake (preflight .*)\n```", page)
    dry_run = ["make", "--dry-run", "--silent", "--old-file=.venv/.installed", *command.split()]
    run = subprocess.run(dry_run, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout.split()
    file = tmp_path / "stacks" / "Pulumi.prod.yaml"
    file.parent.mkdir()
    file.write_text(STACK.replace("SIZE_OF_CPUS", "all but 2"))
    (tmp_path / "Pulumi.yaml").write_text("name: soperator\nstackConfigDir: stacks/\n")

    def rendered(*_: object) -> Deployment:
        (node_set, _small) = yaml.safe_load(file.read_text())["config"]["soperator:cluster"]["node_sets"]
        assert (node_set["cpus"], node_set["memory_gib"]) == (60, 501)
        return deploy(lambda: Platform("platform", {"storage_class": "shared"}))

    chosen = SimpleNamespace(embedded=None, kubeconfig="kubeconfig", context=None)
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr("tools.paths.ROOT", tmp_path)
    monkeypatch.setattr(preflight_stack, "rendered_deployment", rendered)
    monkeypatch.setattr(preflight_stack, "Cluster", lambda _: a_world(a_machine("m1", "64", "512Gi")))
    monkeypatch.setattr("sys.argv", ["preflight", *run[run.index("--stack") :]])

    assert preflight_stack.main() == 0

    printed = capsys.readouterr()
    assert "cpus: writes 60" in printed.err
    assert "soperator:platform" in printed.out


def test_sizes_that_cannot_be_written_are_an_error_and_nothing_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: soperator\n")
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK.replace("SIZE_OF_CPUS", "all but 2"))
    chosen = SimpleNamespace(embedded=None, kubeconfig="kubeconfig", context=None)
    monkeypatch.setattr("tools.chosen_cluster.choose", lambda: chosen)
    monkeypatch.setattr("tools.paths.ROOT", tmp_path)
    monkeypatch.setattr(preflight_stack, "rendered_deployment", lambda *_: pytest.fail("rendered"))
    monkeypatch.setattr(preflight_stack, "Cluster", lambda _: a_world())
    monkeypatch.setattr("sys.argv", ["preflight", "--stack", "prod", "--write-sizes"])

    assert preflight_stack.main() == EXIT_NOT_CHECKED
    assert "node_sets[0].cpus" in capsys.readouterr().err
