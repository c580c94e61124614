"""`make check`: every check runs and is reported, those of a stage at the same time, and failures stand last."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tools.check import SourceCheck, carry_out
from tools.console import UserError
from tools.paths import ROOT

PARENT = "import sys; from tools.check import SourceCheck, carry_out; carry_out([SourceCheck('long', sys.argv[1])])"


def script(name: str, text: str, *, live: bool = False) -> SourceCheck:
    return SourceCheck(name, shlex.join(["sh", "-c", text]), live)


def meeting(made: Path, wanted: Path) -> str:
    """Text of a script that makes a file and ends well once another one has made its own."""
    return f"touch {made}; for i in $(seq 600); do [ -e {wanted} ] && exit 0; sleep 0.1; done; exit 1"


def said(printed: pytest.CaptureFixture[str]) -> str:
    return re.sub(r" after \d+ s\n", "\n", printed.readouterr().err)


def test_a_check_that_passes_takes_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    carry_out([script("lint", "echo words of a linter")], [script("types", "true")])
    assert said(capsys) == "==> lint: passed\n==> types: passed\n"


def test_checks_of_a_stage_run_at_the_same_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    carry_out([script("types", meeting(one, two)), script("tests", meeting(two, one))])


def test_a_stage_follows_the_one_before_it_whatever_failed_there(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(UserError, match="failed: lint"):
        carry_out([script("lint", f"sleep 0.1; touch {made}; exit 1")], [script("tests", f"test -e {made}")])


def test_the_error_names_all_failures_and_the_commands_that_repeat_them() -> None:
    lint, types = script("lint", "exit 1"), script("types", "exit 2")
    with pytest.raises(UserError) as error:
        carry_out([lint], [types], [script("tests", "true")])
    assert str(error.value) == f"failed: lint, types. To repeat that alone:\n    {lint.line}\n    {types.line}"


def test_a_failure_is_printed_whole_and_again_where_others_have_printed_since(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UserError):
        carry_out([script("types", "echo no such; echo name >&2; exit 1")], [script("tests", "true")])
    failure = "==> types: FAILED\nno such\nname\n"
    assert said(capsys) == f"{failure}==> tests: passed\n{failure}"


def test_a_failure_that_stands_last_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError):
        carry_out([script("types", "echo no such name; exit 1")])
    assert said(capsys) == "==> types: FAILED\nno such name\n"


def test_a_live_check_prints_where_the_command_itself_does(capfd: pytest.CaptureFixture[str]) -> None:
    carry_out([script("tests", "echo 50 %", live=True)])
    assert capfd.readouterr().out == "50 %\n"


def test_no_check_outlives_a_killed_run(tmp_path: Path) -> None:
    long = f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 600"
    with subprocess.Popen([sys.executable, "-c", PARENT, script("long", long).line], cwd=ROOT) as parent:
        wait_until((tmp_path / "pid").exists, "it runs")
        parent.kill()
    pid = (tmp_path / "pid").read_text().strip()
    wait_until(lambda: not Path("/proc", pid).exists(), "the check is gone")
