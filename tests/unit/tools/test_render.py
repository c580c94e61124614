"""`make render`: a stack becomes a folder of manifests, as a user runs it."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tools import paths, render
from tools.console import UserError, run

PAGE = (paths.ROOT / "docs" / "your-cluster.md").read_text()
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
PROGRAM = (paths.ROOT / "__main__.py").read_text()


def project(folder: Path, stack: str = EXAMPLE) -> Path:
    """Write a project with our program and the stack `prod`."""
    (folder / "stacks").mkdir()
    (folder / "Pulumi.yaml").write_text((paths.ROOT / "Pulumi.yaml").read_text())
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "stacks" / "Pulumi.prod.yaml").write_text(stack)
    return folder


def rendered(monkeypatch: pytest.MonkeyPatch, root: Path, *arguments: str) -> int:
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(render, "FOLDER", root / "manifests")
    monkeypatch.setattr(sys, "argv", ["render", "--stack", "prod", *arguments])
    return run(render.main)


def test_a_stack_is_written_to_its_folder_and_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path)
    folder = root / "manifests" / "prod"

    assert rendered(monkeypatch, root) == 0
    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    objects = [name for name in first if name.endswith(".yaml")]
    assert f"{len(objects)} objects; 4 Secrets left out" in capsys.readouterr().err
    (folder / "999-hpc-configmap-of-before.yaml").write_text("{}")
    assert rendered(monkeypatch, root) == 0

    assert {file.name: file.read_bytes() for file in folder.iterdir()} == first
    assert yaml.safe_load(first["001-namespace-hpc.yaml"])["metadata"]["name"] == "hpc"


@pytest.mark.parametrize("file", sorted((paths.ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_every_stack_of_this_project_is_rendered(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    stack = file.name.split(".")[1]

    objects = render.render(paths.ROOT, stack).objects

    labels = [object_.body["metadata"]["labels"] for object_ in objects]
    assert {label["app.kubernetes.io/part-of"] for label in labels} <= {"soperator-pulumi", "soperator-platform"}
    of_clusters = [label for label in labels if label["app.kubernetes.io/part-of"] == "soperator-pulumi"]
    owners = {cluster["soperator-pulumi/owner"] for cluster in of_clusters}
    assert {owner.rpartition(".")[0] for owner in owners} == {f"soperator.{stack}"}
    assert {"StatefulSet", "ConfigMap", "NetworkPolicy"} <= {object_.kind for object_ in objects}


def test_files_of_others_in_a_folder_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text("resources: []\n")

    assert rendered(monkeypatch, root, "--folder", str(mine)) == 1
    assert "holds other files: kustomization.yaml. Name an empty folder" in capsys.readouterr().err
    assert [file.name for file in mine.iterdir()] == ["kustomization.yaml"]


def test_a_stack_that_the_spec_refuses_is_not_rendered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path, EXAMPLE.replace("memory_gib: 120", "memory_gib: 2G"))

    assert rendered(monkeypatch, root) == 1
    shown = capsys.readouterr().err
    assert "node_sets[0].memory_gib" in shown
    assert "Traceback" not in shown
    assert not (root / "manifests").exists()


def test_a_value_of_another_stack_is_refused_with_the_stack_s_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = "{from_stack: organization/storage/prod, output: storage_class}"
    root = project(tmp_path, EXAMPLE.replace("storage_class: filestore-rwx", f"storage_class: {reference}"))

    assert rendered(monkeypatch, root) == 1

    errors = capsys.readouterr().err
    assert "'organization/storage/prod'" in errors
    assert "Put the value itself in place of `from_stack` in the file of stack prod" in errors
    assert "--stack-output <stack>:<output>=<value>" in errors
    assert "Traceback" not in errors


def test_a_stack_without_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'other' has no configuration.* Next: name one of prod, or create the file\."):
        render.render(project(tmp_path), "other")
