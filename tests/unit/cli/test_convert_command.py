"""`soperator convert`: its outputs, and errors that name place, finding and next step."""

from pathlib import Path

import pytest

from soperator_pulumi import cli
from tests.unit.convert.conversions import DATA, written

FILE = str(DATA / "slinky" / "tpu-values.yaml")

SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: keys}
data: {munge.key: c2VjcmV0}
"""
SLURM_CLUSTER = """
---
apiVersion: slurm.nebius.ai/v1
kind: SlurmCluster
metadata: {name: %s}
"""


def test_stack_and_report_go_where_the_command_line_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack, report = tmp_path / "Pulumi.hpc.yaml", tmp_path / "report.txt"

    assert cli.main(["convert", FILE]) == 0
    shown = capsys.readouterr()
    assert cli.main(["convert", FILE, "--output", str(stack), "--report", str(report)]) == 0

    assert capsys.readouterr() == ("", "")
    assert (stack.read_text(), report.read_text()) == (shown.out, shown.err)


def test_files_that_exist_are_overwritten_by_force_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = written(tmp_path, "mine", "Pulumi.hpc.yaml")

    assert cli.main(["convert", FILE, "--output", str(stack)]) == 1
    assert "--force" in capsys.readouterr().err
    assert stack.read_text() == "mine"
    assert cli.main(["convert", FILE, "--output", str(stack), "--force"]) == 0
    assert "soperator:cluster" in stack.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["input.yaml: empty", "Give values of"]),
        ("- a\n- b\n", ["is not a mapping", "Give values of"]),
        ("a: 1\nb: 2\n", ["unrecognized file; found keys: a, b", "Give values of"]),
        ("controller: {}\ndefaultBackend: {}\ntcp: {}\n", ["unrecognized file; found keys: controller, "]),
        ("a: [1\n", ["input.yaml, line 2", "Give a plain YAML file"]),
        ("a: {{ .Values.x }}\n", ["input.yaml, line 1", "templates"]),
        ("slurmNodes: !vault x\n", ["input.yaml, line 1", "!vault", "encrypted"]),
        ("slurmNodes: {}\nslurmNodes: {}\n", ['the key "slurmNodes" twice', "line 2"]),
        ("slurmNodes: &a\n  b: *a\n", ["nested deeper than 64 levels"]),
        ("a: \x00\n", ["input.yaml", "YAML"]),
        (SECRET, ["No custom resource", "Secret", "kubectl get"]),
        (
            SLURM_CLUSTER % "a" + SLURM_CLUSTER % "b",
            ["2 resources of the kind SlurmCluster: a, b", "convert them one by one"],
        ),
        (SLURM_CLUSTER % "a" + "---\nslurmKey: {}\n", ["do not describe one cluster together", "of one project"]),
        (
            "apiVersion: slinky.slurm.net/v1alpha1\nkind: Cluster\nmetadata: {name: a}\n",
            ["belongs to Slinky 0.x", "upgrade first"],
        ),
    ],
)
def test_files_that_cannot_be_converted_are_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: list[str]
) -> None:
    assert cli.main(["convert", str(written(tmp_path, text))]) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert [word for word in words if word not in shown.err] == []
    assert "Traceback" not in shown.err
    assert "c2VjcmV0" not in shown.err


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    assert cli.main(["convert", str(tmp_path / "missing.yaml")]) == 1
    assert cli.main(["convert", str(tmp_path / "binary")]) == 1
    assert cli.main(["convert", FILE, "--output", str(tmp_path / "no" / "Pulumi.x.yaml")]) == 1

    missing, binary, folder = capsys.readouterr().err.splitlines()
    assert "missing.yaml: No such file or directory. Give a file that can be read." in missing
    assert "binary: not UTF-8 text" in binary
    assert "Give a file that can be written." in folder


def test_the_release_of_the_values_is_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(written(tmp_path, "nodesets: {a: {}}\ncontroller: {}\n"))

    assert cli.main(["convert", file, "--release", "1.0"]) == 0
    assert "Read as values of the chart slurm 1.0" in capsys.readouterr().err
    assert cli.main(["convert", file, "--release", "7"]) == 1
    assert 'error: --release: got "7"' in capsys.readouterr().err


def test_values_of_two_clusters_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(written(tmp_path, f"slurmNodes: {{}}\nclusterName: {name}\n", f"{name}.yaml")) for name in "ab"]

    assert cli.main(["convert", *files]) == 1
    assert "Two files are values of soperator's Helm chart slurm-cluster for a, b" in capsys.readouterr().err
