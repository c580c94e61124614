"""docs/convert.md: its commands run, and its words are those of the reports."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from soperator_pulumi.convert.conversion import Fate
from soperator_pulumi.convert.output import TITLES
from soperator_pulumi.convert.source_kinds import SourceKind
from tests.unit.convert.conversions import DATA
from tools import paths

PAGE = (paths.ROOT / "docs" / "convert.md").read_text()


def test_the_command_writes_stack_and_report(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "stacks").mkdir()
    shutil.copy(DATA / "slinky" / "tpu-values.yaml", tmp_path / "values.yaml")

    done = subprocess.run(
        ["bash", "-euc", block.replace("soperator ", f"{sys.executable} -m soperator_pulumi.cli ", 1)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(paths.ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "soperator:cluster" in yaml.safe_load((tmp_path / "stacks" / "Pulumi.hpc.yaml").read_text())["config"]
    assert "Not possible" in (tmp_path / "report.txt").read_text()


def test_the_parts_of_the_report_are_explained() -> None:
    rows = re.findall(r"(?m)^\| ([A-Z][\w ]+) \|", PAGE.split("## The report", 1)[1])

    assert set(TITLES) == {*Fate}
    assert {title.partition(":")[0] for title in TITLES.values()} <= set(rows)


def test_the_kinds_of_files_are_listed() -> None:
    for kind in SourceKind:
        if "chart" in kind.value:
            assert f"`{kind.value.rpartition(' ')[2]}`" in PAGE
